package org.gandiva.yarn;

import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.NodeState;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceOption;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeResourceUpdateSchedulerEvent;

/**
 * Makes the scheduler see physical GPUs times the height, so that several jobs can hold containers
 * on one device. The ResourceManager's node keeps the physical count; memory and vcores are never
 * inflated.
 */
final class OverSubscription {
  private static final int NO_TIMEOUT = -1;

  private final int heightMax;
  private final ConcurrentMap<NodeId, Long> physicalByNode = new ConcurrentHashMap<>();

  OverSubscription(int heightMax) {
    this.heightMax = heightMax;
  }

  /** The update that follows a node's arrival; null where there is nothing to inflate. */
  NodeResourceUpdateSchedulerEvent onArrival(RMNode node) {
    long physical = ResourceVector.gpus(node.getTotalCapability());
    physicalByNode.put(node.getNodeID(), physical);
    if (physical == 0 || heightMax == 1) {
      return null;
    }
    return new NodeResourceUpdateSchedulerEvent(
        node, ResourceOption.newInstance(schedulable(node.getTotalCapability()), NO_TIMEOUT));
  }

  /**
   * The update as the scheduler shall see it. A decommissioning node shrinks to what it runs, and
   * must not be inflated again.
   */
  NodeResourceUpdateSchedulerEvent onUpdate(NodeResourceUpdateSchedulerEvent event) {
    RMNode node = event.getRMNode();
    Resource told = event.getResourceOption().getResource();
    if (node.getState() == NodeState.DECOMMISSIONING) {
      return event;
    }
    long physical = ResourceVector.gpus(told);
    physicalByNode.put(node.getNodeID(), physical);
    if (physical == 0 || heightMax == 1) {
      return event;
    }
    return new NodeResourceUpdateSchedulerEvent(
        node,
        ResourceOption.newInstance(
            schedulable(told), event.getResourceOption().getOverCommitTimeout()));
  }

  void onDeparture(RMNode node) {
    physicalByNode.remove(node.getNodeID());
  }

  /** The greatest container that the scheduler may promise: of physical GPUs, never of slots. */
  Resource capPhysical(Resource maximum) {
    // Not Collections.max: the last node may go between a look at it and the call.
    long physical = Long.MAX_VALUE;
    boolean isFirst = true;
    for (long gpus : physicalByNode.values()) {
      physical = isFirst ? gpus : Math.max(physical, gpus);
      isFirst = false;
    }
    long told = ResourceVector.gpus(maximum);
    return told <= physical ? maximum : ResourceVector.withGpus(maximum, physical);
  }

  private Resource schedulable(Resource physical) {
    return ResourceVector.withGpus(physical, ResourceVector.gpus(physical) * heightMax);
  }
}
