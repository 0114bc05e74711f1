package org.gandiva.yarn;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.nodelabels.CommonNodeLabelsManager;
import org.apache.hadoop.yarn.server.resourcemanager.nodelabels.RMNodeLabelsManager;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.AbstractCSQueue.CapacityConfigType;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CSQueue;
import org.apache.hadoop.yarn.util.resource.Resources;
import org.gandiva.yarn.gateway.Json;

/**
 * What the live queues may use of each partition, in physical GPUs or as a ratio of the partition's
 * physical GPUs, whatever heights the scheduler sees (DESIGN §4).
 */
final class QueueLimits {
  private static final String LEGACY_MODE = "yarn.scheduler.capacity.legacy-queue-mode.enabled";

  private final GandivaScheduler scheduler;
  private final Adoption adoption;
  private final int heightMax;
  private final RMNodeLabelsManager labels;
  private final Configuration conf;

  QueueLimits(GandivaScheduler scheduler, Adoption adoption, int heightMax) {
    this.scheduler = scheduler;
    this.adoption = adoption;
    this.heightMax = heightMax;
    this.labels = scheduler.getRMContext().getNodeLabelManager();
    this.conf = scheduler.getConfiguration();
  }

  /** Returns all queues, root included, by path. */
  static List<CSQueue> queues(GandivaScheduler scheduler) {
    return scheduler.getCapacitySchedulerQueueManager().getQueues().values().stream()
        .sorted(Comparator.comparing(CSQueue::getQueuePath))
        .collect(Collectors.toList());
  }

  /** Returns all partitions there are; the first is the default one. */
  static Set<String> partitions(GandivaScheduler scheduler) {
    RMNodeLabelsManager labels = scheduler.getRMContext().getNodeLabelManager();
    Set<String> names = new TreeSet<>(labels.getClusterNodeLabelNames());
    names.add(CommonNodeLabelsManager.NO_LABEL);
    return names;
  }

  /** Whether limits follow from sizes that change as nodes come and go. */
  boolean isMixed() {
    return !conf.getBoolean(LEGACY_MODE, true);
  }

  /** Writes one entry a queue and partition that it may use. */
  void write(ArrayNode limits) {
    Set<String> partitions = partitions(scheduler);
    for (CSQueue queue : queues(scheduler)) {
      Set<String> accessible = queue.getAccessibleNodeLabels();
      for (String partition : partitions) {
        if (partition.isEmpty()
            || accessible.contains(CommonNodeLabelsManager.ANY)
            || accessible.contains(partition)) {
          limits.add(limit(queue, partition));
        }
      }
    }
  }

  private ObjectNode limit(CSQueue queue, String partition) {
    String path = queue.getQueuePath();
    ObjectNode limit = Json.object().put("queue", path);
    limit.put("parent", queue.getParent() == null ? "" : queue.getParent().getQueuePath());
    limit.put("partition", partition);
    String ordering = conf.get(QueueNames.PREFIX + path + ".ordering-policy", "");
    limit.put("ordering", ordering.contains("fair") ? "fair" : "fifo");
    if (queue.getParent() == null) {
      limit.put("guaranteed_ratio", 1.0).put("max_ratio", 1.0);
    } else if (isMixed()) {
      mixed(limit, queue, partition);
    } else if (queue.getCapacityConfigType() == CapacityConfigType.ABSOLUTE_RESOURCE) {
      absolute(limit, queue, partition);
    } else {
      limit.put(
          "guaranteed_ratio", plain(queue.getQueueCapacities().getAbsoluteCapacity(partition)));
      limit.put(
          "max_ratio", plain(queue.getQueueCapacities().getAbsoluteMaximumCapacity(partition)));
    }
    ArrayNode off = limit.putArray("mechanisms_off");
    adoption.mechanismsOff(path).forEach(off::add);
    return limit;
  }

  private void absolute(ObjectNode limit, CSQueue queue, String partition) {
    int scale = AbsoluteGpus.scale(adoption, heightMax, queue.getQueuePath(), partition);
    Resource least = queue.getQueueResourceQuotas().getConfiguredMinResource(partition);
    Resource most = queue.getQueueResourceQuotas().getConfiguredMaxResource(partition);
    limit.put("guaranteed_gpus", (double) ResourceVector.gpus(least) / scale);
    if (most.equals(Resources.none())) {
      limit.put("max_ratio", 1.0);
    } else {
      limit.put("max_gpus", (double) ResourceVector.gpus(most) / scale);
    }
  }

  /** A vector's GPUs may be an amount; a share or a weight is what Hadoop made of it just now. */
  private void mixed(ObjectNode limit, CSQueue queue, String partition) {
    mixed(limit, "guaranteed", queue, partition, "capacity", queue.getEffectiveCapacity(partition));
    mixed(
        limit,
        "max",
        queue,
        partition,
        "maximum-capacity",
        queue.getEffectiveMaxCapacity(partition));
  }

  private void mixed(
      ObjectNode limit,
      String name,
      CSQueue queue,
      String partition,
      String key,
      Resource effective) {
    String path = queue.getQueuePath();
    String label = partition.isEmpty() ? "" : ".accessible-node-labels." + partition;
    Long amount = AbsoluteGpus.of(conf.get(QueueNames.PREFIX + path + label + "." + key));
    if (amount != null) {
      int scale = AbsoluteGpus.scale(adoption, heightMax, path, partition);
      limit.put(name + "_gpus", (double) amount / scale);
      return;
    }
    long total =
        ResourceVector.gpus(labels.getResourceByLabel(partition, scheduler.getClusterResource()));
    limit.put(name + "_ratio", total == 0 ? 0 : (double) ResourceVector.gpus(effective) / total);
  }

  /** A tenth as 0.1, and not as the double nearest to the float nearest to it. */
  private static double plain(float ratio) {
    return Double.parseDouble(Float.toString(ratio));
  }
}
