package org.gandiva.yarn;

import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.gandiva.yarn.gateway.GandivaGateway;

/** Hadoop's CapacityScheduler with GPU placement decided outside of it. */
public class GandivaScheduler extends CapacityScheduler {
  private final GandivaGateway gateway = new GandivaGateway();

  /** Returns what the core process calls. */
  public GandivaGateway gateway() {
    return gateway;
  }
}
