package org.gandiva.yarn;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.ams.ApplicationMasterServiceContext;
import org.apache.hadoop.yarn.ams.ApplicationMasterServiceProcessor;
import org.apache.hadoop.yarn.ams.ApplicationMasterServiceUtils;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateRequest;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.protocolrecords.FinishApplicationMasterRequest;
import org.apache.hadoop.yarn.api.protocolrecords.FinishApplicationMasterResponse;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterRequest;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterResponse;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.UpdateContainerError;
import org.apache.hadoop.yarn.api.records.UpdateContainerRequest;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.exceptions.InvalidResourceRequestException;
import org.apache.hadoop.yarn.exceptions.YarnException;
import org.apache.hadoop.yarn.server.resourcemanager.RMContext;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.YarnScheduler;

/**
 * The first of the processors that a master's heartbeat passes. Some ways of asking for containers
 * never reach a scheduler, since processors of Hadoop answer them (SchedulingRequests under the
 * placement processor, opportunistic containers), so they are refused here, by name, as Hadoop
 * refuses an ask above the maximum. A refused change of a container leaves the rest of its
 * heartbeat alone. What is not adopted is left to Hadoop. Hadoop makes the instance by reflection.
 */
public final class GpuAskProcessor implements ApplicationMasterServiceProcessor {
  private RMContext context;
  private ApplicationMasterServiceProcessor next;

  /** Puts this processor before those of the site; a second call changes nothing. */
  static void install(Configuration conf) {
    Set<String> names = new LinkedHashSet<>();
    names.add(GpuAskProcessor.class.getName());
    names.addAll(
        conf.getTrimmedStringCollection(
            YarnConfiguration.RM_APPLICATION_MASTER_SERVICE_PROCESSORS));
    conf.set(
        YarnConfiguration.RM_APPLICATION_MASTER_SERVICE_PROCESSORS,
        String.join(",", names),
        "GandivaScheduler");
  }

  @Override
  public void init(
      ApplicationMasterServiceContext amsContext, ApplicationMasterServiceProcessor nextProcessor) {
    this.context = (RMContext) amsContext;
    this.next = nextProcessor;
  }

  @Override
  public void registerApplicationMaster(
      ApplicationAttemptId attempt,
      RegisterApplicationMasterRequest request,
      RegisterApplicationMasterResponse response)
      throws IOException, YarnException {
    next.registerApplicationMaster(attempt, request, response);
  }

  @Override
  public void allocate(
      ApplicationAttemptId attempt, AllocateRequest request, AllocateResponse response)
      throws YarnException {
    List<UpdateContainerError> refused = Collections.emptyList();
    YarnScheduler current = context.getScheduler();
    if (current instanceof GandivaScheduler) {
      GandivaScheduler scheduler = (GandivaScheduler) current;
      if (scheduler.hasAdoptedQueue(attempt)) {
        refuse(attempt, GpuRequests.whyNotConstrained(request.getSchedulingRequests()));
        refuse(attempt, GpuRequests.whyNotAsked(request.getAskList()));
      }
      refused = takeRefused(scheduler, request);
    }
    next.allocate(attempt, request, response);
    if (current instanceof GandivaScheduler) {
      ((GandivaScheduler) current).messages().deliver(attempt, response);
    }
    if (!refused.isEmpty()) {
      ApplicationMasterServiceUtils.addToUpdateContainerErrors(response, refused);
    }
  }

  /** As Hadoop does it: the heartbeat fails, and the application's diagnostics say why. */
  private void refuse(ApplicationAttemptId attempt, String reason)
      throws InvalidResourceRequestException {
    if (reason == null) {
      return;
    }
    RMApp app = context.getRMApps().get(attempt.getApplicationId());
    if (app != null && app.getRMAppAttempt(attempt) != null) {
      app.getRMAppAttempt(attempt).updateAMLaunchDiagnostics(reason);
    }
    throw new InvalidResourceRequestException(reason);
  }

  private static List<UpdateContainerError> takeRefused(
      GandivaScheduler scheduler, AllocateRequest request) {
    List<UpdateContainerRequest> kept = new ArrayList<>();
    List<UpdateContainerError> refused = new ArrayList<>();
    for (UpdateContainerRequest update : request.getUpdateRequests()) {
      RMContainer container = scheduler.getRMContainer(update.getContainerId());
      String reason =
          isAdopted(scheduler, container) ? GpuRequests.whyNotUpdated(update, container) : null;
      if (reason == null) {
        kept.add(update);
      } else {
        UpdateContainerError error = UpdateContainerError.newInstance(reason, update);
        error.setCurrentContainerVersion(container.getContainer().getVersion());
        refused.add(error);
      }
    }
    if (!refused.isEmpty()) {
      request.setUpdateRequests(kept);
    }
    return refused;
  }

  /** A container that is gone, as well as one that is not adopted, is stock code's to judge. */
  private static boolean isAdopted(GandivaScheduler scheduler, RMContainer container) {
    return container != null
        && scheduler.isAdopted(
            container.getApplicationAttemptId(), container.getNodeLabelExpression());
  }

  @Override
  public void finishApplicationMaster(
      ApplicationAttemptId attempt,
      FinishApplicationMasterRequest request,
      FinishApplicationMasterResponse response) {
    next.finishApplicationMaster(attempt, request, response);
  }
}
