package org.gandiva.yarn.core;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.TimeUnit;

/**
 * When a core that ended is started again: after 1, 2, 4 … s, at most 60; and where it ended five
 * times within ten minutes it counts as down and is tried once every ten minutes, until one has
 * lived for a minute. Knows no clock; times are milliseconds of any.
 */
final class RestartPolicy {
  /** Ends within the window that make it down. */
  static final int ENDS_MAX = 5;

  /** Both the window and the rest of a core that is down. */
  static final long WINDOW_MS = TimeUnit.MINUTES.toMillis(10);

  private static final long FIRST_PAUSE_MS = TimeUnit.SECONDS.toMillis(1);
  private static final long PAUSE_MS_MAX = TimeUnit.SECONDS.toMillis(60);
  private static final long WELL_MS = TimeUnit.MINUTES.toMillis(1);

  private final Deque<Long> endsMs = new ArrayDeque<>();
  private volatile boolean isDown;

  /** Notes an end; returns the pause before the next start. */
  long onEnd(long nowMs) {
    while (!endsMs.isEmpty() && nowMs - endsMs.peek() >= WINDOW_MS) {
      endsMs.poll();
    }
    endsMs.add(nowMs);
    if (isDown || endsMs.size() >= ENDS_MAX) {
      isDown = true;
      return WINDOW_MS;
    }
    return Math.min(PAUSE_MS_MAX, FIRST_PAUSE_MS << (endsMs.size() - 1));
  }

  /** Notes that one has lived for so long. */
  void onAlive(long livedMs) {
    if (livedMs >= WELL_MS) {
      isDown = false;
    }
  }

  /** Returns whether it ended too often to be tried soon. */
  boolean isDown() {
    return isDown;
  }
}
