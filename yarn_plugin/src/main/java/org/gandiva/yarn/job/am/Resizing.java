package org.gandiva.yarn.job.am;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.gandiva.yarn.job.JobSpec;
import org.gandiva.yarn.job.TaskType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Another number of workers, at a step boundary (SPEC G-80 to G-84). One change at a time, in
 * stages that nobody passes before all have come to them:
 *
 * <ol>
 *   <li>warm: the workers of the new generation have met, and wait for the state; the old ones
 *       train
 *   <li>saved: the old ones have stopped at one step and written it
 *   <li>restored: the new ones have loaded it and done a mini-batch
 * </ol>
 *
 * <p>Then the new generation is the job; the surplus is let go. Until then everything can be called
 * off, and the old processes go on where they stopped. Workers ask by {@code POST /standing}, again
 * and again.
 */
final class Resizing {
  static final int WARM = 1;
  static final int SAVED = 2;
  static final int RESTORED = 3;

  private static final Logger LOG = LoggerFactory.getLogger(Resizing.class);
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Gang gang;
  private final JobSpec spec;
  private final Actions actions;

  /** What each worker last said of itself: why it cannot; empty where it can. */
  private final Map<String, String> standing = new HashMap<>();

  private long id;
  private int generation;
  private int passed = RESTORED;
  private String off = "";
  private List<Slot> before = Collections.emptyList();
  private List<Slot> after = Collections.emptyList();
  private final Map<String, Integer> reached = new HashMap<>();

  Resizing(Gang gang, JobSpec spec, Actions actions) {
    this.gang = gang;
    this.spec = spec;
    this.actions = actions;
  }

  boolean isUnderWay() {
    return passed < RESTORED && off.isEmpty();
  }

  /** Returns whether that is the generation that is being made. */
  boolean isUnderWay(int which) {
    return isUnderWay() && which == generation;
  }

  /** Returns the workers of the generation that is being made. */
  List<Slot> workers() {
    return Collections.unmodifiableList(after);
  }

  /**
   * Begins.
   *
   * @param host where workers are added; any for none
   * @return why not; empty where it has begun
   */
  String begin(long resizeId, int workers, String host) {
    String refusal = whyNot(workers);
    if (!refusal.isEmpty()) {
      return refusal;
    }
    id = resizeId;
    generation = gang.nextGeneration();
    passed = 0;
    off = "";
    reached.clear();
    before = new ArrayList<>(gang.slots());
    after = new ArrayList<>(before.subList(0, Math.min(workers, before.size())));
    TaskType type = spec.types().get(0);
    while (after.size() < workers) {
      Slot slot = new Slot(type, after.size(), after.size());
      slot.askId = resizeId;
      slot.host = host.equals("*") ? "" : host;
      slot.joins = workers;
      after.add(slot);
      actions.ask(slot);
    }
    return "";
  }

  private String whyNot(int workers) {
    int present = gang.slots().size();
    if (isUnderWay() || gang.moves().areUnderWay() || gang.hasEnded()) {
      return "it is being resized, or moved, or has ended";
    }
    if (!spec.mayResize()) {
      return "its owner, or its kinds of tasks, do not allow it";
    }
    if (workers == present || workers < spec.types().get(0).instances()) {
      return "it has " + present + ", and asked for " + spec.types().get(0).instances();
    }
    for (Slot slot : gang.slots()) {
      String container = slot.place == null || slot.isDone ? "" : slot.place.containerId();
      String reason = standing.getOrDefault(container, "it has not said that it can");
      if (!reason.isEmpty()) {
        return slot + ": " + reason;
      }
    }
    return "";
  }

  /** A container for an added worker has come. */
  void allocated(long askId, Place place) {
    for (Slot slot : after) {
      if (isUnderWay() && slot.askId == askId && slot.place == null && askId == id) {
        slot.place = place;
        actions.withdraw(slot);
        actions.launch(slot, place, generation, "");
        return;
      }
    }
    actions.release(place.containerId());
  }

