package org.gandiva.yarn.job.am;

import org.gandiva.yarn.job.TaskType;

/**
 * One task of the job: the worker of a rank, or another type's n-th. Only {@link Gang} changes it.
 */
final class Slot {
  private final TaskType type;
  private final int index;
  private final int rank;

  /** Where it runs; null while a container is asked for. */
  Place place;

  /** Where it is moving to: a container that warms up; null where it does not move. */
  Place successor;

  /** Number of the move whose container is asked for or there; 0 for none. */
  long moveId;

  /** It has arrived, and others of the gang still move. */
  boolean hasMoved;

  /** Number of the ask that it was added by; 0 for one that the job began with. */
  long askId;

  /** Host that it was added on; empty for any. */
  String host = "";

  /** Of a task that joins a gang that runs: workers that there will be; 0 otherwise. */
  int joins;

  boolean isAsked;
  boolean isDone;

  /** Its container ended well while it was moving: whose end that was is to be told. */
  boolean isUndecided;

  Slot(TaskType type, int index, int rank) {
    this.type = type;
    this.index = index;
    this.rank = rank;
  }

  TaskType type() {
    return type;
  }

  int index() {
    return index;
  }

  /** Its number among all tasks, the workers first: of a worker the rank. */
  int rank() {
    return rank;
  }

  boolean holds(String containerId) {
    return place != null && place.containerId().equals(containerId);
  }

  boolean movesTo(String containerId) {
    return successor != null && successor.containerId().equals(containerId);
  }

  @Override
  public String toString() {
    return type.name() + " " + index;
  }
}
