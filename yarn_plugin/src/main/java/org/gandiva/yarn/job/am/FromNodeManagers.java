package org.gandiva.yarn.job.am;

import java.nio.ByteBuffer;
import java.util.Map;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.client.api.async.NMClientAsync;

/** What NodeManagers say: only that a container could not be started counts. */
final class FromNodeManagers extends NMClientAsync.AbstractCallbackHandler {
  private final Master master;

  FromNodeManagers(Master master) {
    super();
    this.master = master;
  }

  @Override
  public void onStartContainerError(ContainerId container, Throwable reason) {
    master.failedToStart(container, reason);
  }

  @Override
  public void onContainerStarted(ContainerId container, Map<String, ByteBuffer> services) {
    // As it should be.
  }

  @Override
  public void onContainerStatusReceived(ContainerId container, ContainerStatus status) {
    // Nobody asks.
  }

  @Override
  public void onContainerStopped(ContainerId container) {
    // Nobody asks.
  }

  @Deprecated // Abstract in Hadoop all the same.
  @Override
  public void onContainerResourceIncreased(ContainerId container, Resource resource) {
    // Nobody asks.
  }

  @Override
  public void onContainerResourceUpdated(ContainerId container, Resource resource) {
    // Nobody asks.
  }

  @Override
  public void onGetContainerStatusError(ContainerId container, Throwable reason) {
    // Nobody asks.
  }

  @Deprecated // Abstract in Hadoop all the same.
  @Override
  public void onIncreaseContainerResourceError(ContainerId container, Throwable reason) {
    // Nobody asks.
  }

  @Override
  public void onUpdateContainerResourceError(ContainerId container, Throwable reason) {
    // Nobody asks.
  }

  @Override
  public void onStopContainerError(ContainerId container, Throwable reason) {
    // Nobody asks.
  }
}
