package org.gandiva.yarn;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.server.resourcemanager.RMContext;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainerEventType;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainerState;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerUtils;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.SchedulingMode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.ContainerAllocationProposal;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.SchedulerContainer;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerApp;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerNode;
import org.apache.hadoop.yarn.server.utils.BuilderUtils;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.gateway.ProtocolException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Creates all containers of a gang on the nodes that the core named, or none. */
final class GangCommitter {
  private static final Logger LOG = LoggerFactory.getLogger(GangCommitter.class);
  private static final int CONTAINERS_MAX = 10_000;
  private static final int CONTAINERS_PER_HOLD = 8;
  private static final long NANOS_PER_HOLD = TimeUnit.MILLISECONDS.toNanos(5);

  private final GandivaScheduler scheduler;
  private final CommitGate gate;
  private final Lock schedulerLock;

  GangCommitter(GandivaScheduler scheduler, CommitGate gate, Lock schedulerLock) {
    this.scheduler = scheduler;
    this.gate = gate;
    this.schedulerLock = schedulerLock;
  }

  /** Commits a gang; the result says what the core may believe. */
  ObjectNode commit(ObjectNode effect) throws ProtocolException {
    ApplicationAttemptId attempt = attempt(effect);
    List<ObjectNode> wishes = Json.objects(effect, "containers");
    ObjectNode result = Json.object().put("id", Json.text(effect, "id"));
    if (wishes.isEmpty() || wishes.size() > CONTAINERS_MAX) {
      throw ProtocolException.badRequest(
          "containers: found " + wishes.size() + ", expected 1 to " + CONTAINERS_MAX);
    }
    if (!isLive(attempt)) {
      // No gate is kept for an attempt that is not there.
      return result
          .put("code", CommitCode.ASK_GONE.name())
          .put("detail", attempt + " is not live")
          .put("index", 0);
    }
    Lock alone = gate.exclusive(attempt);
    alone.lock();
    try {
      commit(attempt, wishes, result);
    } finally {
      alone.unlock();
    }
    return result;
  }

  private boolean isLive(ApplicationAttemptId attempt) {
    FiCaSchedulerApp app = scheduler.getApplicationAttempt(attempt);
    return app != null && !app.isStopped() && app.getApplicationAttemptId().equals(attempt);
  }

  private void commit(ApplicationAttemptId attempt, List<ObjectNode> wishes, ObjectNode result)
      throws ProtocolException {
    List<RMContainer> done = new ArrayList<>();
    int index = 0;
    try {
      FiCaSchedulerApp app = application(attempt);
      GangPlan plan = new GangPlan(scheduler, app);
      for (; index < wishes.size(); index++) {
        plan.add(wishes.get(index));
      }
      create(app, plan.planned(), done);
      scheduler.onCommit(app);
      result.put("code", CommitCode.OK.name());
      ArrayNode containers = result.putArray("containers");
      done.forEach(container -> containers.add(container.getContainerId().toString()));
    } catch (CommitRefusal refusal) {
      int failed = index < wishes.size() ? index : done.size();
      rollBack(done);
      result.put("code", refusal.code().name());
      result.put("detail", refusal.getMessage());
      result.put("index", failed);
    } catch (RuntimeException e) {
      // A gang is whole or absent, also where Hadoop's code or ours fails half-way.
      rollBack(done);
      throw e;
    }
  }

  private FiCaSchedulerApp application(ApplicationAttemptId attempt) throws CommitRefusal {
    RMContext context = scheduler.getRMContext();
    if (context.isWorkPreservingRecoveryEnabled()
        && !context.isSchedulerReadyForAllocatingContainers()) {
      throw new CommitRefusal(CommitCode.NOT_READY, "the scheduler waits for nodes");
    }
    if (!isLive(attempt)) {
      throw new CommitRefusal(CommitCode.ASK_GONE, attempt + " is not live");
    }
    return scheduler.getApplicationAttempt(attempt);
  }

  /** Holds the scheduler's lock for a few containers at a time, so that heartbeats get between. */
  private void create(FiCaSchedulerApp app, List<PlannedContainer> plan, List<RMContainer> done)
      throws CommitRefusal {
    while (done.size() < plan.size()) {
      schedulerLock.lock();
      try {
        long until = System.nanoTime() + NANOS_PER_HOLD;
        int last = Math.min(plan.size(), done.size() + CONTAINERS_PER_HOLD);
        do {
          done.add(create(app, plan.get(done.size())));
        } while (done.size() < last && System.nanoTime() < until);
      } finally {
        schedulerLock.unlock();
      }
    }
  }

