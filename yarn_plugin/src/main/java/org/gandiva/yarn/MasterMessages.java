package org.gandiva.yarn;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayDeque;
import java.util.Collections;
import java.util.Deque;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.PreemptionContainer;
import org.apache.hadoop.yarn.api.records.PreemptionContract;
import org.apache.hadoop.yarn.api.records.PreemptionMessage;
import org.apache.hadoop.yarn.api.records.PreemptionResourceRequest;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.api.records.StrictPreemptionContract;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerApp;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerNode;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.gateway.ProtocolException;

/**
 * What the core tells an application's master, in its next heartbeats: a {@code PreemptionMessage}
 * whose strict contract names a container, and whose other contract has the one request to make in
 * its place (SPEC G-69). Nothing of Hadoop kills because of it; a master that does not know it
 * ignores it, and then nothing moves.
 */
final class MasterMessages {
  /** Masters know requests of moves by their ids, from here on. */
  static final long FIRST_MOVE_ID = 1_000_000;

  /** And requests of added workers from here on. */
  static final long FIRST_RESIZE_ID = 1_000_000_000_000_000L;

  /** More than that for one attempt, and its master does not listen. */
  private static final int WAITING_MAX = 1000;

  private final GandivaScheduler scheduler;
  private final Map<ApplicationAttemptId, Deque<PreemptionMessage>> waiting =
      new ConcurrentHashMap<>();

  MasterMessages(GandivaScheduler scheduler) {
    this.scheduler = scheduler;
  }

  /** Does the effect ask_move: the container's task shall move to a node. */
  ObjectNode askMove(ObjectNode effect) throws ProtocolException {
    long moveId = id(effect, FIRST_MOVE_ID, FIRST_RESIZE_ID);
    ObjectNode result = Json.object().put("id", Json.text(effect, "id"));
    try {
      RMContainer container = container(Json.text(effect, "container"));
      FiCaSchedulerNode node = GangPlan.node(scheduler, Json.text(effect, "node"));
      offer(container, request(container, node.getNodeName(), 1, moveId));
      return result.put("code", CommitCode.OK.name());
    } catch (CommitRefusal refusal) {
      return result.put("code", refusal.code().name()).put("detail", refusal.getMessage());
    }
  }

  /** Does the effect ask_resize: the container's gang shall have another number of workers. */
  ObjectNode askResize(ObjectNode effect) throws ProtocolException {
    long resizeId = id(effect, FIRST_RESIZE_ID, Long.MAX_VALUE);
    int workers = (int) Json.whole(effect, "workers");
    if (workers < 1) {
      throw ProtocolException.badRequest("workers: found " + workers + ", expected at least 1");
    }
    ObjectNode result = Json.object().put("id", Json.text(effect, "id"));
    try {
      RMContainer container = container(Json.text(effect, "container"));
      FiCaSchedulerNode node = GangPlan.node(scheduler, Json.text(effect, "node"));
      offer(container, request(container, node.getNodeName(), workers, resizeId));
      return result.put("code", CommitCode.OK.name());
    } catch (CommitRefusal refusal) {
      return result.put("code", refusal.code().name()).put("detail", refusal.getMessage());
    }
  }

  private static long id(ObjectNode effect, long first, long end) throws ProtocolException {
    long id = Json.whole(effect, "allocation_request_id");
    if (id < first || id >= end) {
      throw ProtocolException.badRequest(
          "allocation_request_id: found " + id + ", expected at least " + first);
    }
    return id;
  }

  /** Does the effect let_go: the container is not needed any more. */
  ObjectNode letGo(ObjectNode effect) throws ProtocolException {
    ObjectNode result = Json.object().put("id", Json.text(effect, "id"));
    try {
      RMContainer container = container(Json.text(effect, "container"));
      offer(container, request(container, ResourceRequest.ANY, 0, 0));
      return result.put("code", CommitCode.OK.name());
    } catch (CommitRefusal refusal) {
      return result.put("code", refusal.code().name()).put("detail", refusal.getMessage());
    }
  }

  private RMContainer container(String text) throws ProtocolException, CommitRefusal {
    ContainerId id;
    try {
      id = ContainerId.fromString(text);
    } catch (IllegalArgumentException e) {
      throw ProtocolException.badRequest(
          "container: found " + Json.shown(text) + ", expected a container id");
    }
    RMContainer container = scheduler.getRMContainer(id);
    if (container == null || container.isAMContainer()) {
      throw new CommitRefusal(
          CommitCode.ASK_GONE, id + " is no container of a master's that lives");
    }
    return container;
  }

  private static ResourceRequest request(
      RMContainer container, String place, int count, long moveId) {
    return ResourceRequest.newBuilder()
        .priority(container.getAllocatedPriority())
        .resourceName(place)
        .capability(container.getAllocatedResource())
        .numContainers(count)
        .relaxLocality(false)
        .nodeLabelExpression(container.getNodeLabelExpression())
        .allocationRequestId(moveId)
        .build();
  }

  /** An attempt's master may be a later one than the container's own. */
  private void offer(RMContainer container, ResourceRequest request) throws CommitRefusal {
    FiCaSchedulerApp live =
        scheduler.liveAttempt(
            scheduler
                .getRMContext()
                .getRMApps()
                .get(container.getApplicationAttemptId().getApplicationId()));
    if (live == null) {
      throw new CommitRefusal(CommitCode.ASK_GONE, "the application has no attempt that runs");
    }
    Deque<PreemptionMessage> messages =
        waiting.computeIfAbsent(live.getApplicationAttemptId(), any -> new ArrayDeque<>());
    synchronized (messages) {
      if (messages.size() >= WAITING_MAX) {
        throw new CommitRefusal(CommitCode.NOT_READY, "its master fetches no messages");
      }
      messages.add(message(container.getContainerId(), request));
    }
  }

  private static PreemptionMessage message(ContainerId container, ResourceRequest request) {
    Set<PreemptionContainer> named =
        new HashSet<>(Collections.singleton(PreemptionContainer.newInstance(container)));
    PreemptionContract contract =
        PreemptionContract.newInstance(
            Collections.singletonList(PreemptionResourceRequest.newInstance(request)),
            new HashSet<>());
    return PreemptionMessage.newInstance(StrictPreemptionContract.newInstance(named), contract);
  }

  /** Puts the next message into the answer to a heartbeat; Hadoop's own goes first. */
  void deliver(ApplicationAttemptId attempt, AllocateResponse response) {
    Deque<PreemptionMessage> messages = waiting.get(attempt);
    if (messages == null || response.getPreemptionMessage() != null) {
      return;
    }
    synchronized (messages) {
      PreemptionMessage next = messages.poll();
      if (next != null) {
        response.setPreemptionMessage(next);
      }
    }
  }

  /** The attempt has ended. */
  void forget(ApplicationAttemptId attempt) {
    waiting.remove(attempt);
  }
}
