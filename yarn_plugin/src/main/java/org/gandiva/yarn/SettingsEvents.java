package org.gandiva.yarn;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.function.Consumer;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CSQueue;
import org.gandiva.yarn.gateway.Json;

/** Tells the core the mode, what is adopted, and the limits of all queues, whenever they change. */
final class SettingsEvents {
  private final GandivaScheduler scheduler;
  private final Veto veto;
  private final int heightMax;
  private final Consumer<ObjectNode> events;
  private ObjectNode told = Json.object();

  SettingsEvents(
      GandivaScheduler scheduler, Veto veto, int heightMax, Consumer<ObjectNode> events) {
    this.scheduler = scheduler;
    this.veto = veto;
    this.heightMax = heightMax;
    this.events = events;
  }

  /** Returns all of it, as for a core that knows nothing. */
  synchronized ObjectNode write() {
    Adoption adoption = veto.adoption();
    ObjectNode settings = Json.object().put("mode", adoption.mode().word());
    ArrayNode queues = settings.putArray("adopted_queues");
    for (CSQueue queue : QueueLimits.queues(scheduler)) {
      if (queue.getChildQueues() == null && adoption.hasQueue(queue.getQueuePath())) {
        queues.add(queue.getQueuePath());
      }
    }
    ArrayNode partitions = settings.putArray("adopted_partitions");
    QueueLimits.partitions(scheduler).stream()
        .filter(adoption::hasPartition)
        .forEach(partitions::add);
    settings.put("height_max", heightMax);
    new QueueLimits(scheduler, adoption, heightMax).write(settings.putArray("limits"));
    told = settings;
    return settings;
  }

  /** Tells them, unless the core knows. */
  synchronized void tell() {
    ObjectNode before = told;
    ObjectNode settings = write();
    if (!settings.equals(before)) {
      ObjectNode event = Json.object().put("kind", "settings");
      event.setAll(settings.deepCopy());
      events.accept(event);
    }
  }

  /** A queue that came by itself with its first application is told before that. */
  synchronized void onQueue(String path) {
    for (JsonNode limit : told.path("limits")) {
      if (limit.path("queue").asText().equals(path)) {
        return;
      }
    }
    tell();
  }

  /** Nodes came, went or changed their labels: new partitions, or other shares of mixed vectors. */
  synchronized void onNodes(String partition) {
    boolean isKnown = false;
    for (JsonNode name : told.path("adopted_partitions")) {
      isKnown |= name.asText().equals(partition);
    }
    boolean isMixed = new QueueLimits(scheduler, veto.adoption(), heightMax).isMixed();
    if (isMixed || (!isKnown && veto.adoption().hasPartition(partition))) {
      tell();
    }
  }
}
