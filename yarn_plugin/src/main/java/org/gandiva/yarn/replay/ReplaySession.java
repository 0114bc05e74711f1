package org.gandiva.yarn.replay;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collection;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.security.SecurityUtil;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.exceptions.InvalidResourceRequestException;
import org.apache.hadoop.yarn.server.resourcemanager.ClusterMetrics;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttempt;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.QueueMetrics;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ResourceScheduler;
import org.apache.hadoop.yarn.util.resource.ResourceUtils;
import org.gandiva.yarn.GandivaScheduler;

/**
 * One ResourceManager under virtual time with the nodes and masters that are played to it. Not
 * thread-safe: one driver, one call at a time.
 */
final class ReplaySession {
  private final VirtualClock clock;
  private final YarnConfiguration conf;
  private final ReplayResourceManager rm;
  private final TreeMap<String, SimulatedNode> nodes = new TreeMap<>();
  private final TreeMap<String, SimulatedMaster> mastersByKey = new TreeMap<>();

  /** Without those that finished, so that a long run does not slow down. */
  private final TreeMap<ApplicationId, SimulatedMaster> mastersByApp = new TreeMap<>();

  private final ReplayEvents events;
  private boolean outstandingUnknown;
  private String lastBeaten = "";
  private long heartbeats;
  private long rounds;

  ReplaySession(YarnConfiguration conf, long clusterTimestampMs) {
    this.conf = conf;
    this.clock = new VirtualClock();
    DefaultMetricsSystem.setMiniClusterMode(true);
    QueueMetrics.clearQueueMetrics();
    ClusterMetrics.destroy();
    SecurityUtil.setConfiguration(conf);
    ResourceUtils.resetResourceTypes(conf);
    rm = new ReplayResourceManager(clock, clusterTimestampMs);
    rm.init(conf);
    rm.start();
    events = new ReplayEvents(rm.getRMContext(), mastersByApp);
    rm.pump().observe(events);
  }

  YarnConfiguration configuration() {
    return conf;
  }

  VirtualClock clock() {
    return clock;
  }

  ReplayResourceManager resourceManager() {
    return rm;
  }

  ResourceScheduler scheduler() {
    return rm.getResourceScheduler();
  }

  Map<String, SimulatedNode> nodes() {
    return nodes;
  }

  Map<String, SimulatedMaster> mastersByKey() {
    return mastersByKey;
  }

  Collection<SimulatedMaster> unfinishedMasters() {
    return mastersByApp.values();
  }

  ReplayEvents events() {
    return events;
  }

  void add(SimulatedMaster master) {
    mastersByKey.put(master.key(), master);
    mastersByApp.put(master.app(), master);
  }

  /**
   * Containers may have gone before their master heard of them: its count is no longer the truth.
   */
  void distrustOutstanding() {
    outstandingUnknown = true;
  }

  void heartbeat(SimulatedNode node) throws Exception {
    heartbeats++;
    node.heartbeat();
    drain();
  }

  /** Handles events, and plays masters that were launched, until nothing is left. */
  void drain() throws Exception {
    rm.pump().drain();
    for (ApplicationAttemptId id = rm.launched().poll(); id != null; id = rm.launched().poll()) {
      launch(id);
      rm.pump().drain();
    }
  }

  private void launch(ApplicationAttemptId id) throws Exception {
    SimulatedMaster master = mastersByApp.get(id.getApplicationId());
    RMAppAttempt attempt =
        rm.getRMContext().getRMApps().get(id.getApplicationId()).getRMAppAttempt(id);
    master.register(attempt);
    rm.pump().drain();
    SimulatedNode node = nodeOf(master.container().getNodeId().toString());
    if (node != null) {
      node.start(master.container().getId());
    }
    events
        .write("am_started", master)
        .put("app", master.app().toString())
        .put("attempt", id.toString())
        .put("node", master.container().getNodeId().toString());
    if (master.hasUnsentAsks()) {
      beat(master);
    }
  }

