package org.gandiva.yarn;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMAppState;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainerState;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CSQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.ResourceCommitRequest;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.SchedulerContainer;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerApp;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.AppAttemptAddedSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.AppAttemptRemovedSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.AppRemovedSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.ContainerPreemptEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeAddedSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeLabelsUpdateSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeRemovedSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeResourceUpdateSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeUpdateSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.SchedulerEvent;
import org.gandiva.yarn.gateway.Json;

/** Turns what happens in the scheduler into events for the core, and prepares it where needed. */
final class SchedulerEvents {
  /** A literal, since 3.3 has no constant for it. */
  private static final String ALLOCATOR_KEY = "APPLICATION_PLACEMENT_TYPE_CLASS";

  private final GandivaScheduler scheduler;
  private final OverSubscription overSubscription;
  private final Consumer<ObjectNode> events;
  private final AskLedger asks;
  private final Map<NodeId, ObjectNode> toldNodes = new ConcurrentHashMap<>();
  private final Set<ApplicationAttemptId> restored = ConcurrentHashMap.newKeySet();
  private final Preemption preemption;
  private final SettingsEvents settings;

  SchedulerEvents(
      GandivaScheduler scheduler,
      OverSubscription overSubscription,
      SettingsEvents settings,
      Consumer<ObjectNode> events) {
    this.scheduler = scheduler;
    this.overSubscription = overSubscription;
    this.settings = settings;
    this.events = events;
    this.asks = new AskLedger(events);
    this.preemption = new Preemption(scheduler, events);
  }

  /** Before the scheduler handles an event: returns what it shall handle; null for nothing. */
  SchedulerEvent before(SchedulerEvent event) {
    switch (event.getType()) {
      case APP_ATTEMPT_ADDED:
        vetoGpuAsks(((AppAttemptAddedSchedulerEvent) event).getApplicationAttemptId());
        return event;
      case APP_ATTEMPT_REMOVED:
        scheduler
            .explanations()
            .clear(((AppAttemptRemovedSchedulerEvent) event).getApplicationAttemptID());
        return event;
      case NODE_RESOURCE_UPDATE:
        return overSubscription.onUpdate((NodeResourceUpdateSchedulerEvent) event);
      case MARK_CONTAINER_FOR_PREEMPTION:
      case MARK_CONTAINER_FOR_KILLABLE:
      case MARK_CONTAINER_FOR_NONKILLABLE:
        return preemption.intercepts((ContainerPreemptEvent) event) ? null : event;
      default:
        return event;
    }
  }

  private void vetoGpuAsks(ApplicationAttemptId attempt) {
    RMApp app = scheduler.getRMContext().getRMApps().get(attempt.getApplicationId());
    if (app != null) {
      app.getApplicationSchedulingEnvs()
          .put(ALLOCATOR_KEY, VetoingPlacementAllocator.class.getName());
    }
  }

  /** The events that the scheduler shall handle right after this one: nodes to their heights. */
  List<SchedulerEvent> followersOf(SchedulerEvent event) {
    switch (event.getType()) {
      case NODE_ADDED:
        RMNode node = ((NodeAddedSchedulerEvent) event).getAddedRMNode();
        overSubscription.onArrival(node);
        return overSubscription.refits(Collections.singleton(node.getNodeID()));
      case NODE_LABELS_UPDATE:
        overSubscription.onLabels();
        return overSubscription.refits(
            ((NodeLabelsUpdateSchedulerEvent) event).getUpdatedNodeToLabels().keySet());
      default:
        return Collections.emptyList();
    }
  }

