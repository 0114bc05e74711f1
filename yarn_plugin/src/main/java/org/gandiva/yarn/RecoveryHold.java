package org.gandiva.yarn;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeAddedSchedulerEvent;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.gateway.ProtocolException;

/**
 * Keeps a node free of new commits after a restart of the ResourceManager, while it is known which
 * GPU containers run there and not yet who holds which device: until its agent has reported, or for
 * {@code recovery.hold-ms}. Runs on a clock that nobody sets.
 */
final class RecoveryHold {
  private final int holdMs;
  private final LongSupplier clockNs;
  private final ConcurrentMap<NodeId, Long> sinceNs = new ConcurrentHashMap<>();

  RecoveryHold(int holdMs, LongSupplier clockNs) {
    this.holdMs = holdMs;
    this.clockNs = clockNs;
  }

  /** A node was added, with the containers that it said are running there. */
  void onAdded(NodeAddedSchedulerEvent event, FiCaSchedulerNode node) {
    boolean hasTold = event.getContainerReports() != null && !event.getContainerReports().isEmpty();
    if (hasTold && node != null && hasGpuContainer(node)) {
      begin(node.getNodeID());
    }
  }

  private static boolean hasGpuContainer(FiCaSchedulerNode node) {
    return node.getCopiedListOfRunningContainers().stream()
        .anyMatch(container -> ResourceVector.gpus(container.getAllocatedResource()) > 0);
  }

  void begin(NodeId node) {
    sinceNs.put(node, clockNs.getAsLong());
  }

  void onRemoved(NodeId node) {
    sinceNs.remove(node);
  }

  /** Refuses a commit on a node that is held. */
  void check(NodeId node) throws CommitRefusal {
    long leftMs = leftMs(node);
    if (leftMs > 0) {
      throw new CommitRefusal(
          CommitCode.NOT_READY,
          String.format(
              "%s has recovered GPU containers and waits for its agent, %d s at most",
              node, TimeUnit.MILLISECONDS.toSeconds(leftMs + 999)));
    }
  }

  private long leftMs(NodeId node) {
    Long since = sinceNs.get(node);
    if (since == null) {
      return 0;
    }
    long leftMs = holdMs - TimeUnit.NANOSECONDS.toMillis(clockNs.getAsLong() - since);
    if (leftMs <= 0) {
      sinceNs.remove(node, since);
    }
    return leftMs;
  }

  /** Does the effect agent_reported. */
  ObjectNode agentReported(GandivaScheduler scheduler, ObjectNode effect) throws ProtocolException {
    ObjectNode result = Json.object().put("id", Json.text(effect, "id"));
    try {
      FiCaSchedulerNode node = GangPlan.node(scheduler, Json.text(effect, "node"));
      sinceNs.remove(node.getNodeID());
      return result.put("code", CommitCode.OK.name());
    } catch (CommitRefusal refusal) {
      return result.put("code", refusal.code().name()).put("detail", refusal.getMessage());
    }
  }
}
