package org.gandiva.yarn.replay;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.QueueInfo;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.server.resourcemanager.RMContext;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.AbstractYarnScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerNode;
import org.gandiva.yarn.ResourceVector;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.gateway.ProtocolException;

/** Answers what the ResourceManager's own pages would show. */
final class ReplayQueries {
  private final ReplaySession session;
  private final RMContext context;

  ReplayQueries(ReplaySession session) {
    this.session = session;
    this.context = session.resourceManager().getRMContext();
  }

  void answer(ObjectNode request, ObjectNode reply) throws Exception {
    if (request.has("app_diagnostics")) {
      application(Json.text(request, "app_diagnostics"), reply);
    } else if (request.has("queues")) {
      queue(session.scheduler().getQueueInfo("root", true, true), reply.putArray("queues"));
    } else if (request.has("nodes")) {
      nodes(reply.putArray("nodes"));
    } else if (request.has("container")) {
      container(Json.text(request, "container"), reply);
    } else {
      throw ProtocolException.badRequest(
          "query: expected one of app_diagnostics, queues, nodes, container, spent");
    }
  }

  private void application(String key, ObjectNode reply) throws ProtocolException {
    SimulatedMaster master = session.mastersByKey().get(key);
    if (master == null) {
      throw ProtocolException.badRequest("app_diagnostics: \"" + key + "\" was never submitted");
    }
    RMApp app = context.getRMApps().get(master.app());
    reply.put("app", master.app().toString());
    reply.put("state", app == null ? "REJECTED" : app.getState().name());
    reply.put("diagnostics", app == null ? "" : app.getDiagnostics().toString());
    reply.put("containers", master.live().size());
    if (master.maximumCapability() != null) {
      ResourceVector.write(reply.putObject("maximum_capability"), master.maximumCapability());
    }
  }

  private static void queue(QueueInfo info, ArrayNode queues) {
    ObjectNode entry = queues.addObject();
    entry.put("queue", info.getQueuePath());
    entry.put("capacity", info.getCapacity());
    entry.put("maximum_capacity", info.getMaximumCapacity());
    entry.put("used_capacity", info.getCurrentCapacity());
    entry.put("applications", info.getApplications().size());
    if (info.getQueueStatistics() != null) {
      entry.put("pending_containers", info.getQueueStatistics().getPendingContainers());
      entry.put("allocated_containers", info.getQueueStatistics().getAllocatedContainers());
      entry.put("reserved_containers", info.getQueueStatistics().getReservedContainers());
    }
    for (QueueInfo child : info.getChildQueues()) {
      queue(child, queues);
    }
  }

  private void nodes(ArrayNode nodes) {
    for (SimulatedNode node : session.nodes().values()) {
      ObjectNode entry = nodes.addObject();
      RMNode known = context.getRMNodes().get(node.id());
      SchedulerNode scheduled = session.scheduler() == null ? null : schedulerNode(node);
      entry.put("node", node.id().toString());
      entry.put("state", known == null ? "GONE" : known.getState().name());
      if (known != null) {
        ResourceVector.write(entry.putObject("rm_total"), known.getTotalCapability());
      }
      if (scheduled != null) {
        entry.put("partition", scheduled.getPartition());
        entry.put("containers", scheduled.getNumContainers());
        resource(entry, "scheduler_total", scheduled.getTotalResource());
        resource(entry, "used", scheduled.getAllocatedResource());
        resource(entry, "free", scheduled.getUnallocatedResource());
      }
    }
  }

  private SchedulerNode schedulerNode(SimulatedNode node) {
    return ((AbstractYarnScheduler<?, ?>) session.scheduler()).getNode(node.id());
  }

  private static void resource(ObjectNode entry, String name, Resource resource) {
    ResourceVector.write(entry.putObject(name), resource);
  }

  private void container(String text, ObjectNode reply) throws ProtocolException {
    ContainerId id;
    try {
      id = ContainerId.fromString(text);
    } catch (IllegalArgumentException e) {
      throw ProtocolException.badRequest("container: \"" + text + "\" is no container id");
    }
    RMContainer container = session.scheduler().getRMContainer(id);
    if (container == null) {
      throw new ProtocolException("UNKNOWN_CONTAINER", text + " is not live");
    }
    reply.put("container", text);
    reply.put("node", container.getAllocatedNode().toString());
    reply.put("state", container.getState().name());
    reply.put("priority", container.getAllocatedPriority().getPriority());
    ResourceVector.write(reply, container.getAllocatedResource());
  }
}
