package org.gandiva.yarn;

import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainerState;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CSQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.ContainerAllocationProposal;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.ResourceCommitRequest;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.SchedulerContainer;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerApp;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.placement.AppPlacementAllocator;

/**
 * Refuses every GPU proposal of stock code for an ask that is the core's, and every other one above
 * the physical GPUs of its node. All allocations pass the scheduler's tryCommit (synchronous,
 * asynchronous, reservation, increase, promotion, placement processor), so this one place is enough
 * to keep stock code from handing out inflated GPUs.
 */
final class ForeignGpuGuard {
  private final GandivaScheduler scheduler;
  private final AtomicLong refusedTotal = new AtomicLong();
  private final ConcurrentMap<ApplicationId, Long> refusedByApp = new ConcurrentHashMap<>();

  ForeignGpuGuard(GandivaScheduler scheduler) {
    this.scheduler = scheduler;
  }

  /** Whether stock code wants to hand out or reserve GPUs. */
  static boolean isForeign(ResourceCommitRequest<FiCaSchedulerApp, FiCaSchedulerNode> request) {
    return !(request instanceof GandivaCommitRequest)
        && request.anythingAllocatedOrReserved()
        && gpus(request) > 0;
  }

  private static long gpus(ResourceCommitRequest<FiCaSchedulerApp, FiCaSchedulerNode> request) {
    return ResourceVector.gpus(
        request.getFirstAllocatedOrReservedContainer().getAllocatedOrReservedResource());
  }

  /** Whether a foreign request must not be committed; asked with the scheduler's lock held. */
  boolean refuses(ResourceCommitRequest<FiCaSchedulerApp, FiCaSchedulerNode> request) {
    SchedulerContainer<FiCaSchedulerApp, FiCaSchedulerNode> wanted =
        request.getFirstAllocatedOrReservedContainer().getAllocatedOrReservedContainer();
    FiCaSchedulerApp app = wanted.getSchedulerApplicationAttempt();
    if (scheduler.isOurs(app.getApplicationAttemptId(), partitionAsked(app, wanted))) {
      return true;
    }
    FiCaSchedulerNode node = wanted.getSchedulerNode();
    CSQueue queue = (CSQueue) app.getQueue();
    return wanted.isAllocated()
        ? !scheduler.physicalRoom().fits(node, queue, gpus(request), released(request, node))
        : !scheduler.physicalRoom().has(node, queue, gpus(request));
  }

  /** GPUs of containers that lazy preemption ends for this one. */
  private static long released(
      ResourceCommitRequest<FiCaSchedulerApp, FiCaSchedulerNode> request, FiCaSchedulerNode node) {
    long gpus = 0;
    for (SchedulerContainer<FiCaSchedulerApp, FiCaSchedulerNode> ended :
        request.getFirstAllocatedOrReservedContainer().getToRelease()) {
      boolean isReserved = ended.getRmContainer().getState() == RMContainerState.RESERVED;
      if (!isReserved && ended.getSchedulerNode().equals(node)) {
        gpus += ResourceVector.gpus(ended.getRmContainer().getAllocatedResource());
      }
    }
    return gpus;
  }

  private static String partitionAsked(
      FiCaSchedulerApp app, SchedulerContainer<FiCaSchedulerApp, FiCaSchedulerNode> wanted) {
    AppPlacementAllocator<FiCaSchedulerNode> asks =
        app.getAppPlacementAllocator(wanted.getSchedulerRequestKey());
    // The placement processor keeps its asks to itself.
    return asks == null
        ? wanted.getSchedulerNode().getPartition()
        : asks.getPrimaryRequestedNodePartition();
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
