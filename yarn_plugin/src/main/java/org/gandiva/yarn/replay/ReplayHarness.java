package org.gandiva.yarn.replay;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.util.VersionInfo;
import org.apache.hadoop.yarn.server.resourcemanager.ResourceManager;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.gateway.ProtocolException;

/**
 * What the driver of a replay calls. Every method takes and returns JSON; docs/BRIDGE.md describes
 * the fields. One ResourceManager at a time; after {@link #stop()} another one can be started.
 */
public final class ReplayHarness {
  private static final int ROUNDS_MAX = 1000;

  private ReplaySession session;
  private ReplayActions actions;
  private WaitingMasters waiting;
  private Spending spending;

  /** Starts a ResourceManager with the configuration that the request names. */
  public synchronized String start(String json) {
    return Json.reply(reply -> start(Json.parse(json), reply));
  }

  private void start(ObjectNode request, ObjectNode reply) throws Exception {
    if (session != null) {
      throw new ProtocolException("ALREADY_STARTED", "a ResourceManager runs; stop it first");
    }
    Map<String, String> properties = new TreeMap<>();
    JsonNode given = request.path("properties");
    for (Iterator<String> names = given.fieldNames(); names.hasNext(); ) {
      String name = names.next();
      properties.put(name, given.get(name).asText());
    }
    long timestampMs = Math.round(1000 * request.path("epoch_s").asDouble(1));
    session =
        new ReplaySession(
            ReplayConfiguration.build(Json.text(request, "conf_dir", null), properties),
            timestampMs);
    actions = new ReplayActions(session);
    waiting = new WaitingMasters(session);
    spending = new Spending();
    reply.put("scheduler_class", session.scheduler().getClass().getName());
    reply.put("hadoop_version", VersionInfo.getVersion());
    reply.put("java_version", System.getProperty("java.version"));
    reply.put("cluster_timestamp", ResourceManager.getClusterTimeStamp());
  }

  /** Returns the effective configuration: the ResourceManager's, with the scheduler's over it. */
  public synchronized String configuration() {
    return Json.reply(
        reply -> {
          Map<String, String> entries = ReplayConfiguration.flat(started().configuration());
          if (session.scheduler() instanceof CapacityScheduler) {
            CapacityScheduler scheduler = (CapacityScheduler) session.scheduler();
            entries.putAll(ReplayConfiguration.flat(scheduler.getConfiguration()));
          }
          ObjectNode flat = reply.putObject("configuration");
          entries.forEach(flat::put);
        });
  }

  /** Moves virtual time, does the actions, and lets the ResourceManager settle. */
  public synchronized String step(String json) {
    return Json.reply(reply -> step(Json.parse(json), reply));
  }

  private void step(ObjectNode request, ObjectNode reply) throws Exception {
    started().clock().advanceTo(Math.round(1000 * Json.number(request, "now_s")));
    List<ObjectNode> wished = Json.objects(request, "actions");
    int rounds = Json.count(request, "rounds", ROUNDS_MAX);
    spending.during(() -> play(wished, rounds));
    waiting.report();
    reply.set("events", session.takeEvents());
    session.statistics(reply.putObject("stats"));
  }

  private void play(List<ObjectNode> wished, int rounds) throws Exception {
    boolean isChanged = false;
    session.beatUnheard();
    for (ObjectNode action : wished) {
      isChanged |= actions.perform(action);
    }
    if (isChanged && rounds > 0) {
      session.settle(rounds);
    }
    session.beatUnheard();
  }

  /** Answers a question about the ResourceManager's state; changes nothing. */
  public synchronized String query(String json) {
    return Json.reply(
        reply -> {
          ObjectNode request = Json.parse(json);
          ReplaySession asked = started();
          if (request.has("spent")) {
            spending.write(reply);
          } else {
            new ReplayQueries(asked).answer(request, reply);
          }
        });
  }

  /** Stops the ResourceManager; a second call does nothing. */
  public synchronized String stop() {
    return Json.reply(
        reply -> {
          if (session != null) {
            ReplaySession stopped = session;
            session = null;
            stopped.stop();
          }
        });
  }

  /** The scheduler under test; null before the start. */
  synchronized Object scheduler() {
    return session == null ? null : session.scheduler();
  }

  private ReplaySession started() throws ProtocolException {
    if (session == null) {
      throw new ProtocolException("NOT_STARTED", "no ResourceManager runs; call start first");
    }
    return session;
  }
}