  private RMContainer create(FiCaSchedulerApp app, PlannedContainer plan) throws CommitRefusal {
    // No id yet: a refusal must burn none.
    Container container =
        BuilderUtils.newContainer(
            null,
            plan.node.getNodeID(),
            plan.node.getRMNode().getHttpAddress(),
            plan.capability,
            plan.key.getPriority(),
            null,
            plan.key.getAllocationRequestId());
    RMContainer created = app.allocate(plan.node, plan.key, container);
    if (created == null) {
      throw new CommitRefusal(CommitCode.ASK_GONE, "the ask was withdrawn meanwhile");
    }
    SchedulerContainer<FiCaSchedulerApp, FiCaSchedulerNode> where =
        new SchedulerContainer<>(app, plan.node, created, plan.node.getPartition(), true);
    GandivaCommitRequest request =
        new GandivaCommitRequest(
            new ContainerAllocationProposal<>(
                where,
                null,
                null,
                plan.locality,
                plan.locality,
                SchedulingMode.RESPECT_PARTITION_EXCLUSIVITY,
                plan.capability));
    app.incUnconfirmedRes(plan.capability);
    if (!scheduler.tryCommit(scheduler.getClusterResource(), request, true)) {
      throw refused(app, plan);
    }
    return created;
  }

  /** Every other reason was checked a moment ago; what changed since is looked at again. */
  private CommitRefusal refused(FiCaSchedulerApp app, PlannedContainer plan) {
    GangPlan again = new GangPlan(scheduler, app);
    ObjectNode wish = Json.object().put("node", plan.node.getNodeID().toString());
    wish.put("priority", plan.key.getPriority().getPriority());
    wish.put("allocation_request_id", plan.key.getAllocationRequestId());
    ResourceVector.write(wish, plan.capability);
    try {
      again.add(wish);
    } catch (CommitRefusal refusal) {
      return refusal;
    } catch (ProtocolException e) {
      throw new IllegalStateException(e);
    }
    return new CommitRefusal(
        CommitCode.USER_LIMIT,
        app.getUser() + " has the share of one user in " + app.getQueueName());
  }

  private void rollBack(List<RMContainer> done) {
    for (RMContainer container : done) {
      end(container, "Its gang could not be allocated whole");
    }
  }

  /** Gives the named containers back; those that are gone already count as given back. */
  ObjectNode release(ObjectNode effect) throws ProtocolException {
    ApplicationAttemptId attempt = attempt(effect);
    ObjectNode result = Json.object().put("id", Json.text(effect, "id"));
    // All of it is read before anything is given back: a message is believed whole or not at all.
    List<ContainerId> ids = containers(effect);
    ArrayNode gone = result.putArray("gone");
    if (scheduler.getApplicationAttempt(attempt) == null) {
      ids.forEach(id -> gone.add(id.toString()));
      return result.put("code", CommitCode.OK.name());
    }
    Lock alone = gate.exclusive(attempt);
    alone.lock();
    try {
      for (ContainerId id : ids) {
        RMContainer container = scheduler.getRMContainer(id);
        if (container == null || !isOf(attempt, container)) {
          gone.add(id.toString());
        } else {
          end(container, "Released by Gandiva");
        }
      }
    } finally {
      alone.unlock();
    }
    return result.put("code", CommitCode.OK.name());
  }

  /** Containers that outlived their master keep the attempt that they were allocated for. */
  private static boolean isOf(ApplicationAttemptId attempt, RMContainer container) {
    return container
        .getApplicationAttemptId()
        .getApplicationId()
        .equals(attempt.getApplicationId());
  }

  private List<ContainerId> containers(ObjectNode effect) throws ProtocolException {
    Set<ContainerId> ids = new LinkedHashSet<>();
    for (String text : Json.texts(effect, "containers")) {
      ContainerId id = container(text);
      RMContainer known = scheduler.getRMContainer(id);
      if (!ids.add(id) || ids.size() > CONTAINERS_MAX) {
        throw ProtocolException.badRequest(
            "containers: found " + id + " twice, or more than " + CONTAINERS_MAX);
      }
      if (known != null && ResourceVector.gpus(known.getAllocatedResource()) == 0) {
        throw ProtocolException.badRequest("containers: " + id + " has no GPU, and is not ours");
      }
    }
    return new ArrayList<>(ids);
  }

  /** A container that its master has not fetched yet can only be killed, and its ask comes back. */
  private void end(RMContainer container, String diagnostics) {
    ContainerStatus status =
        SchedulerUtils.createAbnormalContainerStatus(container.getContainerId(), diagnostics);
    boolean isUnseen = container.getState() == RMContainerState.ALLOCATED;
    LOG.info("{}: {}", container.getContainerId(), diagnostics);
    scheduler.completedContainer(
        container, status, isUnseen ? RMContainerEventType.KILL : RMContainerEventType.RELEASED);
  }

  private static ApplicationAttemptId attempt(ObjectNode effect) throws ProtocolException {
    String text = Json.text(effect, "attempt");
    try {
      return ApplicationAttemptId.fromString(text);
    } catch (IllegalArgumentException e) {
      throw ProtocolException.badRequest("attempt: " + Json.shown(text) + " is no attempt id");
    }
  }

  private static ContainerId container(String text) throws ProtocolException {
    try {
      return ContainerId.fromString(text);
    } catch (IllegalArgumentException e) {
      throw ProtocolException.badRequest("containers: " + Json.shown(text) + " is no container id");
    }
  }
}
