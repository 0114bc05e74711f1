package org.gandiva.yarn.gateway;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.apache.hadoop.util.VersionInfo;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the core process calls: JSON texts in and out, described in docs/BRIDGE.md. One session at a
 * time is valid; a new hello ends the one before.
 */
public final class GandivaGateway {
  /** The version of the messages. */
  public static final int PROTOCOL = 1;

  private static final Logger LOG = LoggerFactory.getLogger(GandivaGateway.class);

  /** Well below the second after which a core counts as silent. */
  private static final int WAIT_MS_MAX = 400;

  private static final int BATCH_MAX = 10_000;
  private static final int EFFECTS_MAX = 100_000;
  private static final int ID_LENGTH_MAX = 200;

  private final Substrate substrate;
  private final EventQueue events;
  private final CallCounts counts = new CallCounts();
  private volatile long epoch;
  private long lastSequence;
  private String lastReply;

  /** Creates the gateway of a scheduler. */
  public GandivaGateway(Substrate substrate, EventQueue events) {
    this.substrate = substrate;
    this.events = events;
  }

  /** Opens a session: a new epoch, whose first batch is a snapshot. */
  public synchronized String hello(String json) {
    return answer(
        reply -> {
          ObjectNode request = Json.parse(json);
          long protocol = Json.whole(request, "protocol");
          if (protocol != PROTOCOL) {
            throw new ProtocolException(
                "PROTOCOL", "protocol: found " + protocol + ", expected " + PROTOCOL);
          }
          substrate.admit(Json.text(request, "managed", ""));
          epoch++;
          substrate.callWatcher().heard();
          lastSequence = 0;
          lastReply = null;
          events.reset();
          reply.put("protocol", PROTOCOL);
          reply.put("epoch", epoch);
          reply.put("scheduler_class", substrate.schedulerClass());
          reply.put("hadoop_version", VersionInfo.getVersion());
        });
  }

  /** Returns how calls ended. */
  public CallCounts counts() {
    return counts;
  }

  /** Returns the number of the valid session; 0 before the first. */
  public long epoch() {
    return epoch;
  }

  /** Returns the next events, waiting for the first one as long as the caller wishes. */
  public String takeEvents(String json) {
    return answer(reply -> takeEvents(Json.parse(json), reply));
  }

  private String answer(Json.Handler handler) {
    return Json.reply(
        reply -> {
          try {
            handler.answer(reply);
          } catch (ProtocolException e) {
            counts.requestRefused(e.kind());
            throw e;
          }
        });
  }

  private void takeEvents(ObjectNode request, ObjectNode reply) throws Exception {
    checkEpoch(request);
    int max = Math.max(1, Math.min(BATCH_MAX, Json.count(request, "max", 1000)));
    int waitMs = Math.min(WAIT_MS_MAX, Json.count(request, "wait_ms", 0));
    substrate.callWatcher().heard();
    List<ObjectNode> taken = events.take(max, waitMs, this::snapshot);
    checkEpoch(request);
    reply.put("epoch", epoch);
    long first = taken.isEmpty() ? events.nextSequence() : taken.get(0).path("seq").asLong();
    reply.put("first_seq", first);
    ArrayNode list = reply.putArray("events");
    taken.forEach(list::add);
    reply.put("more", events.hasMore());
  }

  private List<ObjectNode> snapshot() {
    substrate.callWatcher().answerBegins();
    try {
      return substrate.snapshot();
    } finally {
      substrate.callWatcher().answerEnds();
    }
  }

  /** Applies effects in order. A repeated sequence number gets the remembered reply. */
  public synchronized String apply(String json) {
    ObjectNode request;
    long sequence;
    try {
      request = Json.parse(json);
      checkEpoch(request);
      substrate.callWatcher().heard();
      sequence = Json.whole(request, "seq");
      if (sequence == lastSequence && lastReply != null) {
        return lastReply;
      }
      if (sequence != lastSequence + 1) {
        throw new ProtocolException(
            "BAD_SEQUENCE", "seq: found " + sequence + ", expected " + (lastSequence + 1));
      }
    } catch (ProtocolException e) {
      return answer(
          reply -> {
            throw e;
          });
    }
    substrate.callWatcher().answerBegins();
    try {
      lastReply = answer(reply -> apply(request, reply));
      lastSequence = sequence;
    } finally {
      substrate.callWatcher().answerEnds();
    }
    return lastReply;
  }

  private void apply(ObjectNode request, ObjectNode reply) throws ProtocolException {
    List<ObjectNode> effects = Json.objects(request, "effects");
    if (effects.size() > EFFECTS_MAX) {
      throw ProtocolException.badRequest(
          "effects: found " + effects.size() + ", expected at most " + EFFECTS_MAX);
    }
    ArrayNode results = reply.putArray("results");
    for (ObjectNode effect : effects) {
      ObjectNode result = one(effect);
      counts.effect(effect.path("op").asText(), result.path("code").asText());
      results.add(result);
    }
  }

  /** One bad effect is refused by itself: the others of the message stand. */
  private ObjectNode one(ObjectNode effect) {
    String id = "";
    try {
      String told = Json.text(effect, "id");
      if (told.isEmpty() || told.length() > ID_LENGTH_MAX) {
        throw ProtocolException.badRequest(
            "id: found " + Json.shown(told) + ", expected 1 to " + ID_LENGTH_MAX + " characters");
      }
      id = told;
      return substrate.apply(effect);
    } catch (ProtocolException e) {
      return Json.object().put("id", id).put("code", e.kind()).put("detail", e.getMessage());
    } catch (RuntimeException | StackOverflowError e) {
      LOG.error("An effect of the core failed", e);
      return Json.object().put("id", id).put("code", "INTERNAL").put("detail", Json.oneLine(e));
    }
  }

  private void checkEpoch(ObjectNode request) throws ProtocolException {
    long found = Json.whole(request, "epoch");
    if (found != epoch) {
      throw new ProtocolException(
          "STALE_EPOCH", "epoch: found " + found + ", the session is " + epoch);
    }
  }
}
