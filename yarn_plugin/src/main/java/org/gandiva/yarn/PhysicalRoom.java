package org.gandiva.yarn;

import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CSQueue;

/**
 * How many GPUs stock code may hand out where the scheduler sees more of them than there are: those
 * that no container holds, and no more to a queue than its maximum of the physical ones. Elsewhere
 * Hadoop's own counting is right, and decides alone.
 */
final class PhysicalRoom {
  private final GandivaScheduler scheduler;
  private final Veto veto;
  private final OverSubscription overSubscription;

  PhysicalRoom(GandivaScheduler scheduler, Veto veto, OverSubscription overSubscription) {
    this.scheduler = scheduler;
    this.veto = veto;
    this.overSubscription = overSubscription;
  }

  /** Whether stock code may consider the node for an ask of a queue. */
  boolean has(SchedulerNode node, CSQueue queue, long gpus) {
    return (!overSubscription.isInflated(node) || gpus <= overSubscription.physicalFree(node))
        && isWithinMaximum(queue, node.getPartition(), gpus);
  }

  /** Whether stock code may put a container there now. */
  boolean fits(SchedulerNode node, CSQueue queue, long gpus, long given) {
    return gpus <= overSubscription.physicalFree(node) + given
        && isWithinMaximum(queue, node.getPartition(), gpus);
  }

  /**
   * A queue with adopted ones in it holds over-subscribed containers, which say nothing about
   * devices: its node is what bounds it, as long as the core is there to suspend.
   */
  private boolean isWithinMaximum(CSQueue leaf, String partition, long gpus) {
    Adoption adoption = veto.adoption();
    int heightMax = overSubscription.heightMax();
    if (heightMax == 1 || !adoption.overSubscribes(partition)) {
      return true;
    }
    QueueLimits limits = new QueueLimits(scheduler, adoption, heightMax);
    long physical = overSubscription.physicalIn(partition);
    for (CSQueue queue = leaf; queue != null; queue = queue.getParent()) {
      if (!veto.isLifted() && adoption.touchesQueue(queue.getQueuePath())) {
        return true;
      }
      long used = ResourceVector.gpus(queue.getQueueResourceUsage().getUsed(partition));
      if (used + gpus > limits.maxGpus(queue, partition, physical)) {
        return false;
      }
    }
    return true;
  }
}
