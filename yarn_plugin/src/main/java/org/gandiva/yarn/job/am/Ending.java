package org.gandiva.yarn.job.am;

/** How a job ended: the exit code of the command, and a sentence. */
final class Ending {
  private final int exitCode;
  private final String detail;

  Ending(int exitCode, String detail) {
    this.exitCode = exitCode;
    this.detail = detail;
  }

  boolean isGood() {
    return exitCode == 0;
  }

  String detail() {
    return detail;
  }

  int exitCode() {
    return exitCode;
  }

  /** Returns the diagnostics: the client reads the code out of them. */
  String diagnostics() {
    return "exit code " + exitCode + ": " + detail;
  }
}
