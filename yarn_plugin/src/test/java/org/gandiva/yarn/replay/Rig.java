package org.gandiva.yarn.replay;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.resourcemanager.RMContext;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.gandiva.yarn.GandivaConfiguration;
import org.gandiva.yarn.GandivaScheduler;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.gateway.ProtocolException;

/** A ResourceManager for a test, driven through the same JSON as a replay. */
public final class Rig implements AutoCloseable {
  private final Map<String, String> properties = new TreeMap<>();
  private final ReplayHarness harness = new ReplayHarness();
  private final List<JsonNode> events = new ArrayList<>();
  private double nowSeconds;
  private long epoch;
  private long sequence;

  private Rig(Class<?> scheduler) {
    with(YarnConfiguration.RM_SCHEDULER, scheduler.getName());
    with("yarn.resource-types", "yarn.io/gpu");
    with(
        "yarn.scheduler.capacity.resource-calculator",
        "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator");
    with("yarn.scheduler.capacity.root.queues", "default");
    with("yarn.scheduler.capacity.root.default.capacity", "100");
    with("yarn.scheduler.capacity.maximum-am-resource-percent", "1.0");
    with("yarn.scheduler.minimum-allocation-mb", "256");
  }

  /** A rig with our scheduler at this height. */
  public static Rig gandiva(int height) {
    return new Rig(GandivaScheduler.class)
        .with(GandivaConfiguration.HEIGHT_MAX, Integer.toString(height));
  }

  /** A rig with Hadoop's own scheduler. */
  public static Rig stock() {
    return new Rig(CapacityScheduler.class);
  }

  /** Sets a property before the start. */
  public Rig with(String key, String value) {
    properties.put(key, value);
    return this;
  }

  /** Starts a ResourceManager from the files of a folder. */
  public static Rig fromFiles(Path folder) {
    Rig rig = new Rig(GandivaScheduler.class);
    ok(rig.harness.start(Json.write(Json.object().put("conf_dir", folder.toString()))));
    rig.hello();
    return rig;
  }

  /** What {@code yarn rmadmin -refreshQueues} calls. */
  public void refreshFromFiles() throws Exception {
    context().getRMAdminService().refreshQueues();
  }

  /** Starts the ResourceManager; for our scheduler a session of the core as well. */
  public Rig start() {
    ObjectNode request = Json.object().put("epoch_s", 1);
    ObjectNode given = request.putObject("properties");
    properties.forEach(given::put);
    ok(harness.start(Json.write(request)));
    if (harness.scheduler() instanceof GandivaScheduler) {
      hello();
    }
    return this;
  }

  /** Changes a property as an administrator would, with a refresh of the queues. */
  public Rig refresh(String key, String value) throws IOException {
    return refresh(Collections.singletonMap(key, value));
  }

  /** Changes properties as an administrator would, with one refresh of the queues. */
  public Rig refresh(Map<String, String> changes) throws IOException {
    Map<String, String> next = new TreeMap<>(properties);
    next.putAll(changes);
    try {
      anyScheduler().reinitialize(ReplayConfiguration.build(null, next), context());
    } catch (ProtocolException e) {
      throw new AssertionError(e);
    }
    properties.putAll(changes);
    return settle();
  }

  /** Opens a new session of the core. */
  public long hello() {
    epoch =
        ok(scheduler().gateway().hello("{\"protocol\":1,\"client\":\"test\"}"))
            .get("epoch")
            .asLong();
    sequence = 0;
    return epoch;
  }

  /** Returns our scheduler. */
  public GandivaScheduler scheduler() {
    return (GandivaScheduler) harness.scheduler();
  }

  /** Returns the scheduler, whoever's it is. */
  public CapacityScheduler anyScheduler() {
    return (CapacityScheduler) harness.scheduler();
  }

  /** Returns the ResourceManager's context. */
  public RMContext context() {
    return anyScheduler().getRMContext();
  }

  /** Adds nodes n1, n2 … with this many GPUs each. */
  public Rig nodes(int count, int gpus) {
    for (int i = 1; i <= count; i++) {
      ObjectNode action = Json.object().put("do", "add_node").put("host", "n" + i).put("port", 1);
      action.put("rack", "/r" + (i + 1) / 2);
      action.put("memory_mib", 65_536).put("vcores", 64).put("gpus", gpus);
      step(action);
    }
    return this;
  }

  /** Submits a job whose master runs at once. */
  public Rig submit(String key, String user) {
    ObjectNode action = Json.object().put("do", "submit").put("key", key).put("user", user);
    step(action.put("am_memory_mib", 256).put("am_vcores", 1));
    return this;
  }

  /** Submits a job to a queue; its master runs at once. */
  public Rig submitTo(String queue, String key, String user) {
    ObjectNode action = Json.object().put("do", "submit").put("key", key).put("user", user);
    step(action.put("queue", queue).put("am_memory_mib", 256).put("am_vcores", 1));
    return this;
  }

