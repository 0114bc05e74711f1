package org.gandiva.yarn;

import java.util.List;
import org.apache.hadoop.yarn.api.records.ContainerUpdateType;
import org.apache.hadoop.yarn.api.records.ExecutionType;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.api.records.SchedulingRequest;
import org.apache.hadoop.yarn.api.records.UpdateContainerRequest;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;

/**
 * Names the ways of asking for GPUs that lead nowhere under Gandiva: each by a text, null if fine.
 */
final class GpuRequests {
  static final String SCHEDULING_REQUEST =
      "SchedulingRequests with yarn.io/gpu are not supported by Gandiva: ask with a ResourceRequest";
  static final String OPPORTUNISTIC =
      "OPPORTUNISTIC containers with yarn.io/gpu are not supported by Gandiva: ask for GUARANTEED"
          + " ones";

  private GpuRequests() {}

  /** Both placement handlers of Hadoop would choose nodes without the core. */
  static String whyNotConstrained(List<SchedulingRequest> requests) {
    if (requests == null || requests.isEmpty()) {
      return null; // On every heartbeat: no stream for nothing.
    }
    boolean hasGpus =
        requests.stream()
            .anyMatch(r -> ResourceVector.gpus(r.getResourceSizing().getResources()) > 0);
    return hasGpus ? SCHEDULING_REQUEST : null;
  }

  /** Opportunistic containers are counted on no node and may be killed by a NodeManager. */
  static String whyNotAsked(List<ResourceRequest> asks) {
    if (asks == null || asks.isEmpty()) {
      return null;
    }
    for (ResourceRequest ask : asks) {
      if (isOpportunistic(ask)
          && ask.getNumContainers() > 0
          && ResourceVector.gpus(ask.getCapability()) > 0) {
        return OPPORTUNISTIC;
      }
    }
    return null;
  }

  private static boolean isOpportunistic(ResourceRequest ask) {
    return ask.getExecutionTypeRequest() != null
        && ask.getExecutionTypeRequest().getExecutionType() == ExecutionType.OPPORTUNISTIC;
  }

  /**
   * Devices are bound when a container starts, so neither their number nor the guarantee of them
   * can change; memory and vcores can.
   *
   * @param container the container that is to change; null where it is gone, which is stock's to
   *     say
   */
  static String whyNotUpdated(UpdateContainerRequest update, RMContainer container) {
    long had = ResourceVector.gpus(container.getAllocatedResource());
    ContainerUpdateType type = update.getContainerUpdateType();
    if (type == ContainerUpdateType.PROMOTE_EXECUTION_TYPE
        || type == ContainerUpdateType.DEMOTE_EXECUTION_TYPE) {
      return had == 0
          ? null
          : update.getContainerId()
              + " holds yarn.io/gpu and cannot be promoted or demoted under Gandiva";
    }
    long wanted =
        update.getCapability() == null ? had : ResourceVector.gpus(update.getCapability());
    return wanted == had
        ? null
        : String.format(
            "yarn.io/gpu of %s cannot change from %d to %d under Gandiva: ask for a container of"
                + " its own",
            update.getContainerId(), had, wanted);
  }
}
