package org.gandiva.yarn.job;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Every key of a job once, with its default and TonY's key of the same meaning (docs/JOBS.md). */
public enum JobKey {
  /** Name of the application. */
  NAME("name", "tony.application.name", "gandiva-job"),
  /** Queue it is submitted to. */
  QUEUE("queue", "tony.yarn.queue", "default"),
  /** What the rendezvous is for: pytorch, tensorflow or other. */
  FRAMEWORK("framework", "tony.application.framework", "pytorch"),
  /** Partition of all of its containers; empty for the queue's default. */
  NODE_LABEL("node-label", "tony.application.node-label", ""),
  /** Priority within the queue. */
  PRIORITY("priority", "", "0"),
  /** Application tags besides those that other keys set, separated by commas. */
  TAGS("tags", "tony.application.tags", ""),
  /** Task types whose end is no end of the job, separated by commas. */
  UNTRACKED("untracked", "tony.application.untracked.jobtypes", "ps"),
  /** Shapes in which the workers may come, WORKERSxGPUS, best first, separated by commas. */
  SHAPE("shape", "", ""),
  /** NAME=VALUE of the environment of every task, separated by commas. */
  ENVIRONMENT("env", "tony.containers.envs", ""),
  /** Interpreter, relative to the virtual environment where one is given. */
  PYTHON("python", "", ""),
  /** Folder on this machine that every task starts in a copy of. */
  SOURCE("src-dir", "", ""),
  /** Archive of a Python environment on this machine. */
  VENV("python-venv", "", ""),
  /** How often the gang may be started again because a worker or its node was lost. */
  RESTARTS_MAX("restarts.max", "", "10"),
  /** How often the gang may be started again because a worker's command failed by itself. */
  FAILURES_MAX("failures.max", "", "0"),
  /** Folder that all nodes see, for the job's checkpoints; empty for none. */
  CHECKPOINT_DIR("checkpoint.dir", "", ""),
  /** Mini-batches from one checkpoint to the next; 0 for none. */
  CHECKPOINT_EVERY("checkpoint.every", "", "0"),
  /** Whether tasks start under the launcher, through which they can be suspended and moved. */
  LAUNCHER("launcher", "", "true"),
  /** Whether the owner lets the job be suspended: allow or never. */
  SUSPEND("suspend", "", "allow"),
  /** Whether the owner lets it share a device: allow or never. */
  PACK("pack", "", "allow"),
  /** Whether the owner lets it be moved: allow or never. */
  MIGRATE("migrate", "", "allow"),
  /** Whether the owner lets the number of its workers change: allow or never. */
  RESIZE("resize", "", "allow"),
  /** Whether it takes idle devices beyond those it asked for. */
  GROWSHRINK("growshrink", "", "false"),
  /** Memory of the master's container. */
  AM_MEMORY("am.memory", "tony.am.memory", "512m"),
  /** Vcores of the master's container. */
  AM_VCORES("am.vcores", "tony.am.vcores", "1"),
  /** How often a master that ends may be started again; its workers go on meanwhile. */
  AM_RETRIES("am.retry-count", "tony.am.retry-count", "2"),
  /** Folder in the default file system for what a job brings; empty for one in the user's home. */
  STAGING("staging-dir", "", "");

  /** Prefix of all keys. */
  public static final String PREFIX = "gandiva.job.";

  /** Prefix of TonY's. */
  public static final String TONY_PREFIX = "tony.";

  private static final Pattern TASK_KEY =
      Pattern.compile(
          "(?:gandiva\\.job|tony)\\.([a-z][a-z0-9]*)\\.(instances|gpus|memory|vcores|command)");

  private final String name;
  private final String tonyName;
  private final String otherwise;

  JobKey(String name, String tonyName, String otherwise) {
    this.name = PREFIX + name;
    this.tonyName = tonyName;
    this.otherwise = otherwise;
  }

  /** Returns the key. */
  public String key() {
    return name;
  }

  /** Returns TonY's key of the same meaning; empty for none. */
  public String tonyKey() {
    return tonyName;
  }

  /** Returns the value where none is given. */
  public String otherwise() {
    return otherwise;
  }

  /** Returns the task type that a key is about; null where it is about none. */
  static String taskTypeOf(String key) {
    Matcher matcher = TASK_KEY.matcher(key);
    return matcher.matches() && !matcher.group(1).equals("am") ? matcher.group(1) : null;
  }

  /** Returns whether a key is known under either name. */
  static boolean isKnown(String key) {
    for (JobKey known : values()) {
      if (key.equals(known.name) || key.equals(known.tonyName)) {
        return true;
      }
    }
    return taskTypeOf(key) != null;
  }
}
