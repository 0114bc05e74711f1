package org.gandiva.yarn.gateway;

import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicLong;

/** How calls of the core ended, counted since the start. */
public final class CallCounts {
  /** The code of what was done. */
  public static final String OK = "OK";

  private final ConcurrentMap<String, AtomicLong> doneByOp = new ConcurrentHashMap<>();
  private final ConcurrentMap<String, AtomicLong> refusedByCode = new ConcurrentHashMap<>();
  private final ConcurrentMap<String, AtomicLong> requestsRefusedByKind = new ConcurrentHashMap<>();

  void effect(String op, String code) {
    if (code.equals(OK)) {
      increment(doneByOp, op);
    } else {
      increment(refusedByCode, code);
    }
  }

  void requestRefused(String kind) {
    increment(requestsRefusedByKind, kind);
  }

  private static void increment(ConcurrentMap<String, AtomicLong> counts, String name) {
    counts.computeIfAbsent(name, ignored -> new AtomicLong()).incrementAndGet();
  }

  /** Returns effects that were done, by what they do. */
  public Map<String, Long> doneByOp() {
    return copy(doneByOp);
  }

  /** Returns effects that were refused, by the code of the refusal. */
  public Map<String, Long> refusedByCode() {
    return copy(refusedByCode);
  }

  /** Returns whole requests that were refused, by the kind of the refusal. */
  public Map<String, Long> requestsRefusedByKind() {
    return copy(requestsRefusedByKind);
  }

  private static Map<String, Long> copy(ConcurrentMap<String, AtomicLong> counts) {
    Map<String, Long> copy = new TreeMap<>();
    counts.forEach((name, count) -> copy.put(name, count.get()));
    return copy;
  }
}
