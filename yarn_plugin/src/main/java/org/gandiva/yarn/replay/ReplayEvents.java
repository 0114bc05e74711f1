package org.gandiva.yarn.replay;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerExitStatus;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.RejectedSchedulingRequest;
import org.apache.hadoop.yarn.api.records.UpdateContainerError;
import org.apache.hadoop.yarn.api.records.UpdatedContainer;
import org.apache.hadoop.yarn.event.Event;
import org.apache.hadoop.yarn.server.resourcemanager.RMAppManagerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.RMContext;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMAppEvent;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptEvent;
import org.gandiva.yarn.ResourceVector;
import org.gandiva.yarn.gateway.Json;

/** Watches the ResourceManager's events, and writes down what the driver wants to know. */
final class ReplayEvents implements EventPump.Observer {
  private final RMContext context;
  private final Map<ApplicationId, SimulatedMaster> masters;
  private final TreeSet<ApplicationId> unheard = new TreeSet<>();
  private ArrayNode written = Json.array();
  private long allocatedCount;

  ReplayEvents(RMContext context, Map<ApplicationId, SimulatedMaster> masters) {
    this.context = context;
    this.masters = masters;
  }

  @Override
  public void handling(Event<?> event) {
    if (event instanceof RMAppAttemptEvent) {
      attemptEvent((RMAppAttemptEvent) event);
    } else if (event instanceof RMAppEvent) {
      appEvent((RMAppEvent) event);
    } else if (event instanceof RMAppManagerEvent) {
      managerEvent((RMAppManagerEvent) event);
    }
  }

  private void attemptEvent(RMAppAttemptEvent event) {
    ApplicationId app = event.getApplicationAttemptId().getApplicationId();
    switch (event.getType()) {
      case CONTAINER_ALLOCATED:
        allocatedCount++;
        SimulatedMaster master = masters.get(app);
        if (master != null && master.phase() == SimulatedMaster.Phase.RUNNING) {
          unheard.add(app); // Else it is the master's own container, which nobody fetches.
        }
        break;
      case CONTAINER_FINISHED:
        unheard.add(app);
        break;
      default:
        break;
    }
  }

  private void appEvent(RMAppEvent event) {
    SimulatedMaster master = masters.get(event.getApplicationId());
    if (master == null) {
      return;
    }
    switch (event.getType()) {
      case APP_ACCEPTED:
        write("app_accepted", master).put("app", master.app().toString());
        break;
      case APP_REJECTED:
        rejected(master, event.getDiagnosticMsg());
        break;
      case ATTEMPT_FAILED:
      case ATTEMPT_KILLED:
        master.phase(SimulatedMaster.Phase.WAITING);
        break;
      default:
        break;
    }
  }

  private void managerEvent(RMAppManagerEvent event) {
    SimulatedMaster master = masters.get(event.getApplicationId());
    RMApp app = context.getRMApps().get(event.getApplicationId());
    if (master != null && app != null && master.phase() != SimulatedMaster.Phase.FINISHED) {
      master.phase(SimulatedMaster.Phase.FINISHED);
      write("app_finished", master)
          .put("state", app.getFinalApplicationStatus().name())
          .put("rm_state", app.getState().name());
    }
  }

  void rejected(SimulatedMaster master, String diagnostics) {
    master.phase(SimulatedMaster.Phase.FINISHED);
    write("app_rejected", master).put("diagnostics", diagnostics);
  }

  /** Writes what a master's heartbeat brought. */
  void heard(SimulatedMaster master, AllocateResponse response) {
    List<Container> given =
        response.getAllocatedContainers().stream()
            .sorted(Comparator.comparing(Container::getId))
            .collect(Collectors.toList());
    if (!given.isEmpty()) {
      ArrayNode containers = write("allocated", master).putArray("containers");
      for (Container container : given) {
        ObjectNode entry = containers.addObject();
        entry.put("container", container.getId().toString());
        entry.put("node", container.getNodeId().toString());
        entry.put("priority", container.getPriority().getPriority());
        entry.put("allocation_request_id", container.getAllocationRequestId());
        ResourceVector.write(entry, container.getResource());
      }
    }
    completed(master, response.getCompletedContainersStatuses());
    changed(master, response);
  }

  private void changed(SimulatedMaster master, AllocateResponse response) {
    for (UpdatedContainer updated : response.getUpdatedContainers()) {
      Container container = updated.getContainer();
      ObjectNode event = write("updated", master).put("container", container.getId().toString());
      event.put("change", updated.getUpdateType().name());
      ResourceVector.write(event, container.getResource());
    }
    for (UpdateContainerError error : response.getUpdateErrors()) {
      write("update_refused", master)
          .put("container", error.getUpdateContainerRequest().getContainerId().toString())
          .put("diagnostics", error.getReason());
    }
    for (RejectedSchedulingRequest rejected : response.getRejectedSchedulingRequests()) {
      write("request_rejected", master)
          .put("allocation_request_id", rejected.getRequest().getAllocationRequestId())
          .put("diagnostics", rejected.getReason().name());
    }
  }

  private void completed(SimulatedMaster master, List<ContainerStatus> statuses) {
    List<ContainerStatus> sorted =
        statuses.stream()
            .sorted(Comparator.comparing(ContainerStatus::getContainerId))
            .collect(Collectors.toList());
    ArrayNode ended = Json.array();
    ArrayNode preempted = Json.array();
    for (ContainerStatus status : sorted) {
      Container container = master.live().remove(status.getContainerId());
      boolean taken = status.getExitStatus() == ContainerExitStatus.PREEMPTED;
      ObjectNode entry = (taken ? preempted : ended).addObject();
      entry.put("container", status.getContainerId().toString());
      entry.put("node", container == null ? null : container.getNodeId().toString());
      entry.put("exit_status", status.getExitStatus());
      entry.put("diagnostics", status.getDiagnostics());
    }
    if (ended.size() > 0) {
      write("completed", master).set("containers", ended);
    }
    if (preempted.size() > 0) {
      write("preempted", master).set("containers", preempted);
    }
  }

  ObjectNode write(String kind, SimulatedMaster master) {
    return written.addObject().put("kind", kind).put("key", master.key());
  }

  /** Applications whose master has something to fetch, in id order; the set is emptied. */
  List<ApplicationId> takeUnheard() {
    List<ApplicationId> taken = new ArrayList<>(unheard);
    unheard.clear();
    return taken;
  }

  long allocatedCount() {
    return allocatedCount;
  }

  /** Returns what was written since the last call. */
  ArrayNode take() {
    ArrayNode taken = written;
    written = Json.array();
    return taken;
  }
}
