package org.gandiva.yarn;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.NodeState;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.NodeType;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerAppUtils;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CSQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.SchedulingMode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerApp;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.placement.AppPlacementAllocator;
import org.apache.hadoop.yarn.server.scheduler.SchedulerRequestKey;
import org.apache.hadoop.yarn.util.resource.Resources;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.gateway.ProtocolException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Checks a gang container by container before any is committed, as if those before it existed: a
 * commit by itself checks neither label nor blacklist, and a gang that is taken back half-way would
 * show its master containers that ended before it saw them.
 */
final class GangPlan {
  private static final Logger LOG = LoggerFactory.getLogger(GangPlan.class);

  private final GandivaScheduler scheduler;
  private final FiCaSchedulerApp app;
  private final List<PlannedContainer> planned = new ArrayList<>();
  private final Map<NodeId, Resource> free = new HashMap<>();
  private final Map<SchedulerRequestKey, Integer> taken = new HashMap<>();
  private final Map<String, Resource> gangByPartition = new HashMap<>();

  GangPlan(GandivaScheduler scheduler, FiCaSchedulerApp app) {
    this.scheduler = scheduler;
    this.app = app;
  }

  List<PlannedContainer> planned() {
    return planned;
  }

  /** Checks one more container and adds it. */
  void add(ObjectNode wish) throws CommitRefusal, ProtocolException {
    FiCaSchedulerNode node = node(scheduler, Json.text(wish, "node"));
    scheduler.recoveryHold().check(node.getNodeID());
    SchedulerRequestKey key =
        new SchedulerRequestKey(
            Priority.newInstance(Json.count(wish, "priority")),
            Json.whole(wish, "allocation_request_id"),
            null);
    VetoingPlacementAllocator asks = asks(key);
    Resource capability = capability(asks, wish);
    adopted(asks.getPrimaryRequestedNodePartition(), node.getPartition());
    partition(asks, node);
    if (SchedulerAppUtils.isPlaceBlacklisted(app, node, LOG)) {
      throw new CommitRefusal(CommitCode.BLACKLISTED, node.getNodeID() + " or its rack");
    }
    NodeType locality = locality(asks, node);
    room(node, capability);
    queues(node.getPartition(), capability);
    taken.merge(key, 1, Integer::sum);
    planned.add(new PlannedContainer(node, key, capability, locality));
  }

  /** Returns the running node of this name. */
  static FiCaSchedulerNode node(GandivaScheduler scheduler, String text) throws CommitRefusal {
    NodeId id;
    try {
      id = NodeId.fromString(text);
    } catch (IllegalArgumentException e) {
      throw new CommitRefusal(CommitCode.NODE_STATE, Json.shown(text) + " is no node id");
    }
    FiCaSchedulerNode node = scheduler.getNode(id);
    if (node == null) {
      throw new CommitRefusal(
          CommitCode.NODE_STATE, Json.shown(text) + " is not a node of the scheduler");
    }
    NodeState state = node.getRMNode().getState();
    if (state != NodeState.RUNNING) {
      throw new CommitRefusal(CommitCode.NODE_STATE, text + " is " + state);
    }
    return node;
  }

  private VetoingPlacementAllocator asks(SchedulerRequestKey key) throws CommitRefusal {
    AppPlacementAllocator<FiCaSchedulerNode> asks = app.getAppPlacementAllocator(key);
    int left = asks == null ? 0 : asks.getOutstandingAsksCount(ResourceRequest.ANY);
    if (!(asks instanceof VetoingPlacementAllocator) || left <= taken.getOrDefault(key, 0)) {
      throw new CommitRefusal(
          CommitCode.ASK_GONE,
          String.format(
              "%d containers asked under priority %d, allocation request %d",
              left, key.getPriority().getPriority(), key.getAllocationRequestId()));
    }
    return (VetoingPlacementAllocator) asks;
  }

