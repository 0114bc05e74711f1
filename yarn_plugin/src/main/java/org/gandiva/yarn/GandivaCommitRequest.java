package org.gandiva.yarn;

import java.util.Collections;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.ContainerAllocationProposal;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.ResourceCommitRequest;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerApp;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerNode;

/** A proposal of ours: its class is what the guard lets pass. */
final class GandivaCommitRequest
    extends ResourceCommitRequest<FiCaSchedulerApp, FiCaSchedulerNode> {
  GandivaCommitRequest(ContainerAllocationProposal<FiCaSchedulerApp, FiCaSchedulerNode> proposal) {
    super(Collections.singletonList(proposal), null, null);
  }
}
