package org.gandiva.yarn.replay;

import java.lang.reflect.UndeclaredThrowableException;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.api.ApplicationMasterProtocol;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateRequest;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.protocolrecords.FinishApplicationMasterRequest;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterRequest;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterResponse;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceBlacklistRequest;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.api.records.SchedulingRequest;
import org.apache.hadoop.yarn.api.records.UpdateContainerRequest;
import org.apache.hadoop.yarn.api.records.UpdatedContainer;
import org.apache.hadoop.yarn.security.AMRMTokenIdentifier;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttempt;
import org.gandiva.yarn.ResourceVector;

/** What one application's master says to the ResourceManager, without a process behind it. */
final class SimulatedMaster {
  /** Where the master is in its life. */
  enum Phase {
    WAITING,
    RUNNING,
    FINISHED
  }

  private final String key;
  private final ApplicationId app;
  private final String user;
  private final ApplicationMasterProtocol service;
  private final List<ResourceRequest> unsent = new ArrayList<>();
  private final List<SchedulingRequest> unsentConstrained = new ArrayList<>();
  private final List<UpdateContainerRequest> unsentUpdates = new ArrayList<>();
  private ResourceBlacklistRequest unsentBlacklist;
  private final TreeMap<ContainerId, Container> live = new TreeMap<>();
  private final TreeMap<String, Integer> plainOutstanding = new TreeMap<>();
  private final TreeMap<String, Integer> gpuOutstanding = new TreeMap<>();
  private Phase phase = Phase.WAITING;
  private ApplicationAttemptId attempt;
  private Container container;
  private UserGroupInformation identity;
  private int responseId;
  private Resource maximumCapability;

  SimulatedMaster(String key, ApplicationId app, String user, ApplicationMasterProtocol service) {
    this.key = key;
    this.app = app;
    this.user = user;
    this.service = service;
  }

  String key() {
    return key;
  }

  ApplicationId app() {
    return app;
  }

  String user() {
    return user;
  }

  Phase phase() {
    return phase;
  }

  void phase(Phase next) {
    this.phase = next;
  }

  /** The master's own container; null before the master runs. */
  Container container() {
    return container;
  }

  /** Worker containers this master was given and that have not completed. */
  Map<ContainerId, Container> live() {
    return live;
  }

  /** Registers the attempt that the ResourceManager launched. */
  void register(RMAppAttempt launchedAttempt) throws Exception {
    attempt = launchedAttempt.getAppAttemptId();
    container = launchedAttempt.getMasterContainer();
    identity = UserGroupInformation.createRemoteUser(attempt.toString());
    AMRMTokenIdentifier token = launchedAttempt.getAMRMToken().decodeIdentifier();
    identity.addTokenIdentifier(token);
    responseId = 0;
    live.clear();
    RegisterApplicationMasterResponse response =
        as(
            () ->
                service.registerApplicationMaster(
                    RegisterApplicationMasterRequest.newInstance(
                        container.getNodeId().getHost(), 1, "")));
    maximumCapability = response.getMaximumResourceCapability();
    response.getContainersFromPreviousAttempts().forEach(kept -> live.put(kept.getId(), kept));
    phase = Phase.RUNNING;
  }

  /** The greatest container that the ResourceManager promised at registration. */
  Resource maximumCapability() {
    return maximumCapability;
  }

  /** Remembers asks; the next heartbeat carries them. */
  void ask(List<ResourceRequest> asks) {
    unsent.addAll(asks);
    for (ResourceRequest ask : asks) {
      if (ResourceRequest.isAnyLocation(ask.getResourceName())) {
        String slot = slot(ask.getPriority().getPriority(), ask.getAllocationRequestId());
        boolean wantsGpu = ResourceVector.gpus(ask.getCapability()) > 0;
        TreeMap<String, Integer> outstanding = wantsGpu ? gpuOutstanding : plainOutstanding;
        if (ask.getNumContainers() > 0) {
          outstanding.put(slot, ask.getNumContainers());
        } else {
          outstanding.remove(slot);
        }
      }
    }
  }

  /** Remembers asks by tags. */
  void askConstrained(List<SchedulingRequest> requests) {
    unsentConstrained.addAll(requests);
    for (SchedulingRequest request : requests) {
      if (ResourceVector.gpus(request.getResourceSizing().getResources()) == 0) {
        plainOutstanding.put(
            slot(request.getPriority().getPriority(), request.getAllocationRequestId()),
            request.getResourceSizing().getNumAllocations());
      }
    }
  }

  /** Remembers changes of containers. */
  void update(List<UpdateContainerRequest> updates) {
    unsentUpdates.addAll(updates);
  }

  /** Remembers places to be avoided, or to be avoided no more. */
  void blacklist(List<String> additions, List<String> removals) {
    unsentBlacklist = ResourceBlacklistRequest.newInstance(additions, removals);
  }

  /** Its asks were refused: nothing is waited for. */
  void forgetAsks() {
    plainOutstanding.clear();
    gpuOutstanding.clear();
  }

  boolean hasUnsentAsks() {
    return !unsent.isEmpty() || !unsentConstrained.isEmpty() || unsentBlacklist != null;
  }

  boolean wantsPlain() {
    return !plainOutstanding.isEmpty();
  }

  boolean wantsGpus() {
    return !gpuOutstanding.isEmpty();
  }

  /** One heartbeat: sends what is unsent, takes what was allocated. */
  AllocateResponse beat(List<ContainerId> releases) throws Exception {
    AllocateRequest request =
        AllocateRequest.newBuilder()
            .responseId(responseId)
            .askList(new ArrayList<>(unsent))
            .schedulingRequests(new ArrayList<>(unsentConstrained))
            .updateRequests(new ArrayList<>(unsentUpdates))
            .resourceBlacklistRequest(unsentBlacklist)
            .releaseList(releases)
            .build();
    unsent.clear();
    unsentConstrained.clear();
    unsentUpdates.clear();
    unsentBlacklist = null;
    AllocateResponse response = as(() -> service.allocate(request));
    responseId = response.getResponseId();
    for (Container given : response.getAllocatedContainers()) {
      live.put(given.getId(), given);
      countDown(given);
    }
    for (UpdatedContainer updated : response.getUpdatedContainers()) {
      live.put(updated.getContainer().getId(), updated.getContainer());
    }
    return response;
  }

  private void countDown(Container given) {
    String slot = slot(given.getPriority().getPriority(), given.getAllocationRequestId());
    boolean hasGpu = ResourceVector.gpus(given.getResource()) > 0;
    (hasGpu ? gpuOutstanding : plainOutstanding)
        .computeIfPresent(slot, (ignored, left) -> left > 1 ? left - 1 : null);
  }

  /** Tells the ResourceManager that the work is done. */
  void unregister(FinalApplicationStatus status) throws Exception {
    FinishApplicationMasterRequest request =
        FinishApplicationMasterRequest.newInstance(status, "", "");
    as(() -> service.finishApplicationMaster(request));
  }

  /** A heartbeat without news. */
  AllocateResponse beat() throws Exception {
    return beat(Collections.emptyList());
  }

  private <T> T as(PrivilegedExceptionAction<T> action) throws Exception {
    try {
      return identity.doAs(action);
    } catch (UndeclaredThrowableException e) {
      throw e.getCause() instanceof Exception ? (Exception) e.getCause() : e;
    }
  }

  private static String slot(int priority, long allocationRequestId) {
    return priority + "/" + allocationRequestId;
  }
}
