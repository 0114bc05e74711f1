package org.gandiva.yarn;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Collections;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerState;
import org.apache.hadoop.yarn.api.records.ExecutionType;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.server.api.protocolrecords.NMContainerStatus;
import org.apache.hadoop.yarn.server.resourcemanager.RMContextImpl;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeAddedSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeRemovedSchedulerEvent;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;

/** After a restart nodes come back one by one, each with containers that no snapshot knew. */
class RecoveredContainersTest {
  private static NMContainerStatus running(ContainerId id, int gpus) {
    return NMContainerStatus.newInstance(
        id,
        0,
        ContainerState.RUNNING,
        ResourceVector.of(256, 1, gpus),
        "",
        0,
        Priority.newInstance(3),
        0L,
        "",
        ExecutionType.GUARANTEED,
        7L);
  }

  @Test
  void aNodeTellsOfTheGpuContainersThatItBrought() {
    try (Rig rig = Rig.gandiva(4).start().nodes(2, 4)) {
      rig.submit("j", "ann");
      ((RMContextImpl) rig.context()).setWorkPreservingRecoveryEnabled(true);
      ApplicationAttemptId attempt = ApplicationAttemptId.fromString(rig.attempt("j"));
      RMNode empty =
          rig.context().getRMNodes().values().stream()
              .filter(node -> rig.scheduler().getNode(node.getNodeID()).getNumContainers() == 0)
              .findFirst()
              .get();
      rig.scheduler().handle(new NodeRemovedSchedulerEvent(empty));
      rig.takeEvents();
      ContainerId id = ContainerId.newContainerId(attempt, 9L | 17L << 40);
      rig.scheduler()
          .handle(new NodeAddedSchedulerEvent(empty, Collections.singletonList(running(id, 1))));
      List<JsonNode> told =
          rig.takeEvents().stream()
              .filter(event -> event.get("kind").asText().startsWith("container_"))
              .collect(Collectors.toList());
      assertThat(told).hasSize(1);
      assertThat(told.get(0).get("kind").asText()).isEqualTo("container_recovered");
      assertThat(told.get(0).get("container").asText()).isEqualTo(id.toString()).contains("_e17_");
      assertThat(told.get(0).get("node").asText()).isEqualTo(empty.getNodeID().toString());
      assertThat(told.get(0).get("priority").asInt()).isEqualTo(3);
      assertThat(told.get(0).get("gpus").asInt()).isEqualTo(1);
      assertThat(rig.scheduler().ownErrors()).isZero();
    }
  }

  @Test
  void aNodeThatIsNewBringsNothing() {
    try (Rig rig = Rig.gandiva(4).start().nodes(1, 4)) {
      assertThat(rig.scheduler().getNode(NodeId.newInstance("n1", 1)).getNumContainers()).isZero();
      assertThat(rig.takeEvents())
          .noneMatch(event -> event.get("kind").asText().equals("container_recovered"));
    }
  }
}
