package org.gandiva.yarn.core;

/** How a child process is started, and what it is called. */
public interface ChildCommand {
  /** Returns what it is, as a log says it: "Gandiva's core". */
  String what();

  /** Returns the key that its interpreter is configured with. */
  String pythonKey();

  /** Returns the interpreter. */
  String python();

  /**
   * Returns a process to start.
   *
   * @param id drawn anew for each start
   */
  ProcessBuilder builder(String id);
}
