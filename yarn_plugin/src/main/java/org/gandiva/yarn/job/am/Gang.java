package org.gandiva.yarn.job.am;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.gandiva.yarn.job.JobKey;
import org.gandiva.yarn.job.JobSpec;
import org.gandiva.yarn.job.TaskType;

/**
 * The tasks of a job: which containers they have, what their ends mean, when all start again.
 *
 * <p>What is lost starts the whole gang again, in a new generation, from its last checkpoint: the
 * others cannot go on without it. No silence ends a task: one that is suspended says nothing. Knows
 * no YARN client and no clock. Not safe for threads: its owner calls it under one lock.
 */
final class Gang {
  private final JobSpec spec;
  private final Actions actions;
  private final List<Slot> slots = new ArrayList<>();
  private final Resizing resizing;
  private final Moves moves;
  private int latest = 1;
  private int generation = 1;

  /** The generation whose tasks have met; 0 for none. */
  private int met;

  private int restarts;
  private int failures;
  private Ending ending;

  Gang(JobSpec spec, Actions actions) {
    this.spec = spec;
    this.actions = actions;
    this.resizing = new Resizing(this, spec, actions);
    this.moves = new Moves(this, actions);
    for (TaskType type : spec.types()) {
      for (int index = 0; index < type.instances(); index++) {
        slots.add(new Slot(type, index, slots.size()));
      }
    }
  }

  List<Slot> slots() {
    return Collections.unmodifiableList(slots);
  }

  int generation() {
    return generation;
  }

  Moves moves() {
    return moves;
  }

  int met() {
    return met;
  }

  Resizing resizing() {
    return resizing;
  }

  int restarts() {
    return restarts;
  }

  int failures() {
    return failures;
  }

  boolean hasEnded() {
    return ending != null;
  }

  /** All tasks of a generation were told of each other. */
  void met(int which) {
    if (met != which) {
      met = which;
      actions.save();
    }
  }

  /** From now on its tasks are of this generation. */
  void become(int which) {
    generation = which;
  }

  /** A generation that was never before. */
  int nextGeneration() {
    return ++latest;
  }

  /** From now on it has other workers, which have met. */
  void resized(int newGeneration, List<Slot> workers) {
    slots.clear();
    slots.addAll(workers);
    generation = newGeneration;
    met = newGeneration;
    actions.save();
  }

  /** Before it starts: an earlier master left it with so many workers. */
  void hadWorkers(int count) {
    while (slots.size() < count) {
      slots.add(new Slot(spec.types().get(0), slots.size(), slots.size()));
    }
  }

  /** Takes over what an earlier master left. */
  void restore(int knownGeneration, int knownMet, int knownRestarts, int knownFailures) {
    latest = knownGeneration;
    generation = knownGeneration;
    met = knownMet;
    restarts = knownRestarts;
    failures = knownFailures;
  }

  /** No generation is used twice, by whichever master. */
  void restoreLatest(int known) {
    latest = Math.max(latest, known);
  }

  /** An earlier master saw the job end, and could not say so. */
  void restoreEnding(Ending known) {
    ending = known;
  }

  int latest() {
    return latest;
  }

  /** Returns how the job ended; null while it runs. */
  Ending ending() {
    return ending;
  }

  /** Asks for all containers that are missing; nothing is missing of a job that has ended. */
  void start() {
    if (ending == null) {
      endIfAllAreDone();
    }
    if (ending != null) {
      actions.finish(ending);
      return;
    }
    for (Slot slot : slots) {
      if (slot.place == null && !slot.isAsked && !slot.isDone) {
        slot.isAsked = true;
        actions.ask(slot);
      }
    }
    actions.save();
  }

  /** A container of a task type has come. */
  void allocated(TaskType type, Place place) {
    for (Slot slot : slots) {
      if (slot.type() == type && slot.isAsked && ending == null) {
        slot.isAsked = false;
        slot.place = place;
        actions.withdraw(slot);
        actions.save();
        actions.launch(slot, place, generation, "");
        return;
      }
    }
    actions.release(place.containerId());
  }

  /** The scheduler wants a container back: the end of a move, or its abort, or a smaller job. */
  void letGo(String containerId) {
    if (resizing.lost(containerId, "was let go")) {
      return;
    }
    for (Slot slot : slots) {
      if (slot.movesTo(containerId)) {
        actions.release(containerId);
        moves.stay(slot);
        return;
      }
      if (slot.holds(containerId)) {
        actions.release(containerId);
        if (slot.successor != null) {
          moves.succeed(slot);
        } else {
          done(slot);
        }
        return;
      }
    }
  }

