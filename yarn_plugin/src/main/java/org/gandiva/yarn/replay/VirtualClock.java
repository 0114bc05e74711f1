package org.gandiva.yarn.replay;

import org.apache.hadoop.yarn.util.Clock;

/** The time of a replay, from 0: moved by its driver, never by itself, and never backwards. */
final class VirtualClock implements Clock {
  private volatile long nowMs;

  @Override
  public long getTime() {
    return nowMs;
  }

  void advanceTo(long timeMs) {
    if (timeMs < nowMs) {
      throw new IllegalArgumentException(
          "virtual time cannot go back from " + nowMs + " ms to " + timeMs + " ms");
    }
    nowMs = timeMs;
  }
}
