package org.gandiva.yarn.job.am;

/** What a gang needs done. None of these waits, and none calls the gang back before it returns. */
interface Actions {
  /** Ask for a container for a slot. */
  void ask(Slot slot);

  /** Take back what was asked for a slot. */
  void withdraw(Slot slot);

  /**
   * Start a slot's task in a container.
   *
   * @param from the container that it moves from; empty where it does not
   */
  void launch(Slot slot, Place place, int generation, String from);

  /** Give a container back; nothing more of it counts. */
  void release(String containerId);

  /** Something changed that the next master has to know. */
  void save();

  /** The job has ended. */
  void finish(Ending ending);
}