  /** Asks for containers of 256 MiB and one vcore under priority 1. */
  public Rig ask(String key, int count, int gpus) {
    return ask(key, count, gpus, "*", true);
  }

  /** Asks for containers at a place. */
  public Rig ask(String key, int count, int gpus, String place, boolean relaxes) {
    ObjectNode action = Json.object().put("do", "ask").put("key", key);
    ObjectNode ask = action.putArray("asks").addObject();
    ask.put("priority", 1).put("count", count).put("resource_name", place);
    ask.put("relax_locality", relaxes).put("memory_mib", 256).put("vcores", 1).put("gpus", gpus);
    step(action);
    return this;
  }

  /** Does an action on a job. */
  public Rig act(String verb, String key) {
    step(Json.object().put("do", verb).put("key", key));
    return this;
  }

  /** Lets every node send a heartbeat until nothing changes. */
  public Rig settle() {
    step(Json.object().put("do", "settle"));
    return this;
  }

  /** Does one action; its events are kept. */
  public JsonNode step(ObjectNode action) {
    ObjectNode request = Json.object().put("now_s", nowSeconds++);
    request.putArray("actions").add(action);
    JsonNode reply = ok(harness.step(Json.write(request)));
    reply.get("events").forEach(events::add);
    return reply;
  }

  /** Returns the kept events of a kind about a job, and forgets nothing. */
  public List<JsonNode> events(String kind, String key) {
    List<JsonNode> found = new ArrayList<>();
    for (JsonNode event : events) {
      if (event.get("kind").asText().equals(kind) && event.get("key").asText().equals(key)) {
        found.add(event);
      }
    }
    return found;
  }

  /** Returns containers that a job was given. */
  public int allocated(String key) {
    return events("allocated", key).stream().mapToInt(e -> e.get("containers").size()).sum();
  }

  /** Returns the attempt of a job's running master. */
  public String attempt(String key) {
    List<JsonNode> started = events("am_started", key);
    return started.get(started.size() - 1).get("attempt").asText();
  }

  /** Commits one-GPU containers of 256 MiB on the named hosts as one gang. */
  public JsonNode commit(String key, String... hosts) {
    ObjectNode effect = Json.object().put("id", "e").put("op", "commit_gang");
    effect.put("attempt", attempt(key));
    ArrayNode containers = effect.putArray("containers");
    for (String host : hosts) {
      ObjectNode wish = containers.addObject().put("node", host + ":1").put("priority", 1);
      wish.put("allocation_request_id", -1);
      wish.put("memory_mib", 256).put("vcores", 1).put("gpus", 1);
    }
    return apply(effect);
  }

  /** Applies one effect; returns its result. */
  public JsonNode apply(ObjectNode effect) {
    ObjectNode request = Json.object().put("epoch", epoch).put("seq", ++sequence);
    request.putArray("effects").add(effect);
    return ok(scheduler().gateway().apply(Json.write(request))).get("results").get(0);
  }

  /** Sets a node's height as the core would; returns the result. */
  public JsonNode setHeight(String host, int height) {
    ObjectNode effect = Json.object().put("id", "h").put("op", "set_height");
    return apply(effect.put("node", host + ":1").put("height", height));
  }

  /** Fetches the core's events of a kind; the others are lost. */
  public List<JsonNode> takeEvents(String kind) {
    List<JsonNode> found = takeEvents();
    found.removeIf(event -> !event.get("kind").asText().equals(kind));
    return found;
  }

  /** Fetches the core's events. */
  public List<JsonNode> takeEvents() {
    ObjectNode request = Json.object().put("epoch", epoch).put("max", 10_000);
    List<JsonNode> taken = new ArrayList<>();
    JsonNode reply;
    do {
      reply = ok(scheduler().gateway().takeEvents(Json.write(request)));
      reply.get("events").forEach(taken::add);
    } while (reply.get("more").asBoolean());
    return taken;
  }

  /** Returns what a query answers. */
  public JsonNode query(String name, String value) {
    return ok(harness.query(Json.write(Json.object().put(name, value))));
  }

  /** Returns a node of the node query. */
  public JsonNode node(String host) {
    for (JsonNode node : query("nodes", "").get("nodes")) {
      if (node.get("node").asText().equals(host + ":1")) {
        return node;
      }
    }
    throw new AssertionError("no node " + host);
  }

  /** Returns the raw reply of a step. */
  public String rawStep(String json) {
    return harness.step(json);
  }

  /** Returns the effective configuration. */
  public JsonNode configuration() {
    return ok(harness.configuration()).get("configuration");
  }

  private static JsonNode ok(String reply) {
    try {
      JsonNode node = Json.parse(reply);
      if (!node.get("ok").asBoolean()) {
        throw new AssertionError(reply);
      }
      return node;
    } catch (ProtocolException e) {
      throw new AssertionError(e);
    }
  }

  @Override
  public void close() {
    harness.stop();
  }
}
