package org.gandiva.yarn.job.am;

import org.apache.hadoop.yarn.api.records.ContainerExitStatus;

/** What an exit status of YARN's says about a task. */
final class ContainerEnd {
  private static final int SIGNALLED = 128;
  private static final int SIGKILL = SIGNALLED + 9;
  private static final int SIGTERM = SIGNALLED + 15;

  /** What a client exits with where the command had no code of its own. */
  private static final int FAILED = 1;

  private ContainerEnd() {}

  /** Whether the container was taken away, and the command did not end by itself. */
  static boolean isLost(int status) {
    switch (status) {
      case ContainerExitStatus.ABORTED:
      case ContainerExitStatus.DISKS_FAILED:
      case ContainerExitStatus.PREEMPTED:
      case ContainerExitStatus.KILLED_BY_APPMASTER:
      case ContainerExitStatus.KILLED_BY_RESOURCEMANAGER:
      case ContainerExitStatus.KILLED_BY_CONTAINER_SCHEDULER:
      case ContainerExitStatus.INVALID:
      case SIGKILL:
      case SIGTERM:
        return true;
      default:
        return false;
    }
  }

  /** Returns the exit code of the job that ends because of it: 1 to 255. */
  static int exitCode(int status) {
    return status > 0 && status <= 255 ? status : FAILED;
  }

  /** Returns it in words. */
  static String described(int status) {
    switch (status) {
      case ContainerExitStatus.ABORTED:
        return "was lost with its node, or given back (exit status -100)";
      case ContainerExitStatus.PREEMPTED:
        return "was preempted (exit status -102)";
      case ContainerExitStatus.KILLED_EXCEEDED_VMEM:
      case ContainerExitStatus.KILLED_EXCEEDED_PMEM:
        return "used more memory than it asked for (exit status " + status + ")";
      default:
        return "ended with exit status " + status;
    }
  }
}
