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
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.QueueResourceQuotas;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.AbstractCSQueue.CapacityConfigType;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CSQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.QueueCapacities;
import org.apache.hadoop.yarn.util.resource.Resources;
import org.gandiva.yarn.gateway.Json;

/**
 * What the live queues may use of each partition, in physical GPUs or as a ratio of the partition's
 * physical GPUs, whatever heights the scheduler sees (DESIGN §4).
 */
final class QueueLimits {
  private static final String LEGACY_MODE = "yarn.scheduler.capacity.legacy-queue-mode.enabled";

  /** Devices, or a ratio of the partition's. */
  private static final class Bound {
    private final boolean isRatio;
    private final double amount;

    Bound(boolean isRatio, double amount) {
      this.isRatio = isRatio;
      this.amount = amount;
    }

    void write(ObjectNode limit, String name) {
      limit.put(name + (isRatio ? "_ratio" : "_gpus"), amount);
    }
  }

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
    bound(queue, partition, false).write(limit, "guaranteed");
    bound(queue, partition, true).write(limit, "max");
    ArrayNode off = limit.putArray("mechanisms_off");
    adoption.mechanismsOff(path).forEach(off::add);
    return limit;
  }

  /**
   * Returns the most that a queue may hold of a partition.
   *
   * @param physical the partition's GPUs
   */
  double maxGpus(CSQueue queue, String partition, long physical) {
    Bound bound = bound(queue, partition, true);
    return bound.isRatio ? bound.amount * physical : bound.amount;
  }

  private Bound bound(CSQueue queue, String partition, boolean isMax) {
    if (queue.getParent() == null) {
      return new Bound(true, 1);
    }
    if (isMixed()) {
      return mixed(queue, partition, isMax);
    }
    if (queue.getCapacityConfigType() == CapacityConfigType.ABSOLUTE_RESOURCE) {
      return absolute(queue, partition, isMax);
    }
    QueueCapacities capacities = queue.getQueueCapacities();
    return new Bound(
        true,
        plain(
            isMax
                ? capacities.getAbsoluteMaximumCapacity(partition)
                : capacities.getAbsoluteCapacity(partition)));
  }

  private Bound absolute(CSQueue queue, String partition, boolean isMax) {
    QueueResourceQuotas quotas = queue.getQueueResourceQuotas();
    Resource most = quotas.getConfiguredMaxResource(partition);
    if (isMax && most.equals(Resources.none())) {
      return new Bound(true, 1);
    }
    Resource amount = isMax ? most : quotas.getConfiguredMinResource(partition);
    return new Bound(false, (double) ResourceVector.gpus(amount) / scale(queue, partition));
  }

  /** A vector's GPUs may be an amount; a share or a weight is what Hadoop made of it just now. */
  private Bound mixed(CSQueue queue, String partition, boolean isMax) {
    String label = partition.isEmpty() ? "" : ".accessible-node-labels." + partition;
    String suffix = isMax ? ".maximum-capacity" : ".capacity";
    String key = QueueNames.PREFIX + queue.getQueuePath() + label + suffix;
    Long amount = AbsoluteGpus.of(conf.get(key));
    if (amount != null) {
      return new Bound(false, (double) amount / scale(queue, partition));
    }
    Resource effective =
        isMax ? queue.getEffectiveMaxCapacity(partition) : queue.getEffectiveCapacity(partition);
    Resource all = labels.getResourceByLabel(partition, scheduler.getClusterResource());
    long total = ResourceVector.gpus(all);
    return new Bound(true, total == 0 ? 0 : (double) ResourceVector.gpus(effective) / total);
  }

  private int scale(CSQueue queue, String partition) {
    return AbsoluteGpus.scale(adoption, heightMax, queue.getQueuePath(), partition);
  }

  /** A tenth as 0.1, and not as the double nearest to the float nearest to it. */
  private static double plain(float ratio) {
    return Double.parseDouble(Float.toString(ratio));
  }
}
