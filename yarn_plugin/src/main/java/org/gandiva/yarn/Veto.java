package org.gandiva.yarn;

/**
 * Says whose a GPU ask is: the core's, or Hadoop's. Asked at every look of the scheduler at an ask,
 * so a change is in force at once.
 */
final class Veto {
  private volatile Adoption adoption;
  private volatile boolean isLifted;

  Veto(Adoption adoption) {
    this.adoption = adoption;
  }

  Adoption adoption() {
    return adoption;
  }

  void replace(Adoption next) {
    adoption = next;
  }

  /** Leaves every ask to Hadoop, while the core is away. */
  void lift() {
    isLifted = true;
  }

  /** Keeps adopted asks for the core again. */
  void lower() {
    isLifted = false;
  }

  boolean isLifted() {
    return isLifted;
  }

  /** Whether no GPU ask is left to Hadoop. */
  boolean holdsAll() {
    return !isLifted && adoption.adoptsAll();
  }
}
