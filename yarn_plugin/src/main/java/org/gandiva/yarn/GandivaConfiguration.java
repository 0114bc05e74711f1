package org.gandiva.yarn;

import java.util.Arrays;
import java.util.Locale;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.exceptions.YarnRuntimeException;

/** Every key of the plug-in, once, with unit and default. */
public final class GandivaConfiguration {
  /** Prefix of all keys. */
  public static final String PREFIX = "yarn.scheduler.gandiva.";

  /** Jobs that may share one device; schedulable GPUs of a node are physical GPUs times it. */
  public static final String HEIGHT_MAX = PREFIX + "height.max";

  /** SPEC's H_max. */
  public static final int HEIGHT_MAX_DEFAULT = 4;

  /** File of mode 0600 with the secret of the bridge; absent: one is made for a managed core. */
  public static final String TOKEN_FILE = PREFIX + "bridge.token-file";

  /** Loopback port of the bridge; 0 takes a free one. */
  public static final String PORT = PREFIX + "bridge.port";

  /** Any free port. */
  public static final int PORT_DEFAULT = 0;

  /** An idle connection of the bridge is closed after this many milliseconds. */
  public static final String READ_TIMEOUT_MS = PREFIX + "bridge.read-timeout-ms";

  /** Thirty long polls. */
  public static final int READ_TIMEOUT_MS_DEFAULT = 30_000;

  /** Events kept for a core that does not fetch them; then all are dropped for one resync. */
  public static final String EVENTS_MAX = PREFIX + "bridge.events.max";

  /** About 50 MB of heap. */
  public static final int EVENTS_MAX_DEFAULT = 100_000;

  /** What of Gandiva is in force: observe, place or full. */
  public static final String MODE = PREFIX + "mode";

  /** Nothing changes before an administrator says so. */
  public static final String MODE_DEFAULT = "observe";

  /** Paths of adopted queues, children included; a star for all. */
  public static final String QUEUES = PREFIX + "queues";

  /** Adopted node labels; a star for all, DEFAULT for nodes without one. */
  public static final String PARTITIONS = PREFIX + "partitions";

  /** All queues, or all partitions. */
  public static final String ALL = "*";

  /** Whether the core is a child of the ResourceManager. */
  public static final String CORE_MANAGED = PREFIX + "core.managed";

  /** Interpreter of the managed core. */
  public static final String CORE_PYTHON = PREFIX + "core.python";

  /** Whatever is first on the path. */
  public static final String CORE_PYTHON_DEFAULT = "python3";

  /** Folder for the managed core's output and journal. */
  public static final String CORE_LOG_DIR = PREFIX + "core.log-dir";

  /** Interpreter of a node's agent, read by its NodeManager. */
  public static final String AGENT_PYTHON = PREFIX + "agent.python";

  /** Whatever is first on the path. */
  public static final String AGENT_PYTHON_DEFAULT = "python3";

  /** Folder for the output of a node's agent, read by its NodeManager. */
  public static final String AGENT_LOG_DIR = PREFIX + "agent.log-dir";

  /** What becomes of GPU asks while the core is silent: wait or exclusive. */
  public static final String CORE_FALLBACK = PREFIX + "core.fallback";

  /** Nothing is handed out that nobody watches over. */
  public static final String CORE_FALLBACK_DEFAULT = "wait";

  /** How long a node with recovered GPU containers waits for its agent, in milliseconds. */
  public static final String RECOVERY_HOLD_MS = PREFIX + "recovery.hold-ms";

  /** As long as a NodeManager may take to come back. */
  public static final int RECOVERY_HOLD_MS_DEFAULT = 60_000;

  /** Dangerous: servers count as able to suspend although no agent says so. */
  public static final String OVERSUBSCRIBE_WITHOUT_AGENT = PREFIX + "oversubscribe-without-agent";

  private final Configuration conf;

  /** Wraps the ResourceManager's configuration. */
  public GandivaConfiguration(Configuration conf) {
    this.conf = conf;
  }

