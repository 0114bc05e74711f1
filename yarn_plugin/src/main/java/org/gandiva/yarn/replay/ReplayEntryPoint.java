package org.gandiva.yarn.replay;

import org.gandiva.yarn.GandivaScheduler;
import org.gandiva.yarn.gateway.GandivaGateway;

/** The object that the driver of a replay finds in the JVM. */
public final class ReplayEntryPoint {
  private final ReplayHarness harness = new ReplayHarness();

  /** Returns the harness. */
  public ReplayHarness replay() {
    return harness;
  }

  /** Returns the gateway of the scheduler under test; null where it is not ours. */
  public GandivaGateway gateway() {
    Object scheduler = harness.scheduler();
    return scheduler instanceof GandivaScheduler ? ((GandivaScheduler) scheduler).gateway() : null;
  }
}
