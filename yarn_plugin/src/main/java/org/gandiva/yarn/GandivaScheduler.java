package org.gandiva.yarn;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.api.records.SchedulingRequest;
import org.apache.hadoop.yarn.exceptions.YarnException;
import org.apache.hadoop.yarn.server.resourcemanager.RMContext;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttempt;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainerEventType;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.Allocation;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ContainerUpdates;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CSQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.ResourceCommitRequest;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerApp;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.SchedulerEvent;
import org.gandiva.yarn.core.CoreService;
import org.gandiva.yarn.gateway.CallWatcher;
import org.gandiva.yarn.gateway.EventQueue;
import org.gandiva.yarn.gateway.GandivaGateway;
import org.gandiva.yarn.gateway.ProtocolException;
import org.gandiva.yarn.gateway.Substrate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Hadoop's CapacityScheduler with GPU containers placed by the core process. Queues, ACLs, limits
 * of masters, node labels, metrics, and every ask without a GPU stay Hadoop's.
 *
 * <p>An exception out of {@link #handle} would end the ResourceManager. So super's method runs
 * exactly once and outside of our try blocks, and only our own code is caught, counted and logged.
 * No thread of the ResourceManager ever waits for the core.
 */
public class GandivaScheduler extends CapacityScheduler implements Substrate {
  private static final Logger LOG = LoggerFactory.getLogger(GandivaScheduler.class);

  private final CommitGate gate = new CommitGate();
  private final ForeignGpuGuard guard = new ForeignGpuGuard(this);
  private final Adopter adopter = new Adopter(this);
  private final AtomicLong ownErrors = new AtomicLong();
  private final GangCommitter committer = new GangCommitter(this, gate, writeLock);
  private final Explanations explanations = new Explanations(this);
  private final MasterMessages messages = new MasterMessages(this);
  private EventQueue events;
  private GandivaGateway gateway;
  private SchedulerEvents translation;
  private OverSubscription overSubscription;
  private PhysicalRoom physicalRoom;
  private SettingsEvents settingsEvents;
  private Veto veto;
  private RecoveryHold recoveryHold;
  private CoreOrders orders;
  private CoreService core;
  private GandivaMetrics metrics;

  /** Returns what the core process calls. */
  public GandivaGateway gateway() {
    return gateway;
  }

  /** Returns how often code of this plug-in failed and was caught. */
  public long ownErrors() {
    return ownErrors.get();
  }

  /** Returns how many GPU proposals of stock code were refused. */
  public long foreignGpusRefused() {
    return guard.refusedTotal();
  }

  /** Returns how often the preemption monitor's wish for a GPU container became a question. */
  public long reclaimsAsked() {
    return translation.reclaimsAsked();
  }

  /** Returns what /jmx shows. */
  public GandivaMXBean metrics() {
    return metrics;
  }

  /** Returns the port that the bridge listens on; 0 while it is closed. */
  public int bridgePort() {
    return core.bridgePort();
  }

  @Override
  public void serviceInit(Configuration conf) throws Exception {
    GandivaConfiguration settings = new GandivaConfiguration(conf);
    events = new EventQueue(settings.eventsMax());
    gateway = new GandivaGateway(this, events);
    veto = new Veto(adopter.read(conf));
    overSubscription = new OverSubscription(this, veto, settings);
    physicalRoom = new PhysicalRoom(this, veto, overSubscription);
    settingsEvents = new SettingsEvents(this, veto, settings.heightMax(), this::offer);
    recoveryHold = new RecoveryHold(settings.recoveryHoldMs(), System::nanoTime);
    orders = new CoreOrders(this, committer, overSubscription);
    CoreFallback fallback =
        new CoreFallback(veto, overSubscription, this::own, this::afterFallback);
    core = new CoreService(gateway, fallback);
    metrics = new GandivaMetrics(this, core, fallback, events);
    translation = new SchedulerEvents(this, overSubscription, settingsEvents, this::offer);
    GpuAskProcessor.install(conf);
    super.serviceInit(adopter.scaled(conf, veto.adoption(), settings.heightMax()));
  }

  /** Takes over a changed configuration whole, or keeps the one in force and says why. */
  @Override
  public void reinitialize(Configuration conf, RMContext context) throws IOException {
    Adoption next = adopter.reread(conf);
    super.reinitialize(adopter.scaled(conf, next, overSubscription.heightMax()), context);
    own(
        () -> {
          adopter.apply(next, veto, settingsEvents, overSubscription);
        });
  }

  @Override
  public void serviceStart() throws Exception {
    super.serviceStart();
    core.start(getConfig());
    metrics.register();
  }

  @Override
  public void serviceStop() throws Exception {
    if (core != null) {
      core.stop();
      metrics.unregister();
    }
    super.serviceStop();
  }

  @Override
  public void handle(SchedulerEvent event) {
    SchedulerEvent passed = own(() -> translation.before(event), event);
    if (passed == null) {
      return; // The monitor's wish to kill what can be suspended.
    }
    super.handle(passed);
    for (SchedulerEvent follower :
        own(() -> translation.followersOf(passed), Collections.<SchedulerEvent>emptyList())) {
      super.handle(follower);
    }
    own(() -> translation.after(passed));
  }

  @Override
  public Allocation allocate(
      ApplicationAttemptId attempt,
      List<ResourceRequest> asks,
      List<SchedulingRequest> schedulingRequests,
      List<ContainerId> releases,
      List<String> blacklistAdditions,
      List<String> blacklistRemovals,
      ContainerUpdates updates) {
    // Unknown or gone, as super will say: no gate is kept for it.
    boolean isKnown = getApplicationAttempt(attempt) != null;
    Lock shared = isKnown ? gate.shared(attempt) : new ReentrantLock();
    shared.lock();
    try {
      return super.allocate(
          attempt,
          asks,
          schedulingRequests,
          releases,
          blacklistAdditions,
          blacklistRemovals,
          updates);
    } finally {
      own(() -> translation.onHeartbeat(attempt));
      shared.unlock();
    }
  }

  @Override
  @SuppressWarnings({"rawtypes", "unchecked"})
  public boolean tryCommit(Resource cluster, ResourceCommitRequest request, boolean updatePending) {
    ResourceCommitRequest<FiCaSchedulerApp, FiCaSchedulerNode> proposal = request;
    if (!own(() -> ForeignGpuGuard.isForeign(proposal), false)) {
      return super.tryCommit(cluster, request, updatePending);
    }
    // One look at what is free and the container that takes it, with nothing in between.
    writeLock.lock();
    try {
      if (own(() -> guard.refuses(proposal), true)) {
        ForeignGpuGuard.releaseUnconfirmed(proposal);
        own(() -> translation.onForeignGpu(proposal, guard.count(proposal)));
        return false;
      }
      boolean isCommitted = super.tryCommit(cluster, request, updatePending);
      if (isCommitted) {
        own(() -> translation.onForeignGpuAllocated(proposal));
      }
      return isCommitted;
    } finally {
      writeLock.unlock();
    }
  }

  @Override
  protected void completedContainerInternal(
      RMContainer container, ContainerStatus status, RMContainerEventType event) {
    if (container.isAMContainer()) {
      own(() -> explanations.clear(container.getApplicationAttemptId()));
    }
    boolean isTold = own(() -> translation.isLiveGpuContainer(container), false);
    super.completedContainerInternal(container, status, event);
    if (isTold) {
      own(() -> translation.onCompleted(container, status));
    }
  }

  @Override
  public String moveApplication(ApplicationId app, String queue) throws YarnException {
    String moved = super.moveApplication(app, queue);
    own(() -> translation.onMoved(app));
    own(adopter::releaseReservations);
    return moved;
  }

  @Override
  public Resource getMaximumResourceCapability() {
    Resource maximum = super.getMaximumResourceCapability();
    return overSubscription == null ? maximum : overSubscription.capPhysical(maximum);
  }

  @Override
  public Resource getMaximumResourceCapability(String queue) {
    Resource maximum = super.getMaximumResourceCapability(queue);
    return overSubscription == null ? maximum : overSubscription.capPhysical(maximum);
  }

  // What the gateway asks.

  @Override
  public String schedulerClass() {
    return getClass().getName();
  }

  @Override
  public List<ObjectNode> snapshot() {
    orders.paySnapshot();
    return new Snapshot(this, settingsEvents).write();
  }

  @Override
  public void admit(String managed) throws ProtocolException {
    core.admit(managed);
  }

  @Override
  public CallWatcher callWatcher() {
    return core.watch();
  }

  @Override
  public ObjectNode apply(ObjectNode effect) throws ProtocolException {
    return orders.apply(effect);
  }

  // What the parts of the plug-in share.

  Adoption adoption() {
    return veto.adoption();
  }

  /** Whether an attempt's GPU asks in a partition are the core's alone to serve, now. */
  boolean isOurs(ApplicationAttemptId attempt, String partition) {
    return veto.holdsAll() || own(() -> isAdopted(attempt, partition) && !veto.isLifted(), true);
  }

  /** Whether an attempt's GPU asks and containers in a partition are adopted. */
  boolean isAdopted(ApplicationAttemptId attempt, String partition) {
    String queue = queuePath(attempt);
    return queue == null || adoption().adopts(queue, partition == null ? "" : partition);
  }

  /** Whether an attempt's queue is adopted, in whichever partition. */
  boolean hasAdoptedQueue(ApplicationAttemptId attempt) {
    String queue = queuePath(attempt);
    return adoption().mode() != Mode.OBSERVE && (queue == null || adoption().hasQueue(queue));
  }

  /** Returns the queue that an attempt is in now, wherever it was moved; null for none. */
  private String queuePath(ApplicationAttemptId attempt) {
    FiCaSchedulerApp app = getApplicationAttempt(attempt);
    return app == null ? null : ((CSQueue) app.getQueue()).getQueuePath();
  }

  /** Whether no GPU ask is left to stock code: a node's heartbeat can place none. */
  public boolean placesAllGpus() {
    return veto.holdsAll();
  }

  /** Whether stock code may look at a node for an attempt's GPU ask. */
  boolean hasPhysicalRoom(ApplicationAttemptId attempt, SchedulerNode node, long gpus) {
    return own(
        () -> {
          FiCaSchedulerApp app = getApplicationAttempt(attempt);
          return app != null && physicalRoom.has(node, (CSQueue) app.getQueue(), gpus);
        },
        false);
  }

  PhysicalRoom physicalRoom() {
    return physicalRoom;
  }

  /** What the core may fill of a node. */
  Resource fillable(SchedulerNode node) {
    return overSubscription.fillable(node);
  }

  long nowMs() {
    return getClock().getTime();
  }

  /** Returns the attempt of an application that the scheduler holds; null where there is none. */
  FiCaSchedulerApp liveAttempt(RMApp app) {
    RMAppAttempt attempt = app == null ? null : app.getCurrentAppAttempt();
    FiCaSchedulerApp live =
        attempt == null ? null : getApplicationAttempt(attempt.getAppAttemptId());
    return live == null || live.isStopped() ? null : live;
  }

  /** The core's commit took asks out of the table; called with the attempt's gate held. */
  void onCommit(FiCaSchedulerApp app) {
    own(() -> translation.onCommit(app));
  }

  Explanations explanations() {
    return explanations;
  }

  MasterMessages messages() {
    return messages;
  }

  RecoveryHold recoveryHold() {
    return recoveryHold;
  }

  /** Forgets what is kept for an attempt that ended. */
  void forget(ApplicationAttemptId attempt) {
    gate.forget(attempt);
    messages.forget(attempt);
    guard.forget(attempt.getApplicationId());
  }

  /** What stock code has reserved meanwhile goes; the core is told all of what it has given. */
  private void afterFallback() {
    orders.oweSnapshot();
    adopter.releaseReservations();
    events.reset();
  }

  private void offer(ObjectNode event) {
    event.put("at_ms", nowMs());
    events.offer(event);
  }

  private void own(Runnable code) {
    own(
        () -> {
          code.run();
          return null;
        },
        null);
  }

  private <T> T own(Supplier<T> code, T otherwise) {
    try {
      return code.get();
    } catch (RuntimeException | LinkageError | AssertionError e) {
      ownErrors.incrementAndGet();
      LOG.error("Gandiva failed; the ResourceManager goes on without its part", e);
      return otherwise;
    }
  }
}