  /** After the scheduler handled an event. */
  void after(SchedulerEvent event) {
    switch (event.getType()) {
      case NODE_ADDED:
        NodeAddedSchedulerEvent added = (NodeAddedSchedulerEvent) event;
        NodeId id = added.getAddedRMNode().getNodeID();
        scheduler.recoveryHold().onAdded(added, scheduler.getNode(id));
        onNode("node_added", id);
        onRecovered(id);
        break;
      case NODE_UPDATE:
        overSubscription.onHeartbeat(((NodeUpdateSchedulerEvent) event).getRMNode().getNodeID());
        break;
      case NODE_REMOVED:
        onNodeRemoved(((NodeRemovedSchedulerEvent) event).getRemovedRMNode());
        break;
      case NODE_RESOURCE_UPDATE:
        onNode("node_updated", ((NodeResourceUpdateSchedulerEvent) event).getRMNode().getNodeID());
        break;
      case NODE_LABELS_UPDATE:
        ((NodeLabelsUpdateSchedulerEvent) event)
            .getUpdatedNodeToLabels()
            .keySet()
            .forEach(node -> onNode("node_updated", node));
        break;
      case APP_ATTEMPT_ADDED:
        onAttemptAdded(((AppAttemptAddedSchedulerEvent) event).getApplicationAttemptId());
        break;
      case APP_ATTEMPT_REMOVED:
        onAttemptRemoved(((AppAttemptRemovedSchedulerEvent) event).getApplicationAttemptID());
        break;
      case APP_REMOVED:
        onAppRemoved((AppRemovedSchedulerEvent) event);
        break;
      default:
        break;
    }
    tellRestored();
  }

  private void onNode(String kind, NodeId id) {
    FiCaSchedulerNode known = scheduler.getNode(id);
    if (known != null) {
      settings.onNodes(known.getPartition());
    }
    // A height can change on another thread than the one that removes the node.
    synchronized (toldNodes) {
      FiCaSchedulerNode node = scheduler.getNode(id);
      if (node == null) {
        return;
      }
      ObjectNode facts = Snapshot.node(Json.object(), node);
      // A decommissioning node sends an update with every heartbeat.
      if (!facts.equals(toldNodes.put(id, facts)) || kind.equals("node_added")) {
        ObjectNode event = Json.object().put("kind", kind);
        event.setAll(facts);
        events.accept(event);
      }
    }
  }

  /** A node that just came has containers only where it brought them through a restart. */
  private void onRecovered(NodeId id) {
    FiCaSchedulerNode node = scheduler.getNode(id);
    if (node != null) {
      node.getCopiedListOfRunningContainers().stream()
          .filter(Snapshot::holdsGpus)
          .sorted(Comparator.comparing(RMContainer::getContainerId))
          .forEach(container -> tell("container_recovered", container));
    }
  }

  private void tell(String kind, RMContainer container) {
    ObjectNode event = Json.object().put("kind", kind);
    event.put("app", container.getApplicationAttemptId().getApplicationId().toString());
    event.put("attempt", container.getApplicationAttemptId().toString());
    events.accept(Snapshot.container(event, container));
  }

  private void onNodeRemoved(RMNode node) {
    overSubscription.onDeparture(node);
    scheduler.recoveryHold().onRemoved(node.getNodeID());
    synchronized (toldNodes) {
      toldNodes.remove(node.getNodeID());
      events.accept(
          Json.object().put("kind", "node_removed").put("node", node.getNodeID().toString()));
    }
  }

  private void onAttemptAdded(ApplicationAttemptId attempt) {
    RMApp app = scheduler.getRMContext().getRMApps().get(attempt.getApplicationId());
    FiCaSchedulerApp live = scheduler.getApplicationAttempt(attempt);
    if (app != null && live != null) {
      settings.onQueue(((CSQueue) live.getQueue()).getQueuePath());
      events.accept(Snapshot.identity(Json.object().put("kind", "app_added"), app, live));
    }
  }

  private void onAttemptRemoved(ApplicationAttemptId attempt) {
    asks.forget(attempt);
    scheduler.forget(attempt);
  }

