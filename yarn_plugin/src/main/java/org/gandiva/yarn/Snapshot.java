package org.gandiva.yarn;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.hadoop.yarn.api.records.ExecutionType;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CSQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerApp;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerNode;
import org.gandiva.yarn.gateway.Json;

/** Writes the whole state for a core that knows nothing, in parts below the size of a message. */
final class Snapshot {
  /** A part stays well below 16 MiB: entries are some hundred bytes, asks bound the rest. */
  private static final int PART_BYTES_MAX = 8 * 1024 * 1024;

  private final GandivaScheduler scheduler;
  private final SettingsEvents settings;
  private final List<ObjectNode> parts = new ArrayList<>();
  private int partBytes;

  Snapshot(GandivaScheduler scheduler, SettingsEvents settings) {
    this.scheduler = scheduler;
    this.settings = settings;
  }

  List<ObjectNode> write() {
    newPart();
    ObjectNode known = settings.write();
    parts.get(0).set("settings", known.deepCopy());
    partBytes = Json.write(known).length();
    List<FiCaSchedulerNode> nodes = new ArrayList<>(scheduler.getAllNodes());
    nodes.sort(Comparator.comparing(FiCaSchedulerNode::getNodeID));
    for (FiCaSchedulerNode node : nodes) {
      add("nodes", node(Json.object(), node));
    }
    List<RMApp> apps = new ArrayList<>(scheduler.getRMContext().getRMApps().values());
    apps.sort(Comparator.comparing(RMApp::getApplicationId));
    for (RMApp app : apps) {
      FiCaSchedulerApp live = scheduler.liveAttempt(app);
      if (live != null) {
        add("apps", application(app, live));
      }
    }
    for (int i = 0; i < parts.size(); i++) {
      parts.get(i).put("part", i + 1).put("parts", parts.size());
    }
    return parts;
  }

  private void newPart() {
    ObjectNode part = Json.object().put("kind", "resync").put("at_ms", scheduler.nowMs());
    part.putArray("nodes");
    part.putArray("apps");
    parts.add(part);
    partBytes = 0;
  }

  private void add(String list, ObjectNode entry) {
    int bytes = Json.write(entry).length();
    if (partBytes > 0 && partBytes + bytes > PART_BYTES_MAX) {
      newPart();
    }
    partBytes += bytes;
    ((ArrayNode) parts.get(parts.size() - 1).get(list)).add(entry);
  }

  /** Writes what is known of a node; "gpus" are physical. */
  static ObjectNode node(ObjectNode entry, FiCaSchedulerNode node) {
    RMNode known = node.getRMNode();
    entry.put("node", node.getNodeID().toString());
    entry.put("rack", node.getRackName());
    entry.put("partition", node.getPartition());
    ResourceVector.write(entry, known.getTotalCapability());
    entry.put("schedulable_gpus", ResourceVector.gpus(node.getTotalResource()));
    entry.put("state", known.getState().name());
    return entry;
  }

  /**
   * Whether a container has GPUs that a scheduler gave it. Opportunistic ones were given by nobody:
   * the agent gives them no device, and the core does not hear of them.
   */
  static boolean holdsGpus(RMContainer container) {
    return container.getExecutionType() == ExecutionType.GUARANTEED
        && ResourceVector.gpus(container.getAllocatedResource()) > 0;
  }

  private static ObjectNode application(RMApp app, FiCaSchedulerApp live) {
    ObjectNode entry = identity(Json.object(), app, live);
    entry.setAll(AskLedger.table(live));
    ArrayNode containers = entry.putArray("containers");
    List<RMContainer> gpuContainers =
        live.getLiveContainers().stream()
            .filter(Snapshot::holdsGpus)
            .sorted(Comparator.comparing(RMContainer::getContainerId))
            .collect(Collectors.toList());
    for (RMContainer container : gpuContainers) {
      container(containers.addObject(), container);
    }
    return entry;
  }

  /** Writes what is known of a container. */
  static ObjectNode container(ObjectNode entry, RMContainer container) {
    entry.put("container", container.getContainerId().toString());
    entry.put("node", container.getAllocatedNode().toString());
    entry.put("priority", container.getAllocatedPriority().getPriority());
    entry.put("allocation_request_id", container.getContainer().getAllocationRequestId());
    ResourceVector.write(entry, container.getAllocatedResource());
    entry.put("is_master", container.isAMContainer());
    String label = container.getNodeLabelExpression();
    return entry.put("label", label == null ? "" : label);
  }

  /** Writes who an application is. */
  static ObjectNode identity(ObjectNode entry, RMApp app, FiCaSchedulerApp live) {
    entry.put("app", app.getApplicationId().toString());
    entry.put("attempt", live.getApplicationAttemptId().toString());
    entry.put("queue", ((CSQueue) live.getQueue()).getQueuePath());
    entry.put("user", app.getUser());
    entry.put("name", app.getName());
    ArrayNode tags = entry.putArray("tags");
    app.getApplicationTags().stream().sorted().forEach(tags::add);
    entry.put("priority", app.getApplicationPriority().getPriority());
    entry.put("type", app.getApplicationType());
    return entry;
  }
}
