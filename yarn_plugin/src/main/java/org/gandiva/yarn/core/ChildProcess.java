package org.gandiva.yarn.core;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A Python process as a child of a daemon of Hadoop's: started, watched, started again. All of it
 * happens on threads of its own; starting and stopping return at once.
 */
public final class ChildProcess implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ChildProcess.class);
  private static final long LOOK_MS = 200;
  private static final long GRACE_S = 10;

  /** One that makes no call for so long hangs for good: it is ended and started again. */
  private static final long HUNG_MS = TimeUnit.MINUTES.toMillis(1);

  private static final SecureRandom RANDOM = new SecureRandom();

  private final ChildCommand command;
  private final RotatedLog output;
  private final LongSupplier silentMs;
  private final RestartPolicy policy = new RestartPolicy();
  private final AtomicLong starts = new AtomicLong();
  private final CountDownLatch stopping = new CountDownLatch(1);
  private final Thread supervisor = new Thread(this::supervise, "gandiva-supervisor");

  private volatile String id = "";
  private volatile String lastEnd = "";
  private Process process;

  /**
   * Creates the child's keeper.
   *
   * @param silentMs how long ago the child's last call began; 0 where it makes none
   */
  public ChildProcess(ChildCommand command, RotatedLog output, LongSupplier silentMs) {
    this.command = command;
    this.output = output;
    this.silentMs = silentMs;
  }

  /** Starts the child, and keeps it running. */
  public void start() {
    supervisor.setDaemon(true);
    supervisor.start();
  }

  /** Tells the child to end and does not wait for it; one that does not listen is killed later. */
  @Override
  public void close() {
    stopping.countDown();
    synchronized (this) {
      if (process != null) {
        process.destroy();
      }
    }
  }

  /** Returns what the youngest child says in its hello; empty before the first. */
  String id() {
    return id;
  }

  /** Returns how often it was started again. */
  long restarts() {
    return Math.max(0, starts.get() - 1);
  }

  /** Returns whether it ended too often, and rests. */
  boolean isDown() {
    return policy.isDown();
  }

  /** Returns how the last one ended; empty where none has. */
  String lastEnd() {
    return lastEnd;
  }

  private void supervise() {
    try {
      while (stopping.getCount() > 0) {
        long startedNs = System.nanoTime();
        lastEnd = runOnce(startedNs);
        if (stopping.getCount() > 0) {
          pause(policy.onEnd(TimeUnit.NANOSECONDS.toMillis(System.nanoTime())));
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void pause(long pauseMs) throws InterruptedException {
    long pauseS = TimeUnit.MILLISECONDS.toSeconds(pauseMs);
    if (policy.isDown()) {
      LOG.error(
          "{} is down: it ended {} times within ten minutes, the last time: {};"
              + " tried again in {} s",
          command.what(),
          RestartPolicy.ENDS_MAX,
          lastEnd,
          pauseS);
    } else {
      LOG.warn("{} ended: {}; started again in {} s", command.what(), lastEnd, pauseS);
    }
    stopping.await(pauseMs, TimeUnit.MILLISECONDS);
  }

  /** Returns how it ended, as one line. */
  private String runOnce(long startedNs) throws InterruptedException {
    Process child;
    try {
      child = launch();
    } catch (IOException | RuntimeException e) {
      return String.format(
          "%s: found \"%s\", which cannot be run (%s), expected an interpreter with gandiva",
          command.pythonKey(), command.python(), e.getMessage());
    }
    Thread pump = new Thread(() -> pump(child), "gandiva-output");
    pump.setDaemon(true);
    pump.start();
    String reason = "";
    while (!child.waitFor(LOOK_MS, TimeUnit.MILLISECONDS) && stopping.getCount() > 0) {
      long livedMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - startedNs);
      policy.onAlive(livedMs);
      if (livedMs > HUNG_MS && silentMs.getAsLong() > HUNG_MS) {
        reason = "no call for a minute, ";
        child.destroyForcibly();
      }
    }
    if (!child.waitFor(GRACE_S, TimeUnit.SECONDS)) {
      child.destroyForcibly();
      child.waitFor();
    }
    pump.join(TimeUnit.SECONDS.toMillis(1));
    return String.format(
        "%sexit code %d: %s (%s)", reason, child.exitValue(), output.lastLine(), output.file());
  }

  private synchronized Process launch() throws IOException {
    id = randomId();
    starts.incrementAndGet();
    process = command.builder(id).start();
    if (stopping.getCount() == 0) {
      process.destroy();
    }
    return process;
  }

  private void pump(Process child) {
    try {
      output.copy(child.getInputStream());
    } catch (IOException e) {
      LOG.debug(
          "The output of {} ended", command.what(), e); // As it does when the child is killed.
    }
  }

  private static String randomId() {
    byte[] bytes = new byte[Long.BYTES];
    RANDOM.nextBytes(bytes);
    return Long.toHexString(ByteBuffer.wrap(bytes).getLong());
  }
}
