package org.gandiva.yarn;

import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.hadoop.yarn.api.records.NodeId;

/**
 * GPUs of each node as its NodeManager told them, and the greatest of all: every heartbeat of a
 * master asks for that one, so it is kept rather than looked for.
 */
final class PhysicalGpus {
  private final ConcurrentMap<NodeId, Long> byNode = new ConcurrentHashMap<>();
  private final TreeMap<Long, Integer> nodesByGpus = new TreeMap<>();
  private volatile long greatest = Long.MAX_VALUE;

  synchronized void put(NodeId node, long gpus) {
    nodesByGpus.merge(gpus, 1, Integer::sum);
    forget(byNode.put(node, gpus));
  }

  synchronized void remove(NodeId node) {
    forget(byNode.remove(node));
  }

  private void forget(Long gpus) {
    if (gpus != null) {
      nodesByGpus.computeIfPresent(gpus, (ignored, nodes) -> nodes == 1 ? null : nodes - 1);
    }
    greatest = nodesByGpus.isEmpty() ? Long.MAX_VALUE : nodesByGpus.lastKey();
  }

  /** Returns the GPUs of a node; null for one that is not known. */
  Long get(NodeId node) {
    return byNode.get(node);
  }

  /** Returns the GPUs of the node with most; without nodes there is no bound. */
  long greatest() {
    return greatest;
  }
}
