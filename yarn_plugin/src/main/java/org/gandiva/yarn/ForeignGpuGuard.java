package org.gandiva.yarn;

import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.ContainerAllocationProposal;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.ResourceCommitRequest;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerApp;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerNode;

/**
 * Refuses every GPU proposal that is not ours. All allocations pass the scheduler's tryCommit
 * (synchronous, asynchronous, reservation, increase, promotion, placement processor), so this one
 * place is enough to keep stock code from handing out inflated GPUs.
 */
final class ForeignGpuGuard {
  private final AtomicLong refusedTotal = new AtomicLong();
  private final ConcurrentMap<ApplicationId, Long> refusedByApp = new ConcurrentHashMap<>();

  /** Whether the request must not be committed. Adoption modes will let more pass here. */
  boolean refuses(ResourceCommitRequest<FiCaSchedulerApp, FiCaSchedulerNode> request) {
    return !(request instanceof GandivaCommitRequest)
        && request.anythingAllocatedOrReserved()
        && ResourceVector.gpus(
                request.getFirstAllocatedOrReservedContainer().getAllocatedOrReservedResource())
            > 0;
  }

  /** Gives back what the allocator counted as unconfirmed, as the scheduler does on a refusal. */
  static void releaseUnconfirmed(
      ResourceCommitRequest<FiCaSchedulerApp, FiCaSchedulerNode> request) {
    if (!request.getContainersToAllocate().isEmpty()) {
      app(request).decUnconfirmedRes(request.getTotalAllocatedResource());
    }
  }

  /** Counts a refusal; returns the application's count where it is worth telling, else 0. */
  long count(ResourceCommitRequest<FiCaSchedulerApp, FiCaSchedulerNode> request) {
    refusedTotal.incrementAndGet();
    long count = refusedByApp.merge(app(request).getApplicationId(), 1L, Long::sum);
    // A refused ask comes again with every heartbeat: 1, 2, 4, 8 … are told.
    return Long.bitCount(count) == 1 ? count : 0;
  }

  long refusedTotal() {
    return refusedTotal.get();
  }

  void forget(ApplicationId app) {
    refusedByApp.remove(app);
  }

  static FiCaSchedulerApp app(ResourceCommitRequest<FiCaSchedulerApp, FiCaSchedulerNode> request) {
    ContainerAllocationProposal<FiCaSchedulerApp, FiCaSchedulerNode> first =
        request.getFirstAllocatedOrReservedContainer();
    return first.getAllocatedOrReservedContainer().getSchedulerApplicationAttempt();
  }
}