  private static Resource capability(VetoingPlacementAllocator asks, ObjectNode wish)
      throws CommitRefusal, ProtocolException {
    Resource asked = asks.getPendingAsk(ResourceRequest.ANY).getPerAllocationResource();
    boolean isSame =
        asked.getMemorySize() == Json.whole(wish, "memory_mib")
            && asked.getVirtualCores() == Json.count(wish, "vcores")
            && ResourceVector.gpus(asked) == Json.count(wish, "gpus");
    if (!isSame) {
      throw new CommitRefusal(CommitCode.ASK_GONE, "the ask is now for " + asked);
    }
    return asked;
  }

  /** A node of a partition that was left to the stock scheduler stays its own, shareable or not. */
  private void adopted(String asked, String partition) throws CommitRefusal {
    Adoption adoption = scheduler.adoption();
    if (adoption.mode() == Mode.OBSERVE) {
      throw new CommitRefusal(CommitCode.MODE, "the mode is observe");
    }
    String queue = ((CSQueue) app.getQueue()).getQueuePath();
    if (!adoption.adopts(queue, asked) || !adoption.hasPartition(partition)) {
      throw new CommitRefusal(
          CommitCode.NOT_ADOPTED,
          String.format("queue %s, asked \"%s\", node in \"%s\"", queue, asked, partition));
    }
  }

  /**
   * Partitions are separate clusters for GPU asks: idle GPUs of a shareable partition are not lent,
   * since getting them back would mean to kill.
   */
  private static void partition(VetoingPlacementAllocator asks, FiCaSchedulerNode node)
      throws CommitRefusal {
    if (!asks.isPartitionAsked(node, SchedulingMode.RESPECT_PARTITION_EXCLUSIVITY)) {
      throw new CommitRefusal(
          CommitCode.LABEL,
          String.format(
              "%s is in partition \"%s\", asked was \"%s\"",
              node.getNodeID(), node.getPartition(), asks.getPrimaryRequestedNodePartition()));
    }
  }

  private static NodeType locality(VetoingPlacementAllocator asks, FiCaSchedulerNode node)
      throws CommitRefusal {
    if (asks.canAllocate(NodeType.NODE_LOCAL, node)) {
      return NodeType.NODE_LOCAL;
    }
    String rack = node.getRackName();
    if (asks.canAllocate(NodeType.RACK_LOCAL, node) && asks.canDelayTo(rack)) {
      return NodeType.RACK_LOCAL;
    }
    if (asks.canDelayTo(ResourceRequest.ANY)) {
      return NodeType.OFF_SWITCH;
    }
    throw new CommitRefusal(
        CommitCode.LOCALITY, "the ask does not relax its locality to " + node.getNodeID());
  }

  private void room(FiCaSchedulerNode node, Resource capability) throws CommitRefusal {
    Resource left = free.computeIfAbsent(node.getNodeID(), ignored -> scheduler.fillable(node));
    RMContainer reserved = node.getReservedContainer();
    if (reserved != null || !Resources.fitsIn(capability, left)) {
      String reservation =
          reserved == null ? "" : ", reserved by " + reserved.getApplicationAttemptId();
      throw new CommitRefusal(
          CommitCode.NO_ROOM,
          String.format(
              "%s: memory_mib=%d vcores=%d gpus=%d free%s",
              node.getNodeID(),
              left.getMemorySize(),
              left.getVirtualCores(),
              ResourceVector.gpus(left),
              reservation));
    }
    Resources.subtractFrom(left, capability);
  }

  private void queues(String partition, Resource capability) throws CommitRefusal {
    Resource gang =
        gangByPartition.computeIfAbsent(partition, ignored -> Resources.createResource(0));
    Resources.addTo(gang, capability);
    for (CSQueue queue = (CSQueue) app.getQueue(); queue != null; queue = queue.getParent()) {
      Resource most = queue.getEffectiveMaxCapacity(partition);
      Resource used = queue.getQueueResourceUsage().getUsed(partition);
      if (!Resources.fitsIn(Resources.add(used, gang), most)) {
        throw new CommitRefusal(
            CommitCode.QUEUE_LIMIT,
            String.format("%s uses %s of at most %s", queue.getQueuePath(), used, most));
      }
    }
  }
}