  private void onAppRemoved(AppRemovedSchedulerEvent event) {
    ApplicationId id = event.getApplicationID();
    RMApp app = scheduler.getRMContext().getRMApps().get(id);
    RMAppState state = event.getFinalState();
    String outcome = state == null ? "" : state.name();
    String attempt = "";
    if (app != null && state == RMAppState.FINISHED) {
      outcome = app.getFinalApplicationStatus().name();
    }
    if (app != null && app.getCurrentAppAttempt() != null) {
      attempt = app.getCurrentAppAttempt().getAppAttemptId().toString();
    }
    events.accept(
        Json.object()
            .put("kind", "app_removed")
            .put("app", id.toString())
            .put("attempt", attempt)
            .put("final_state", outcome));
  }

  void onHeartbeat(ApplicationAttemptId attempt) {
    FiCaSchedulerApp app = scheduler.getApplicationAttempt(attempt);
    if (app != null && !app.isStopped() && attempt.equals(app.getApplicationAttemptId())) {
      asks.onHeartbeat(app);
      scheduler.explanations().onAsks(app);
    }
    tellRestored();
  }

  long reclaimsAsked() {
    return preemption.asked();
  }

  void onCommit(FiCaSchedulerApp app) {
    asks.onCommit(app);
    scheduler.explanations().onAsks(app);
  }

  void onMoved(ApplicationId id) {
    FiCaSchedulerApp live = scheduler.liveAttempt(scheduler.getRMContext().getRMApps().get(id));
    if (live != null) {
      settings.onQueue(((CSQueue) live.getQueue()).getQueuePath());
      events.accept(
          Json.object()
              .put("kind", "app_moved")
              .put("app", id.toString())
              .put("queue", ((CSQueue) live.getQueue()).getQueuePath()));
    }
  }

  /** Whether the end of this container is news: a GPU container that is not just reserved. */
  boolean isLiveGpuContainer(RMContainer container) {
    return container.getState() != RMContainerState.RESERVED
        && Snapshot.holdsGpus(container)
        && scheduler.getRMContainer(container.getContainerId()) != null;
  }

  void onCompleted(RMContainer container, ContainerStatus status) {
    if (scheduler.getRMContainer(container.getContainerId()) != null) {
      return; // It is still there: the scheduler did not believe the end.
    }
    ApplicationAttemptId attempt = container.getApplicationAttemptId();
    events.accept(
        Json.object()
            .put("kind", "container_completed")
            .put("app", attempt.getApplicationId().toString())
            .put("container", container.getContainerId().toString())
            .put("node", container.getAllocatedNode().toString())
            .put("exit_status", status.getExitStatus()));
    if (container.getContainerRequest() != null) {
      // Its master never fetched it: Hadoop puts the ask back, once this call has returned.
      restored.add(attempt);
    }
  }

  private void tellRestored() {
    if (restored.isEmpty()) {
      return;
    }
    for (ApplicationAttemptId attempt : new ArrayList<>(restored)) {
      restored.remove(attempt);
      FiCaSchedulerApp app = scheduler.getApplicationAttempt(attempt);
      if (app != null && !app.isStopped()) {
        asks.onChange(app);
      }
    }
  }

  /** Stock code handed out a GPU container, which exists now. */
  void onForeignGpuAllocated(ResourceCommitRequest<FiCaSchedulerApp, FiCaSchedulerNode> request) {
    SchedulerContainer<FiCaSchedulerApp, FiCaSchedulerNode> given =
        request.getFirstAllocatedOrReservedContainer().getAllocatedOrReservedContainer();
    // What is put on top of a container is that container, as soon as its master took it.
    if (given.isAllocated() && given.getSchedulerRequestKey().getContainerToUpdate() == null) {
      tell("container_allocated", given.getRmContainer());
    }
  }

  void onForeignGpu(
      ResourceCommitRequest<FiCaSchedulerApp, FiCaSchedulerNode> request, long count) {
    if (count > 0) {
      events.accept(
          Json.object()
              .put("kind", "foreign_gpu_refused")
              .put("app", ForeignGpuGuard.app(request).getApplicationId().toString())
              .put("count", count));
    }
  }
}