  /** Returns the greatest height of a device, at least 1. */
  public int heightMax() {
    return atLeast(1, HEIGHT_MAX, HEIGHT_MAX_DEFAULT);
  }

  /** Returns the path of the token file; null where the site has none. */
  public String tokenFile() {
    return conf.getTrimmed(TOKEN_FILE);
  }

  /** Returns the port to listen on. */
  public int port() {
    return atLeast(0, PORT, PORT_DEFAULT);
  }

  /** Returns the read time-out of a connection. */
  public int readTimeoutMs() {
    return atLeast(1, READ_TIMEOUT_MS, READ_TIMEOUT_MS_DEFAULT);
  }

  /** Returns the bound of the event queue. */
  public int eventsMax() {
    return atLeast(1, EVENTS_MAX, EVENTS_MAX_DEFAULT);
  }

  /** Returns for how long after a start Hadoop promises what is configured, in milliseconds. */
  public long schedulingWaitMs() {
    return conf.getLong(
        YarnConfiguration.RM_WORK_PRESERVING_RECOVERY_SCHEDULING_WAIT_MS,
        YarnConfiguration.DEFAULT_RM_WORK_PRESERVING_RECOVERY_SCHEDULING_WAIT_MS);
  }

  /** Returns the mode's word: observe, place or full. */
  public String mode() {
    return oneOf(MODE, MODE_DEFAULT, "observe", "place", "full");
  }

  /** Returns the adopted queues as written. */
  public String queues() {
    return conf.getTrimmed(QUEUES, ALL);
  }

  /** Returns the adopted partitions as written. */
  public String partitions() {
    return conf.getTrimmed(PARTITIONS, ALL);
  }

  /** Returns whether the ResourceManager starts the core itself. */
  public boolean isCoreManaged() {
    return Boolean.parseBoolean(oneOf(CORE_MANAGED, "true", "true", "false"));
  }

  /** Returns the interpreter of the managed core. */
  public String corePython() {
    return conf.getTrimmed(CORE_PYTHON, CORE_PYTHON_DEFAULT);
  }

  /** Returns the folder for the managed core's output; null for a folder in Hadoop's own. */
  public String coreLogDir() {
    return conf.getTrimmed(CORE_LOG_DIR);
  }

  /** Returns the fallback's word: wait or exclusive. */
  public String coreFallback() {
    return oneOf(CORE_FALLBACK, CORE_FALLBACK_DEFAULT, "wait", "exclusive");
  }

  /** Returns how long recovered nodes wait for their agents. */
  public int recoveryHoldMs() {
    return atLeast(0, RECOVERY_HOLD_MS, RECOVERY_HOLD_MS_DEFAULT);
  }

  /** Returns whether servers count as able to suspend although no agent says so. */
  public boolean oversubscribesWithoutAgent() {
    return Boolean.parseBoolean(oneOf(OVERSUBSCRIBE_WITHOUT_AGENT, "false", "true", "false"));
  }

  /** Returns the interpreter of a node's agent. */
  public String agentPython() {
    return conf.getTrimmed(AGENT_PYTHON, AGENT_PYTHON_DEFAULT);
  }

  /** Returns the folder for the agent's output; null for a folder in Hadoop's own. */
  public String agentLogDir() {
    return conf.getTrimmed(AGENT_LOG_DIR);
  }

  private String oneOf(String key, String otherwise, String... words) {
    String text = conf.getTrimmed(key, otherwise).toLowerCase(Locale.ROOT);
    if (Arrays.asList(words).contains(text)) {
      return text;
    }
    throw new YarnRuntimeException(
        key + ": found \"" + text + "\", expected " + String.join(" or ", words));
  }

  private int atLeast(int least, String key, int otherwise) {
    String text = conf.getTrimmed(key);
    if (text == null) {
      return otherwise;
    }
    try {
      int value = Integer.parseInt(text);
      if (value >= least) {
        return value;
      }
    } catch (NumberFormatException e) {
      // Told below, as a number that is too small.
    }
    throw new YarnRuntimeException(
        key + ": found \"" + text + "\", expected a whole number of at least " + least);
  }
}
