package org.gandiva.yarn.replay;

import java.util.TreeMap;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ResourceScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CSQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.LeafQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerApp;

/** Says, once a change, which masters got no container of their own, and why. */
final class WaitingMasters {
  private final ReplaySession session;
  private final TreeMap<String, String> said = new TreeMap<>();

  WaitingMasters(ReplaySession session) {
    this.session = session;
  }

  void report() {
    for (SimulatedMaster master : session.unfinishedMasters()) {
      if (master.phase() != SimulatedMaster.Phase.WAITING) {
        said.remove(master.key());
        continue;
      }
      String reason = isAdmitted(master) ? "NO_ROOM" : "AM_LIMIT";
      if (!reason.equals(said.put(master.key(), reason))) {
        session.events().write("am_waiting", master).put("reason", reason);
      }
    }
  }

  private boolean isAdmitted(SimulatedMaster master) {
    ResourceScheduler scheduler = session.scheduler();
    RMApp app = session.resourceManager().getRMContext().getRMApps().get(master.app());
    if (!(scheduler instanceof CapacityScheduler) || app == null) {
      return true;
    }
    CSQueue queue = ((CapacityScheduler) scheduler).getQueue(app.getQueue());
    if (!(queue instanceof LeafQueue)) {
      return true;
    }
    for (FiCaSchedulerApp pending : ((LeafQueue) queue).getPendingApplications()) {
      if (pending.getApplicationId().equals(master.app())) {
        return false;
      }
    }
    return true;
  }
}
