package org.gandiva.yarn;

import java.util.Optional;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.activities.DiagnosticsCollector;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.SchedulingMode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.placement.LocalityAppPlacementAllocator;

/**
 * Keeps adopted GPU asks in the scheduler's own table, and accepts no node for them: they are
 * served by commits of the core. Every other ask is placed as Hadoop places it. Hadoop makes the
 * instance by reflection, one for each priority of an application.
 */
public class VetoingPlacementAllocator extends LocalityAppPlacementAllocator<FiCaSchedulerNode> {
  private static final String REASON = "GPU asks are placed by Gandiva";
  private static final String FULL = "The node's or the queue's physical GPUs are taken";

  @Override
  public boolean precheckNode(
      SchedulerNode node, SchedulingMode mode, Optional<DiagnosticsCollector> diagnostics) {
    String reason = refusal(node);
    if (reason == null) {
      return super.precheckNode(node, mode, diagnostics);
    }
    diagnostics.ifPresent(collector -> collector.collect(reason, null));
    return false;
  }

  /** Why this node must not be taken for the ask; null where Hadoop may decide. */
  private String refusal(SchedulerNode node) {
    ResourceRequest any = getResourceRequests().get(ResourceRequest.ANY);
    long gpus = any == null ? 0 : ResourceVector.gpus(any.getCapability());
    if (gpus == 0) {
      return null;
    }
    GandivaScheduler scheduler = (GandivaScheduler) rmContext.getScheduler();
    if (scheduler.isOurs(
        appSchedulingInfo.getApplicationAttemptId(), getPrimaryRequestedNodePartition())) {
      return REASON;
    }
    // Refused here and not by the guard alone, so that asks behind this one get their turn.
    return scheduler.hasPhysicalRoom(appSchedulingInfo.getApplicationAttemptId(), node, gpus)
        ? null
        : FULL;
  }

  /** Whether the node is in the partition that the ask names. */
  boolean isPartitionAsked(SchedulerNode node, SchedulingMode mode) {
    return super.precheckNode(node, mode, Optional.empty());
  }
}
