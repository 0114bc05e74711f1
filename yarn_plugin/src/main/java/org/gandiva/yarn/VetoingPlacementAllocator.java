package org.gandiva.yarn;

import java.util.Optional;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.activities.DiagnosticsCollector;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.SchedulingMode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.placement.LocalityAppPlacementAllocator;

/**
 * Keeps GPU asks in the scheduler's own table, and accepts no node for them: they are served by
 * commits of the core. Every other ask is placed as Hadoop places it. Hadoop makes the instance by
 * reflection, one for each priority of an application.
 */
public class VetoingPlacementAllocator extends LocalityAppPlacementAllocator<FiCaSchedulerNode> {
  private static final String REASON = "GPU asks are placed by Gandiva";

  @Override
  public boolean precheckNode(
      SchedulerNode node, SchedulingMode mode, Optional<DiagnosticsCollector> diagnostics) {
    if (!isVetoed()) {
      return super.precheckNode(node, mode, diagnostics);
    }
    diagnostics.ifPresent(collector -> collector.collect(REASON, null));
    return false;
  }

  /** Lifting the veto (fallback, adoption modes) is decided here once those exist. */
  private boolean isVetoed() {
    ResourceRequest any = getResourceRequests().get(ResourceRequest.ANY);
    return any != null && ResourceVector.gpus(any.getCapability()) > 0;
  }

  /** Whether the node is in the partition that the ask names. */
  boolean isPartitionAsked(SchedulerNode node, SchedulingMode mode) {
    return super.precheckNode(node, mode, Optional.empty());
  }
}
