package org.gandiva.yarn.gateway;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;

/**
 * Events on their way to the core. Offering never waits: when the queue is full, or nobody listens,
 * everything is dropped, and the next batch is one whole snapshot instead.
 */
public final class EventQueue {
  /** A message stays below 16 MiB. */
  private static final long BATCH_BYTES_MAX = 12L * 1024 * 1024;

  private static final long ITEM_BYTES_MAX = 512;

  private final int countMax;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition arrived = lock.newCondition();
  private final Deque<ObjectNode> waiting = new ArrayDeque<>();
  private boolean mustResync = true;
  private long nextSequence;
  private long overflows;

  /** Creates a queue that keeps at most this many events. */
  public EventQueue(int countMax) {
    this.countMax = countMax;
  }

  /** Adds an event; never blocks for longer than other threads add or take one. */
  public void offer(ObjectNode event) {
    lock.lock();
    try {
      if (mustResync) {
        return; // The snapshot to come will hold it.
      }
      if (waiting.size() >= countMax) {
        overflows++;
        drop();
        return;
      }
      add(event);
    } finally {
      lock.unlock();
    }
  }

  /** Drops everything; the next batch is a snapshot. */
  public void reset() {
    lock.lock();
    try {
      drop();
    } finally {
      lock.unlock();
    }
  }

  private void drop() {
    waiting.clear();
    mustResync = true;
    arrived.signalAll();
  }

  private void add(ObjectNode event) {
    event.put("seq", nextSequence++);
    waiting.add(event);
    arrived.signalAll();
  }

  /**
   * Takes the oldest events, waiting for the first one.
   *
   * @param snapshot makes the parts of a snapshot; called without any lock of this queue
   */
  public List<ObjectNode> take(int max, long waitMs, Supplier<List<ObjectNode>> snapshot)
      throws InterruptedException {
    long leftNs = TimeUnit.MILLISECONDS.toNanos(waitMs);
    if (beginResync()) {
      addFirst(snapshot.get());
    }
    lock.lockInterruptibly();
    try {
      while (waiting.isEmpty() && !mustResync && leftNs > 0) {
        leftNs = arrived.awaitNanos(leftNs);
      }
      List<ObjectNode> taken = new ArrayList<>();
      long bytes = 0;
      while (!waiting.isEmpty() && taken.size() < max && !endsBatch(taken)) {
        bytes += bytesAbout(waiting.peek());
        if (bytes > BATCH_BYTES_MAX && !taken.isEmpty()) {
          break;
        }
        taken.add(waiting.poll());
      }
      return taken;
    } finally {
      lock.unlock();
    }
  }

  /**
   * An upper bound without writing the event twice: hosts and tags have limits, names have none.
   */
  private static long bytesAbout(ObjectNode event) {
    long items = 1L + event.path("asks").size();
    items += event.path("blacklist").size();
    items += event.path("tags").size();
    items += event.path("limits").size();
    return ITEM_BYTES_MAX * items + 6L * event.path("name").asText().length();
  }

  /** A part of a snapshot is as large as a message may be: it travels alone. */
  private static boolean endsBatch(List<ObjectNode> taken) {
    return !taken.isEmpty() && taken.get(taken.size() - 1).has("parts");
  }

  private boolean beginResync() {
    lock.lock();
    try {
      boolean begins = mustResync;
      // What happens from now on is queued behind the snapshot that is about to be made.
      mustResync = false;
      return begins;
    } finally {
      lock.unlock();
    }
  }

  private void addFirst(List<ObjectNode> parts) {
    lock.lock();
    try {
      if (mustResync) {
        return; // Overflowed meanwhile: the next batch makes another one.
      }
      List<ObjectNode> later = new ArrayList<>(waiting);
      waiting.clear();
      parts.forEach(this::add);
      later.forEach(this::add);
    } finally {
      lock.unlock();
    }
  }

  /** Returns whether more events wait. */
  public boolean hasMore() {
    lock.lock();
    try {
      return mustResync || !waiting.isEmpty();
    } finally {
      lock.unlock();
    }
  }

  /** Returns how many events wait; a snapshot that is due is none yet. */
  public int size() {
    lock.lock();
    try {
      return waiting.size();
    } finally {
      lock.unlock();
    }
  }

  /** Returns the sequence number that the next event will get. */
  public long nextSequence() {
    lock.lock();
    try {
      return nextSequence;
    } finally {
      lock.unlock();
    }
  }

  /** Returns how often events were dropped because the queue was full. */
  public long overflows() {
    lock.lock();
    try {
      return overflows;
    } finally {
      lock.unlock();
    }
  }
}
