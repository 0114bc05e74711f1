package org.gandiva.yarn.replay;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerState;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.exceptions.YarnException;
import org.apache.hadoop.yarn.server.api.ResourceTracker;
import org.apache.hadoop.yarn.server.api.protocolrecords.NodeHeartbeatRequest;
import org.apache.hadoop.yarn.server.api.protocolrecords.NodeHeartbeatResponse;
import org.apache.hadoop.yarn.server.api.protocolrecords.RegisterNodeManagerRequest;
import org.apache.hadoop.yarn.server.api.protocolrecords.RegisterNodeManagerResponse;
import org.apache.hadoop.yarn.server.api.records.NodeAction;
import org.apache.hadoop.yarn.server.api.records.NodeHealthStatus;
import org.apache.hadoop.yarn.server.api.records.NodeStatus;
import org.apache.hadoop.yarn.util.YarnVersionInfo;
import org.gandiva.yarn.gateway.ProtocolException;

/** What a NodeManager says to the ResourceManager, without a process behind it. */
final class SimulatedNode {
  private static final int HTTP_PORT = 8042;
  private static final NodeHealthStatus HEALTHY = NodeHealthStatus.newInstance(true, "", 0L);

  private final NodeId id;
  private final Resource capability;
  private final ResourceTracker tracker;
  private final TreeSet<ContainerId> running = new TreeSet<>();
  private final TreeMap<ContainerId, Integer> completed = new TreeMap<>();
  private int responseId;

  SimulatedNode(NodeId id, Resource capability, ResourceTracker tracker) {
    this.id = id;
    this.capability = capability;
    this.tracker = tracker;
  }

  NodeId id() {
    return id;
  }

  void register() throws IOException, YarnException, ProtocolException {
    RegisterNodeManagerRequest request =
        RegisterNodeManagerRequest.newInstance(
            id,
            HTTP_PORT,
            capability,
            YarnVersionInfo.getVersion(),
            Collections.emptyList(),
            Collections.emptyList(),
            Collections.emptySet(),
            capability);
    request.setNodeStatus(status());
    RegisterNodeManagerResponse response = tracker.registerNodeManager(request);
    if (response.getNodeAction() != NodeAction.NORMAL) {
      throw new ProtocolException("NODE_REFUSED", id + ": " + response.getDiagnosticsMessage());
    }
    responseId = 0;
  }

  /** The container's process began; the next heartbeat says so. */
  void start(ContainerId container) {
    running.add(container);
  }

  /** The container's process ended; the next heartbeat says so. */
  void complete(ContainerId container, int exitStatus) {
    running.remove(container);
    completed.put(container, exitStatus);
  }

  /** Sends one heartbeat, and stops what the answer asks to stop. */
  void heartbeat() throws IOException, YarnException {
    NodeHeartbeatResponse response =
        tracker.nodeHeartbeat(NodeHeartbeatRequest.newInstance(status(), null, null, null));
    completed.clear();
    if (response.getNodeAction() != NodeAction.NORMAL) {
      // Shut down or asked to come back: a simulated node of a replay just goes quiet.
      running.clear();
      return;
    }
    responseId = response.getResponseId();
    for (ContainerId container : response.getContainersToCleanup()) {
      if (running.remove(container)) {
        completed.put(container, KILLED_BY_RM);
      }
    }
  }

  private static final int KILLED_BY_RM = 137;

  private NodeStatus status() {
    List<ContainerStatus> statuses = new ArrayList<>();
    for (ContainerId container : running) {
      statuses.add(ContainerStatus.newInstance(container, ContainerState.RUNNING, "", 0));
    }
    completed.forEach(
        (container, exit) ->
            statuses.add(
                ContainerStatus.newInstance(container, ContainerState.COMPLETE, "", exit)));
    return NodeStatus.newInstance(
        id, responseId, statuses, Collections.emptyList(), HEALTHY, null, null, null);
  }
}
