package org.gandiva.yarn;

/** Why a container cannot be committed. */
final class CommitRefusal extends Exception {
  private static final long serialVersionUID = 1L;

  private final CommitCode code;

  CommitRefusal(CommitCode code, String detail) {
    super(detail, null, false, false);
    this.code = code;
  }

  CommitCode code() {
    return code;
  }
}
