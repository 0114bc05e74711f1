package org.gandiva.yarn.replay;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import org.gandiva.yarn.gateway.Json;

/** Writes actions and effects for a {@link Rig}; what a test does not name has a usual value. */
public final class Act {
  private static final long PATIENCE_MS = 20_000;

  private Act() {}

  /** A node of 64 GiB and 64 cores. */
  public static ObjectNode node(String host, int gpus, String label) {
    ObjectNode action = Json.object().put("do", "add_node").put("host", host).put("port", 1);
    action.put("memory_mib", 65_536).put("vcores", 64).put("gpus", gpus);
    return action.put("label", label);
  }

  /** An application whose master takes 256 MiB and a core. */
  public static ObjectNode submit(String key, String user, String queue) {
    ObjectNode action = Json.object().put("do", "submit").put("key", key).put("user", user);
    return action.put("queue", queue).put("am_memory_mib", 256).put("am_vcores", 1);
  }

  /** One ask of containers of 256 MiB and a core; more are added with {@link #also}. */
  public static ObjectNode ask(String key, int priority, int count, int gpus) {
    ObjectNode action = Json.object().put("do", "ask").put("key", key);
    action.putArray("asks");
    return also(action, priority, count, gpus);
  }

  /** Another ask of the same heartbeat. */
  public static ObjectNode also(ObjectNode action, int priority, int count, int gpus) {
    ObjectNode ask = ((ArrayNode) action.get("asks")).addObject();
    ask.put("priority", priority).put("count", count);
    ask.put("memory_mib", 256).put("vcores", 1).put("gpus", gpus);
    return action;
  }

  /** Sets a field of the last ask. */
  public static ObjectNode where(ObjectNode action, String field, String value) {
    ArrayNode asks = (ArrayNode) action.get("asks");
    ((ObjectNode) asks.get(asks.size() - 1)).put(field, value);
    return action;
  }

  /** A change of one container. */
  public static ObjectNode update(
      String key, String container, String change, int memoryMib, int gpus) {
    ObjectNode action = Json.object().put("do", "update").put("key", key);
    ObjectNode update = action.putArray("updates").addObject();
    update.put("container", container).put("change", change);
    update.put("memory_mib", memoryMib).put("vcores", 1).put("gpus", gpus);
    return action;
  }

  /** The core's order for containers of 256 MiB and a core. */
  public static ObjectNode commit(String attempt, int priority, int gpus, String... hosts) {
    ObjectNode effect = Json.object().put("id", "e").put("op", "commit_gang");
    effect.put("attempt", attempt);
    ArrayNode containers = effect.putArray("containers");
    for (String host : hosts) {
      ObjectNode wish = containers.addObject().put("node", host + ":1").put("priority", priority);
      wish.put("allocation_request_id", -1);
      wish.put("memory_mib", 256).put("vcores", 1).put("gpus", gpus);
    }
    return effect;
  }

  /** Events of a kind. */
  public static List<JsonNode> ofKind(List<JsonNode> events, String kind) {
    return events.stream()
        .filter(event -> event.get("kind").asText().equals(kind))
        .collect(Collectors.toList());
  }

  /** Tries until it holds; threads of Hadoop answer when they like. */
  public static boolean becomes(BooleanSupplier condition) throws InterruptedException {
    long until = System.nanoTime() + PATIENCE_MS * 1_000_000;
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() > until) {
        return false;
      }
      Thread.sleep(20);
    }
    return true;
  }
}
