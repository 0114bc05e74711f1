package org.gandiva.yarn.job.am;

/**
 * Tasks that move: each warms up in a second container, in a generation of its own, and lives on
 * there or stays. Of a gang all that move at once are of one generation.
 */
final class Moves {
  private final Gang gang;
  private final Actions actions;

  /** Of those that warm up elsewhere; 0 while nobody moves. */
  private int generation;

  Moves(Gang gang, Actions actions) {
    this.gang = gang;
    this.actions = actions;
  }

  /** Returns the generation of those that warm up elsewhere; 0 while nobody moves. */
  int generation() {
    return generation;
  }

  /** Takes over what an earlier master left. */
  void restore(int known) {
    generation = known;
  }

  /** Everything starts anew. */
  void forget() {
    generation = 0;
  }

  /**
   * A task shall move. A move whose container has not come is off with it.
   *
   * @return its slot, to ask a container for; null where it has ended or moves already
   */
  Slot begin(String containerId, long moveId) {
    Slot slot = gang.holder(containerId);
    boolean isBusy = gang.hasEnded() || gang.resizing().isUnderWay();
    if (slot == null || slot.successor != null || isBusy) {
      return null;
    }
    if (generation == 0) {
      generation = gang.nextGeneration();
    }
    for (Slot other : gang.slots()) {
      if (other.moveId == moveId && other.successor == null) {
        other.moveId = 0; // A core that was started again counts its moves anew.
      }
    }
    slot.moveId = moveId;
    return slot;
  }

  /** The container that a move asked for has come. */
  void allocated(long moveId, Place place) {
    for (Slot slot : gang.slots()) {
      if (slot.moveId == moveId && slot.successor == null && slot.place != null) {
        slot.successor = place;
        actions.save();
        actions.launch(slot, place, generation, slot.place.containerId());
        return;
      }
    }
    actions.release(place.containerId());
  }

  /** The task is from now on where it moved to. */
  void succeed(Slot slot) {
    slot.place = slot.successor;
    slot.successor = null;
    slot.moveId = 0;
    slot.isUndecided = false;
    slot.hasMoved = true;
    end();
    actions.save();
  }

  /** The move is off: where the task ended meanwhile, it has ended. */
  void stay(Slot slot) {
    slot.successor = null;
    slot.moveId = 0;
    end();
    actions.save();
    if (slot.isUndecided) {
      gang.done(slot);
    }
  }

  /**
   * Once nobody moves any more: who has arrived is of the new generation, and so are the others.
   */
  void end() {
    boolean hasMoved = false;
    for (Slot slot : gang.slots()) {
      if (slot.successor != null) {
        return;
      }
      hasMoved |= slot.hasMoved;
    }
    for (Slot slot : gang.slots()) {
      slot.hasMoved = false;
      slot.moveId = 0; // Its container never came: all of a move are created, or none.
    }
    if (hasMoved) {
      gang.become(generation);
    }
    generation = 0;
  }

  /**
   * Whether somebody warms up elsewhere. A move whose container has not come does not count, and is
   * off: the core may have called it off, which is told of containers only.
   */
  boolean areUnderWay() {
    if (generation != 0) {
      end();
    }
    return generation != 0;
  }
}
