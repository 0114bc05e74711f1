package org.gandiva.yarn.replay;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerUpdateType;
import org.apache.hadoop.yarn.api.records.ExecutionType;
import org.apache.hadoop.yarn.api.records.ExecutionTypeRequest;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.api.records.ResourceSizing;
import org.apache.hadoop.yarn.api.records.SchedulingRequest;
import org.apache.hadoop.yarn.api.records.UpdateContainerRequest;
import org.gandiva.yarn.ResourceVector;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.gateway.ProtocolException;

/** Reads what a master asks for out of an action: the ways that YARN has for it. */
final class MasterAsks {
  private MasterAsks() {}

  /** The field "asks". */
  static List<ResourceRequest> resourceRequests(ObjectNode action) throws ProtocolException {
    List<ResourceRequest> asks = new ArrayList<>();
    for (ObjectNode ask : Json.objects(action, "asks")) {
      asks.add(
          ResourceRequest.newBuilder()
              .priority(Priority.newInstance(Json.count(ask, "priority")))
              .resourceName(Json.text(ask, "resource_name", ResourceRequest.ANY))
              .capability(size(ask))
              .numContainers(Json.count(ask, "count"))
              .relaxLocality(ask.path("relax_locality").asBoolean(true))
              .allocationRequestId(Json.whole(ask, "allocation_request_id", -1))
              .nodeLabelExpression(Json.text(ask, "label", null))
              .executionTypeRequest(executionType(ask))
              .build());
    }
    return asks;
  }

  /** The field "requests": asks that name tags instead of places. */
  static List<SchedulingRequest> schedulingRequests(ObjectNode action) throws ProtocolException {
    List<SchedulingRequest> requests = new ArrayList<>();
    for (ObjectNode ask : Json.objects(action, "requests")) {
      requests.add(
          SchedulingRequest.newBuilder()
              .priority(Priority.newInstance(Json.count(ask, "priority")))
              .allocationRequestId(Json.whole(ask, "allocation_request_id"))
              .allocationTags(new HashSet<>(Json.texts(ask, "tags")))
              .executionType(executionType(ask))
              .resourceSizing(ResourceSizing.newInstance(Json.count(ask, "count"), size(ask)))
              .build());
    }
    return requests;
  }

  /** The field "updates": changes of containers that the master holds. */
  static List<UpdateContainerRequest> updates(ObjectNode action, SimulatedMaster master)
      throws ProtocolException {
    List<UpdateContainerRequest> updates = new ArrayList<>();
    for (ObjectNode update : Json.objects(action, "updates")) {
      ContainerId id = container(Json.text(update, "container"));
      Container held = master.live().get(id);
      ContainerUpdateType type =
          word(ContainerUpdateType.class, "change", Json.text(update, "change"));
      boolean isSize =
          type == ContainerUpdateType.INCREASE_RESOURCE
              || type == ContainerUpdateType.DECREASE_RESOURCE;
      ExecutionType target =
          type == ContainerUpdateType.PROMOTE_EXECUTION_TYPE
              ? ExecutionType.GUARANTEED
              : ExecutionType.OPPORTUNISTIC;
      updates.add(
          UpdateContainerRequest.newInstance(
              held == null ? 0 : held.getVersion(),
              id,
              type,
              isSize ? size(update) : null,
              isSize ? null : target));
    }
    return updates;
  }

  static ContainerId container(String text) throws ProtocolException {
    try {
      return ContainerId.fromString(text);
    } catch (IllegalArgumentException e) {
      throw ProtocolException.badRequest("containers: \"" + text + "\" is no container id");
    }
  }

  private static Resource size(ObjectNode ask) throws ProtocolException {
    return ResourceVector.of(
        Json.whole(ask, "memory_mib"), Json.count(ask, "vcores"), Json.count(ask, "gpus", 0));
  }

  private static ExecutionTypeRequest executionType(ObjectNode ask) throws ProtocolException {
    String name = Json.text(ask, "execution_type", ExecutionType.GUARANTEED.name());
    return ExecutionTypeRequest.newInstance(word(ExecutionType.class, "execution_type", name));
  }

  private static <E extends Enum<E>> E word(Class<E> type, String field, String text)
      throws ProtocolException {
    try {
      return Enum.valueOf(type, text.toUpperCase(Locale.ROOT));
    } catch (IllegalArgumentException e) {
      throw ProtocolException.badRequest(
          field + ": found \"" + text + "\", expected a " + type.getSimpleName());
    }
  }
}