  SimulatedNode nodeOf(String nodeId) {
    SimulatedNode node = nodes.get(nodeId.substring(0, nodeId.lastIndexOf(':')));
    return node != null && node.id().toString().equals(nodeId) ? node : null;
  }

  void beat(SimulatedMaster master) throws Exception {
    try {
      hear(master, master.beat());
    } catch (InvalidResourceRequestException e) {
      master.forgetAsks();
      events.write("ask_refused", master).put("diagnostics", e.getMessage());
    }
  }

  void hear(SimulatedMaster master, AllocateResponse response) throws Exception {
    response
        .getAllocatedContainers()
        .forEach(
            given -> {
              SimulatedNode node = nodeOf(given.getNodeId().toString());
              if (node != null) {
                node.start(given.getId());
              }
            });
    events.heard(master, response);
    rm.pump().drain();
  }

  /** Lets every running master that has something to fetch send a heartbeat. */
  void beatUnheard() throws Exception {
    drain();
    for (ApplicationId app : events.takeUnheard()) {
      SimulatedMaster master = mastersByApp.get(app);
      if (master != null && master.phase() == SimulatedMaster.Phase.RUNNING) {
        beat(master);
      }
    }
    drain();
  }

  /** Settles as far as heartbeats could place something; see {@link #beatRounds}. */
  void settle(int roundsMax) throws Exception {
    beatUnheard();
    if (heartbeatMatters()) {
      beatRounds(roundsMax, true);
    }
  }

  /**
   * Sends heartbeats of all nodes in host order, round after round, until a round changes nothing.
   *
   * @param isFrugal whether to stop as soon as nothing is left that a heartbeat could place
   */
  void beatRounds(int roundsMax, boolean isFrugal) throws Exception {
    beatUnheard();
    boolean isGpuPlacer = placesGpusItself();
    long before;
    int round = 0;
    do {
      rounds++;
      before = progress();
      for (SimulatedNode node : nodes.values()) {
        if (isFrugal && isGpuPlacer && !heartbeatMatters()) {
          break;
        }
        heartbeat(node);
      }
      beatUnheard();
      round++;
    } while (round < roundsMax && progress() != before && (!isFrugal || heartbeatMatters()));
  }

  /** Sends the heartbeats of so many nodes, in host order, going on after the last one. */
  void beatNext(int count) throws Exception {
    for (int sent = 0; sent < count && !nodes.isEmpty(); sent++) {
      Map.Entry<String, SimulatedNode> next = nodes.higherEntry(lastBeaten);
      next = next == null ? nodes.firstEntry() : next;
      lastBeaten = next.getKey();
      heartbeat(next.getValue());
    }
  }

  private long progress() {
    QueueMetrics root = scheduler().getRootQueueMetrics();
    return events.allocatedCount() * 1_000_003L + root.getReservedContainers();
  }

  /** Whether GPU asks are answered by commits of the core, never by a node heartbeat. */
  private boolean placesGpusItself() {
    ResourceScheduler scheduler = scheduler();
    return scheduler instanceof GandivaScheduler && ((GandivaScheduler) scheduler).placesAllGpus();
  }

  private boolean heartbeatMatters() {
    boolean isGpuPlacer = placesGpusItself();
    for (SimulatedMaster master : mastersByApp.values()) {
      if (master.phase() == SimulatedMaster.Phase.WAITING || master.wantsPlain()) {
        return true;
      }
      if (!isGpuPlacer && master.wantsGpus()) {
        return true;
      }
    }
    return outstandingUnknown && !isGpuPlacer;
  }

  ObjectNode statistics(ObjectNode stats) {
    stats.put("heartbeats", heartbeats);
    stats.put("rounds", rounds);
    stats.put("rm_events", rm.pump().handledCount());
    stats.put("containers_allocated", events.allocatedCount());
    return stats;
  }

  ArrayNode takeEvents() {
    mastersByApp.values().removeIf(m -> m.phase() == SimulatedMaster.Phase.FINISHED);
    return events.take();
  }

  void stop() {
    rm.stop();
  }
}
