package org.gandiva.yarn.core;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.gandiva.yarn.gateway.CallWatcher;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Notices that the core is silent: that no call of the valid session began for a second. It looks
 * on a thread of its own and by a clock that nobody sets; no thread of the ResourceManager waits.
 *
 * <p>A pause of the JVM itself is nobody's silence: of each step only so much counts. Nor is a call
 * of the core that takes us long to answer.
 */
public final class CoreWatch implements AutoCloseable, CallWatcher {
  /** What is known of the core. */
  public enum State {
    /** No session was opened since the start. */
    NEVER_SEEN,
    /** It calls. */
    CONNECTED,
    /** It called, and has stopped to. */
    SILENT
  }

  /** Without a call for so long the core counts as silent. */
  public static final long SILENCE_MS = 1000;

  private static final Logger LOG = LoggerFactory.getLogger(CoreWatch.class);
  private static final long STEP_MS = 50;
  private static final long STEP_COUNTED_MS_MAX = 4 * STEP_MS;
  private static final long NS_PER_MS = 1_000_000;

  private final Fallback fallback;
  private final LongSupplier clockNs;
  private final AtomicLong opens = new AtomicLong();
  private final AtomicInteger answering = new AtomicInteger();
  private final Thread thread = new Thread(this::watch, "gandiva-core-watch");

  private volatile long heardNs;
  private volatile long sinceNs;
  private volatile State state = State.NEVER_SEEN;
  private volatile boolean isOpen;
  private volatile boolean isEngaged;
  // Of the watching thread alone.
  private long steppedNs;
  private long excusedNs;
  private long excusedForNs;

  /** Creates a watch that begins now. */
  public CoreWatch(Fallback fallback) {
    this(fallback, System::nanoTime);
  }

  CoreWatch(Fallback fallback, LongSupplier clockNs) {
    this.fallback = fallback;
    this.clockNs = clockNs;
    begin();
  }

  private void begin() {
    heardNs = clockNs.getAsLong();
    sinceNs = heardNs;
    steppedNs = heardNs;
    excusedForNs = heardNs;
  }

  /** Begins to watch. */
  public void start() {
    begin();
    thread.setDaemon(true);
    thread.start();
  }

  @Override
  public void close() {
    thread.interrupt();
  }

  private void watch() {
    while (!Thread.currentThread().isInterrupted()) {
      try {
        Thread.sleep(STEP_MS);
      } catch (InterruptedException e) {
        return;
      }
      step();
    }
  }

  /** Looks once. */
  void step() {
    long nowNs = clockNs.getAsLong();
    if (answering.get() > 0) {
      heardNs = nowNs;
    }
    long heard = heardNs;
    if (heard != excusedForNs) {
      excusedForNs = heard;
      excusedNs = 0;
    }
    excusedNs += Math.max(0, nowNs - steppedNs - STEP_COUNTED_MS_MAX * NS_PER_MS);
    steppedNs = nowNs;
    if (nowNs - heard - excusedNs >= SILENCE_MS * NS_PER_MS) {
      onSilence(heard);
    }
  }

  private synchronized void onSilence(long heard) {
    boolean wasOpen = isOpen;
    // Before the second look: a call either sees this and waits for us, or is seen by us.
    isOpen = true;
    if (heardNs != heard) {
      isOpen = wasOpen;
      return;
    }
    if (state == State.CONNECTED) {
      state = State.SILENT;
      sinceNs = heard;
      opens.incrementAndGet();
    }
    boolean isWanted = fallback.isExclusive();
    if (!wasOpen) {
      LOG.warn(
          "Gandiva's core {}: {}",
          state == State.SILENT ? "is silent" : "is not there yet",
          isWanted ? "stock code serves GPU asks on physical GPUs" : "GPU asks wait");
    }
    setEngaged(isWanted);
  }

  private void setEngaged(boolean isWanted) {
    if (isWanted == isEngaged) {
      return;
    }
    if (isWanted) {
      fallback.engage();
    } else {
      fallback.lift();
    }
    isEngaged = isWanted;
  }

  /** Returns after stock code has stopped to serve GPU asks. */
  @Override
  public void heard() {
    heardNs = clockNs.getAsLong();
    if (isOpen || state != State.CONNECTED) {
      comeBack();
    }
  }

  @Override
  public void answerBegins() {
    answering.incrementAndGet();
  }

  @Override
  public void answerEnds() {
    heardNs = clockNs.getAsLong();
    answering.decrementAndGet();
  }

  private synchronized void comeBack() {
    setEngaged(false);
    isOpen = false;
    if (state != State.CONNECTED) {
      state = State.CONNECTED;
      sinceNs = heardNs;
      LOG.info("Gandiva's core is connected");
    }
  }

  /** Returns what is known of the core. */
  public State state() {
    return state;
  }

  /** Returns for how long that has been so, in milliseconds; a silence begins at the last call. */
  public long stateMs() {
    return (clockNs.getAsLong() - sinceNs) / NS_PER_MS;
  }

  /** Returns how long ago the last call began, or the watch, in milliseconds. */
  public long silentMs() {
    return (clockNs.getAsLong() - heardNs) / NS_PER_MS;
  }

  /** Returns how often a connected core fell silent. */
  public long opens() {
    return opens.get();
  }

  /** Returns whether stock code serves GPU asks because the core is silent. */
  public boolean isEngaged() {
    return isEngaged;
  }
}
