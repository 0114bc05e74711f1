package org.gandiva.yarn;

import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.NodeType;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerNode;
import org.apache.hadoop.yarn.server.scheduler.SchedulerRequestKey;

/** A container of a gang that passed all checks: where, for which ask, and how local. */
final class PlannedContainer {
  final FiCaSchedulerNode node;
  final SchedulerRequestKey key;
  final Resource capability;
  final NodeType locality;

  PlannedContainer(
      FiCaSchedulerNode node, SchedulerRequestKey key, Resource capability, NodeType locality) {
    this.node = node;
    this.key = key;
    this.capability = capability;
    this.locality = locality;
  }
}