  /** A container ended, or never started. */
  void completed(String containerId, int status) {
    if (resizing.lost(containerId, ContainerEnd.described(status))) {
      return;
    }
    for (Slot slot : slots) {
      if (slot.movesTo(containerId)) {
        moves.stay(slot);
        return;
      }
      if (slot.holds(containerId)) {
        ended(slot, status);
        return;
      }
    }
  }

  /** A task said that its state lives on in the container it moved to. */
  void movedAway(String containerId) {
    Slot slot = holder(containerId);
    if (slot != null && slot.successor != null) {
      moves.succeed(slot);
    }
  }

  private void ended(Slot slot, int status) {
    if (ending != null) {
      return;
    }
    if (status == 0 && slot.successor != null) {
      slot.isUndecided = true;
      return;
    }
    if (status == 0) {
      done(slot);
    } else if (ContainerEnd.isLost(status)) {
      restarts++;
      again(slot, restarts <= spec.number(JobKey.RESTARTS_MAX), status, JobKey.RESTARTS_MAX);
    } else {
      failures++;
      boolean may = slot.type().isTracked() && failures <= spec.number(JobKey.FAILURES_MAX);
      again(slot, may, status, JobKey.FAILURES_MAX);
    }
  }

  void done(Slot slot) {
    slot.isUndecided = false;
    slot.moveId = 0;
    slot.place = null;
    slot.isDone = true;
    moves.end();
    actions.save();
    endIfAllAreDone();
  }

  private void endIfAllAreDone() {
    for (Slot slot : slots) {
      if (slot.type().isTracked() && !slot.isDone) {
        return;
      }
    }
    finish(new Ending(0, "all tasks have ended well"));
  }

  /**
   * Tasks that wait for each other look for the master that they were started by: where that is
   * gone, and they have not met, they never will. Nothing has run yet that could be lost.
   */
  void startAgainIfNotMet() {
    boolean isGang = slots.size() > 1 && spec.hasLauncher();
    if (isGang && met != generation && !containers().isEmpty()) {
      all();
    }
  }

  private void again(Slot ended, boolean may, int status, JobKey limit) {
    if (!may) {
      String end = ended + " " + ContainerEnd.described(status);
      String bound = spec.text(limit);
      finish(new Ending(ContainerEnd.exitCode(status), end + "; " + limit.key() + " is " + bound));
      return;
    }
    ended.place = null;
    all();
  }

  /** Everything anew, in another generation, with as many workers as were asked for. */
  private void all() {
    resizing.callOff("the gang starts again");
    generation = ++latest;
    moves.forget();
    for (Slot slot : slots) {
      drop(slot);
    }
    slots.removeIf(slot -> slot.index() >= slot.type().instances());
    start();
  }

  private void drop(Slot slot) {
    Place place = slot.place;
    Place successor = slot.successor;
    slot.place = null;
    slot.successor = null;
    slot.moveId = 0;
    slot.isDone = false;
    slot.isUndecided = false;
    if (place != null) {
      actions.release(place.containerId());
    }
    if (successor != null) {
      actions.release(successor.containerId());
    }
  }

  private void finish(Ending found) {
    if (ending == null) {
      ending = found;
      actions.save();
      actions.finish(found);
    }
  }

  Slot holder(String containerId) {
    for (Slot slot : slots) {
      if (slot.holds(containerId)) {
        return slot;
      }
    }
    return null;
  }

  /** Returns all containers that it has. */
  List<String> containers() {
    List<String> containers = new ArrayList<>();
    for (Slot slot : slots) {
      if (slot.place != null) {
        containers.add(slot.place.containerId());
      }
      if (slot.successor != null) {
        containers.add(slot.successor.containerId());
      }
    }
    return containers;
  }

  /** Returns whether a container is one of its own, now. */
  boolean has(String containerId) {
    return slotOf(containerId) != null;
  }

  /** Returns the slot that a container serves, or warms up for; null for none. */
  Slot slotOf(String containerId) {
    for (Slot slot : slots) {
      if (slot.holds(containerId) || slot.movesTo(containerId)) {
        return slot;
      }
    }
    return resizing.addedIn(containerId);
  }
}
