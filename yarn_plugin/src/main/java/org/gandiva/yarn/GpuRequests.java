package org.gandiva.yarn;

import java.util.List;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.SchedulingRequest;
import org.apache.hadoop.yarn.api.records.UpdateContainerRequest;
import org.apache.hadoop.yarn.exceptions.YarnRuntimeException;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ContainerUpdates;

/**
 * Tells masters at once which ways of asking for GPUs lead nowhere. Hadoop's own exception for it
 * has another name in 3.5, thus its parent class.
 */
final class GpuRequests {
  private GpuRequests() {}

  /**
   * Checks one heartbeat.
   *
   * @throws YarnRuntimeException for GPU SchedulingRequests, more GPUs for a live container, and
   *     promotion of an opportunistic GPU container
   */
  static void check(
      GandivaScheduler scheduler,
      ApplicationAttemptId attempt,
      List<SchedulingRequest> requests,
      ContainerUpdates updates) {
    if (requests != null) {
      for (SchedulingRequest request : requests) {
        if (ResourceVector.gpus(request.getResourceSizing().getResources()) > 0
            && scheduler.hasAdoptedQueue(attempt)) {
          throw new YarnRuntimeException(
              "SchedulingRequests with yarn.io/gpu are not supported by Gandiva: ask with a"
                  + " ResourceRequest");
        }
      }
    }
    if (updates != null) {
      updates.getIncreaseRequests().forEach(update -> checkIncrease(scheduler, update));
      updates.getPromotionRequests().forEach(update -> checkPromotion(scheduler, update));
    }
  }

  private static void checkIncrease(GandivaScheduler scheduler, UpdateContainerRequest update) {
    RMContainer container = scheduler.getRMContainer(update.getContainerId());
    long had = container == null ? 0 : ResourceVector.gpus(container.getAllocatedResource());
    if (update.getCapability() != null
        && ResourceVector.gpus(update.getCapability()) > had
        && isAdopted(scheduler, container)) {
      throw new YarnRuntimeException(
          "yarn.io/gpu of "
              + update.getContainerId()
              + " cannot be increased under Gandiva: ask for a container of its own");
    }
  }

  private static void checkPromotion(GandivaScheduler scheduler, UpdateContainerRequest update) {
    RMContainer container = scheduler.getRMContainer(update.getContainerId());
    if (container != null
        && ResourceVector.gpus(container.getAllocatedResource()) > 0
        && isAdopted(scheduler, container)) {
      throw new YarnRuntimeException(
          update.getContainerId() + " holds yarn.io/gpu and cannot be promoted under Gandiva");
    }
  }

  private static boolean isAdopted(GandivaScheduler scheduler, RMContainer container) {
    return container == null
        || scheduler.isAdopted(
            container.getApplicationAttemptId(), container.getNodeLabelExpression());
  }
}
