package org.gandiva.yarn;

import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;

/**
 * Lets no master see part of a gang: its heartbeats share the gate of its attempt, a gang commit
 * has it alone. Always taken before any lock of the scheduler.
 */
final class CommitGate {
  private final ConcurrentMap<ApplicationAttemptId, ReentrantReadWriteLock> gates =
      new ConcurrentHashMap<>();

  Lock shared(ApplicationAttemptId attempt) {
    return gate(attempt).readLock();
  }

  Lock exclusive(ApplicationAttemptId attempt) {
    return gate(attempt).writeLock();
  }

  /** The attempt is gone. */
  void forget(ApplicationAttemptId attempt) {
    gates.remove(attempt);
  }

  private ReentrantReadWriteLock gate(ApplicationAttemptId attempt) {
    ReentrantReadWriteLock known = gates.get(attempt);
    return known != null
        ? known
        : gates.computeIfAbsent(attempt, ignored -> new ReentrantReadWriteLock());
  }
}
