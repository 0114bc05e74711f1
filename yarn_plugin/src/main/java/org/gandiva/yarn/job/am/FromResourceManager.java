package org.gandiva.yarn.job.am;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.NodeReport;
import org.apache.hadoop.yarn.api.records.PreemptionContainer;
import org.apache.hadoop.yarn.api.records.PreemptionContract;
import org.apache.hadoop.yarn.api.records.PreemptionMessage;
import org.apache.hadoop.yarn.api.records.PreemptionResourceRequest;
import org.apache.hadoop.yarn.api.records.StrictPreemptionContract;
import org.apache.hadoop.yarn.api.records.UpdatedContainer;
import org.apache.hadoop.yarn.client.api.async.AMRMClientAsync;

/** What the ResourceManager says in its heartbeats. */
final class FromResourceManager extends AMRMClientAsync.AbstractCallbackHandler {
  private final Master master;

  FromResourceManager(Master master) {
    this.master = master;
  }

  @Override
  public void onContainersAllocated(List<Container> containers) {
    master.allocated(containers);
  }

  @Override
  public void onContainersCompleted(List<ContainerStatus> statuses) {
    master.completed(statuses);
  }

  /**
   * Gandiva's scheduler names a container in the strict contract and, in the other one, what to ask
   * in its place: one container on another node for a move, none where it is not needed any more;
   * under an id of a resize, as many as its gang shall have. Hadoop's own monitor asks for nothing
   * and says only what it is about to take.
   */
  @Override
  public void onPreemptionMessageReceived(PreemptionMessage message) {
    StrictPreemptionContract strict = message.getStrictContract();
    PreemptionContract other = message.getContract();
    if (strict == null || other == null || other.getResourceRequest() == null) {
      return;
    }
    List<String> containers = new ArrayList<>();
    for (PreemptionContainer container : strict.getContainers()) {
      containers.add(container.getId().toString());
    }
    for (PreemptionResourceRequest ask : other.getResourceRequest()) {
      if (ask.getResourceRequest().getAllocationRequestId() >= Master.FIRST_RESIZE_ID) {
        master.resize(ask.getResourceRequest());
      } else if (ask.getResourceRequest().getNumContainers() == 0) {
        master.letGo(containers);
      } else if (containers.size() == 1) {
        master.move(containers.get(0), ask.getResourceRequest());
      }
    }
  }

  @Override
  public void onContainersReceivedFromPreviousAttempts(List<Container> containers) {
    master.foundAgain(containers);
  }

  @Override
  public void onShutdownRequest() {
    // The ResourceManager does not know this attempt any more: the next one takes over.
    master.ended().completeExceptionally(new IllegalStateException("told to shut down"));
  }

  @Override
  public void onError(Throwable error) {
    master.ended().completeExceptionally(error);
  }

  @Override
  public void onContainersUpdated(List<UpdatedContainer> containers) {
    // Nobody asks for an update.
  }

  @Override
  public void onNodesUpdated(List<NodeReport> nodes) {
    // What was lost with a node is told as a container's end.
  }

  @Override
  public float getProgress() {
    return 0;
  }
}
