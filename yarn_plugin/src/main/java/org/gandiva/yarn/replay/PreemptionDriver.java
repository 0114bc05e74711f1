package org.gandiva.yarn.replay;

import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.resourcemanager.monitor.capacity.ProportionalCapacityPreemptionPolicy;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ResourceScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.gandiva.yarn.gateway.ProtocolException;

/** Runs Hadoop's own preemption policy when the driver says so, on the virtual clock. */
final class PreemptionDriver {
  private final ReplaySession session;
  private ProportionalCapacityPreemptionPolicy policy;

  PreemptionDriver(ReplaySession session) {
    this.session = session;
  }

  void editSchedule() throws Exception {
    if (policy == null) {
      policy = create();
    }
    policy.editSchedule();
    session.beatUnheard();
    // The nodes stop what was taken; their next heartbeats would come by themselves.
    for (SimulatedNode node : session.nodes().values()) {
      session.heartbeat(node);
    }
    session.beatUnheard();
  }

  private ProportionalCapacityPreemptionPolicy create() throws ProtocolException {
    ResourceScheduler scheduler = session.scheduler();
    boolean isOn =
        session
            .configuration()
            .getBoolean(
                YarnConfiguration.RM_SCHEDULER_ENABLE_MONITORS,
                YarnConfiguration.DEFAULT_RM_SCHEDULER_ENABLE_MONITORS);
    if (!isOn || !(scheduler instanceof CapacityScheduler)) {
      throw ProtocolException.badRequest(
          "edit_schedule: found "
              + YarnConfiguration.RM_SCHEDULER_ENABLE_MONITORS
              + "="
              + isOn
              + ", expected true and a CapacityScheduler");
    }
    return new ProportionalCapacityPreemptionPolicy(
        session.resourceManager().getRMContext(), (CapacityScheduler) scheduler, session.clock());
  }
}
