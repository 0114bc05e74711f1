package org.gandiva.yarn;

import java.util.Map;
import java.util.TreeMap;
import javax.management.ObjectName;
import org.apache.hadoop.metrics2.util.MBeans;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerNode;
import org.gandiva.yarn.core.CoreService;
import org.gandiva.yarn.core.CoreWatch;
import org.gandiva.yarn.gateway.CallCounts;
import org.gandiva.yarn.gateway.EventQueue;

/** Reads what is shown from where it is kept, when it is asked for. */
final class GandivaMetrics implements GandivaMXBean {
  private static final String BAD_REQUEST = "BAD_REQUEST";

  private final GandivaScheduler scheduler;
  private final CoreService core;
  private final CoreFallback fallback;
  private final EventQueue events;
  private ObjectName name;

  GandivaMetrics(
      GandivaScheduler scheduler, CoreService core, CoreFallback fallback, EventQueue events) {
    this.scheduler = scheduler;
    this.core = core;
    this.fallback = fallback;
    this.events = events;
  }

  void register() {
    name = MBeans.register("ResourceManager", "Gandiva", this);
  }

  void unregister() {
    if (name != null) {
      MBeans.unregister(name);
      name = null;
    }
  }

  private CallCounts counts() {
    return scheduler.gateway().counts();
  }

  @Override
  public String getMode() {
    return scheduler.adoption().mode().word();
  }

  @Override
  public String getCoreState() {
    return core.watch().state().name();
  }

  @Override
  public int getCoreConnected() {
    return flag(core.watch().state() == CoreWatch.State.CONNECTED);
  }

  @Override
  public long getCoreStateMs() {
    return core.watch().stateMs();
  }

  @Override
  public long getCoreEpoch() {
    return scheduler.gateway().epoch();
  }

  @Override
  public int getCoreManaged() {
    return flag(core.isManaged());
  }

  @Override
  public long getCoreRestarts() {
    return core.restarts();
  }

  @Override
  public int getCoreDownAlarm() {
    return flag(!core.alarm().isEmpty());
  }

  @Override
  public String getCoreDownReason() {
    return core.alarm();
  }

  @Override
  public long getBreakerOpens() {
    return core.watch().opens();
  }

  @Override
  public String getFallback() {
    return fallback.isExclusive() ? "exclusive" : "wait";
  }

  @Override
  public int getFallbackEngaged() {
    return flag(core.watch().isEngaged());
  }

  @Override
  public long getOwnErrors() {
    return scheduler.ownErrors();
  }

  @Override
  public long getCommitsOk() {
    return counts().doneByOp().getOrDefault("commit_gang", 0L);
  }

  @Override
  public Map<String, Long> getEffectsDone() {
    return counts().doneByOp();
  }

  @Override
  public Map<String, Long> getEffectsRefused() {
    return counts().refusedByCode();
  }

  @Override
  public Map<String, Long> getRequestsRefused() {
    return counts().requestsRefusedByKind();
  }

  @Override
  public long getGarbageRefused() {
    return counts().refusedByCode().getOrDefault(BAD_REQUEST, 0L)
        + counts().requestsRefusedByKind().getOrDefault(BAD_REQUEST, 0L);
  }

  @Override
  public long getForeignGpusRefused() {
    return scheduler.foreignGpusRefused();
  }

  @Override
  public long getPreemptionsReclaimed() {
    return scheduler.reclaimsAsked();
  }

  @Override
  public int getEventsQueued() {
    return events.size();
  }

  @Override
  public long getQueueOverflows() {
    return events.overflows();
  }

  @Override
  public Map<String, Long> getNodesByHeight() {
    Map<String, Long> counts = new TreeMap<>();
    for (FiCaSchedulerNode node : scheduler.getAllNodes()) {
      long physical = ResourceVector.gpus(node.getRMNode().getTotalCapability());
      if (physical > 0) {
        long height = ResourceVector.gpus(node.getTotalResource()) / physical;
        counts.merge(Long.toString(height), 1L, Long::sum);
      }
    }
    return counts;
  }

  private static int flag(boolean isSo) {
    return isSo ? 1 : 0;
  }
}
