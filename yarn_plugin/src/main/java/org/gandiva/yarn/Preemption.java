package org.gandiva.yarn;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.ContainerPreemptEvent;
import org.gandiva.yarn.gateway.Json;

/**
 * Turns the stock monitor's wish to take a GPU container into a question to the core, which can
 * suspend where the monitor can only kill.
 */
final class Preemption {
  private static final String PREFIX = "MARK_CONTAINER_FOR_";

  private final GandivaScheduler scheduler;
  private final Consumer<ObjectNode> events;
  private final AtomicLong asked = new AtomicLong();

  Preemption(GandivaScheduler scheduler, Consumer<ObjectNode> events) {
    this.scheduler = scheduler;
    this.events = events;
  }

  /** Returns how many such wishes were turned into a question. */
  long asked() {
    return asked.get();
  }

  /** Whether the event is kept from the scheduler; it was told to the core then. */
  boolean intercepts(ContainerPreemptEvent event) {
    RMContainer container = event.getContainer();
    long gpus = ResourceVector.gpus(container.getAllocatedResource());
    if (gpus == 0 || !scheduler.isAdopted(event.getAppId(), container.getNodeLabelExpression())) {
      return false;
    }
    asked.incrementAndGet();
    String kind = event.getType().name().substring(PREFIX.length()).toLowerCase(Locale.ROOT);
    events.accept(
        Json.object()
            .put("kind", "reclaim_asked")
            .put("app", event.getAppId().getApplicationId().toString())
            .put("attempt", event.getAppId().toString())
            .put("container", container.getContainerId().toString())
            .put("node", container.getAllocatedNode().toString())
            .put("gpus", gpus)
            .put("reason", kind));
    return true;
  }
}
