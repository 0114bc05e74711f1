package org.gandiva.yarn;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.exceptions.YarnRuntimeException;

/** Every key of the plug-in, once, with unit and default. */
public final class GandivaConfiguration {
  /** Prefix of all keys. */
  public static final String PREFIX = "yarn.scheduler.gandiva.";

  /** Jobs that may share one device; schedulable GPUs of a node are physical GPUs times it. */
  public static final String HEIGHT_MAX = PREFIX + "height.max";

  /** SPEC's H_max. */
  public static final int HEIGHT_MAX_DEFAULT = 4;

  /** File of mode 0600 with the secret of the bridge; absent: the bridge is not opened. */
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

  private final Configuration conf;

  /** Wraps the ResourceManager's configuration. */
  public GandivaConfiguration(Configuration conf) {
    this.conf = conf;
  }

  /** Returns the greatest height of a device, at least 1. */
  public int heightMax() {
    return atLeast(1, HEIGHT_MAX, HEIGHT_MAX_DEFAULT);
  }

  /** Returns the path of the token file; null where the bridge stays closed. */
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