  /** Returns the slot that was added in a container; null for none. */
  Slot addedIn(String containerId) {
    for (Slot slot : after) {
      if (isUnderWay() && slot.holds(containerId)) {
        return slot;
      }
    }
    return null;
  }

  /**
   * A container is gone: whatever is under way is off.
   *
   * @return whether it was one of an added worker, so that nothing else is lost
   */
  boolean lost(String containerId, String how) {
    standing.remove(containerId);
    boolean isAdded = !isBefore(containerId) && addedIn(containerId) != null;
    if (isUnderWay() && (isBefore(containerId) || isAdded)) {
      callOff(containerId + " " + how);
    }
    return isAdded;
  }

  /** It has taken too long. */
  void timeUp(long resizeId) {
    if (resizeId == id) {
      callOff("it took too long");
    }
  }

  /** The job stays as it was. */
  void callOff(String reason) {
    if (!isUnderWay()) {
      return;
    }
    off = reason;
    LOG.warn("Does not get {} workers: {}", after.size(), reason);
    for (Slot slot : after) {
      if (before.contains(slot)) {
        continue;
      }
      if (slot.place == null) {
        actions.withdraw(slot);
      } else {
        actions.release(slot.place.containerId());
      }
    }
  }

  /**
   * A worker says what it can do and, while it is being resized, how far it has come.
   *
   * @return what it is to do: {@code {resize: {generation, world_size, is_surplus, passed, off}}}
   */
  ObjectNode heard(JsonNode said) {
    String container = said.path("container_id").asText();
    int which = said.path("generation").asInt();
    ObjectNode answer = JSON.createObjectNode();
    if (gang.has(container)) {
      boolean can = said.path("can_resize").asBoolean();
      standing.put(container, can ? "" : said.path("reason").asText("it cannot"));
    }
    if (isUnderWay(which) && isOne(container)) {
      String failed = said.path("failed").asText("");
      if (failed.isEmpty()) {
        reached.merge(container, said.path("stage").asInt(), Math::max);
        pass();
      } else {
        callOff(container + ": " + failed);
      }
    }
    if (which > 0) {
      answer.set("resize", described(which, container));
    } else if (isUnderWay() && isBefore(container) && areAddedThere()) {
      answer.set("resize", described(generation, container));
    }
    return answer;
  }

  private boolean isOne(String container) {
    return isBefore(container) || addedIn(container) != null;
  }

  private boolean isBefore(String container) {
    return before.stream().anyMatch(slot -> slot.holds(container));
  }

  /** The added workers have devices, and wait for the others. */
  private boolean areAddedThere() {
    return after.stream().allMatch(slot -> before.contains(slot) || hasReached(slot, 0));
  }

  private boolean hasReached(Slot slot, int stage) {
    return slot.place != null && reached.getOrDefault(slot.place.containerId(), -1) >= stage;
  }

  private void pass() {
    for (int stage = passed + 1; stage <= RESTORED; stage++) {
      int wanted = stage;
      if (!before.stream().allMatch(slot -> hasReached(slot, wanted))
          || !after.stream().allMatch(slot -> hasReached(slot, wanted))) {
        return;
      }
      passed = stage;
      LOG.info("Stage {} of {} workers in generation {}", stage, after.size(), generation);
    }
    gang.resized(generation, after);
    for (Slot slot : before) {
      if (!after.contains(slot)) {
        actions.release(slot.place.containerId());
      }
    }
  }

  /** A generation that is the job's was made, whatever is not known of it any more. */
  private ObjectNode described(int which, String container) {
    ObjectNode told = JSON.createObjectNode().put("generation", which);
    if (which == generation) {
      boolean isSurplus = after.stream().noneMatch(slot -> slot.holds(container));
      told.put("world_size", after.size()).put("is_surplus", isSurplus);
      return told.put("passed", passed).put("off", off);
    }
    return which == gang.generation()
        ? told.put("passed", RESTORED).put("off", "")
        : told.put("passed", 0).put("off", "nobody knows of it");
  }
}
