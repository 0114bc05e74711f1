package org.gandiva.yarn;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * Which queues and partitions Gandiva has taken over, and how far. Immutable: a refresh replaces it
 * whole. Queues are full paths, partitions node labels, the empty text for nodes without one.
 */
final class Adoption {
  /** The mechanisms that a queue can be spared, as written in its keys. */
  static final List<String> MECHANISMS =
      Collections.unmodifiableList(Arrays.asList("slicing", "packing", "migration", "growshrink"));

  private final Mode mode;
  private final Set<String> queues;
  private final Set<String> partitions;
  private final Map<String, Boolean> switches;
  private final String fallback;

  /**
   * Creates an adoption.
   *
   * @param queues paths, children included; null for all
   * @param partitions node labels; null for all
   * @param switches what queues say, by path, a dot and the mechanism
   */
  Adoption(
      Mode mode,
      Set<String> queues,
      Set<String> partitions,
      Map<String, Boolean> switches,
      String fallback) {
    this.mode = mode;
    this.queues = queues == null ? null : Collections.unmodifiableSet(new HashSet<>(queues));
    this.partitions =
        partitions == null ? null : Collections.unmodifiableSet(new HashSet<>(partitions));
    this.switches = Collections.unmodifiableMap(new TreeMap<>(switches));
    this.fallback = fallback;
  }

  Mode mode() {
    return mode;
  }

  /** Returns what becomes of GPU asks while the core is silent: wait or exclusive. */
  String fallback() {
    return fallback;
  }

  /** Whether GPU asks of this queue in this partition are placed by the core. */
  boolean adopts(String queuePath, String partition) {
    return mode != Mode.OBSERVE && hasPartition(partition) && hasQueue(queuePath);
  }

  /** Whether every GPU ask there can be is placed by the core. */
  boolean adoptsAll() {
    return mode != Mode.OBSERVE && queues == null && partitions == null;
  }

  /** Whether nodes of this partition may hold more jobs than devices. */
  boolean overSubscribes(String partition) {
    return mode == Mode.FULL && hasPartition(partition);
  }

  boolean hasPartition(String partition) {
    return partitions == null || partitions.contains(partition);
  }

  /** Whether the queue or one above it was named. */
  boolean hasQueue(String queuePath) {
    if (queues == null) {
      return true;
    }
    for (String path = queuePath; path != null; path = parentOf(path)) {
      if (queues.contains(path)) {
        return true;
      }
    }
    return false;
  }

  /** Whether the queue, one above it or one below it was named. */
  boolean touchesQueue(String queuePath) {
    return hasQueue(queuePath)
        || queues.stream().anyMatch(path -> path.startsWith(queuePath + "."));
  }

  /** Returns the mechanisms that this queue's jobs are spared; what a queue says holds below it. */
  List<String> mechanismsOff(String queuePath) {
    if (mode == Mode.OBSERVE || !touchesQueue(queuePath)) {
      return MECHANISMS;
    }
    List<String> off = new ArrayList<>();
    for (String mechanism : MECHANISMS) {
      if (!isOn(queuePath, mechanism)) {
        off.add(mechanism);
      }
    }
    return off;
  }

  private boolean isOn(String queuePath, String mechanism) {
    for (String path = queuePath; path != null; path = parentOf(path)) {
      Boolean said = switches.get(path + "." + mechanism);
      if (said != null) {
        return said;
      }
    }
    return true;
  }

  private static String parentOf(String queuePath) {
    int dot = queuePath.lastIndexOf('.');
    return dot < 0 ? null : queuePath.substring(0, dot);
  }

  @Override
  public String toString() {
    return String.format(
        "mode %s, queues %s, partitions %s, fallback %s",
        mode.word(),
        queues == null ? "*" : queues,
        partitions == null ? "*" : partitions,
        fallback);
  }
}
