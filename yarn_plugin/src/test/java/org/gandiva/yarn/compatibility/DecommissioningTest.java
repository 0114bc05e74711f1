package org.gandiva.yarn.compatibility;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.NodeState;
import org.apache.hadoop.yarn.event.Event;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNodeDecommissioningEvent;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNodeEvent;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNodeEventType;
import org.gandiva.yarn.ResourceVector;
import org.gandiva.yarn.replay.Act;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;

/** Must show: totals right, no update storm (FACTS §2: 12 GPUs, an update with each heartbeat). */
class DecommissioningTest {
  private static final NodeId N1 = NodeId.newInstance("n1", 1);
  private static final int HEARTBEATS = 20;

  /** Two nodes of four GPUs at height 4; three one-GPU containers run on the first. */
  private static Rig running() {
    Rig rig = Rig.gandiva(4).start().nodes(2, 4);
    rig.submit("j", "ann").ask("j", 4, 1);
    assertThat(rig.commit("j", "n1", "n1", "n1").get("code").asText()).isEqualTo("OK");
    rig.act("beat", "j").takeEvents();
    return rig;
  }

  private static void send(Rig rig, Event<?> event) {
    rig.context().getDispatcher().getEventHandler().handle(event);
    for (int i = 0; i < HEARTBEATS; i++) {
      rig.settle();
    }
  }

  private static long clusterGpus(Rig rig) {
    return ResourceVector.gpus(rig.anyScheduler().getClusterResource());
  }

  private static NodeState state(Rig rig) {
    return rig.context().getRMNodes().get(N1).getState();
  }

  private static List<JsonNode> updates(Rig rig) {
    return rig.takeEvents().stream()
        .filter(event -> event.get("kind").asText().startsWith("node_"))
        .collect(Collectors.toList());
  }

  @Test
  void itShrinksToWhatItRunsAndIsTold() {
    try (Rig rig = running()) {
      assertThat(clusterGpus(rig)).isEqualTo(32);
      send(rig, new RMNodeDecommissioningEvent(N1, 3600));
      assertThat(state(rig)).isEqualTo(NodeState.DECOMMISSIONING);
      assertThat(rig.node("n1").at("/scheduler_total/gpus").asInt()).isEqualTo(3);
      assertThat(clusterGpus(rig)).isEqualTo(19);
      assertThat(rig.commit("j", "n1").get("code").asText()).isEqualTo("NODE_STATE");
      List<JsonNode> told = updates(rig);
      assertThat(told).hasSizeLessThanOrEqualTo(2);
      JsonNode last = told.get(told.size() - 1);
      assertThat(last.get("state").asText()).isEqualTo("DECOMMISSIONING");
      assertThat(last.get("schedulable_gpus").asInt()).isEqualTo(3);
      assertThat(rig.events("completed", "j")).isEmpty();
    }
  }

  @Test
  void onceItIsEmptyItLeaves() throws Exception {
    try (Rig rig = running()) {
      send(rig, new RMNodeDecommissioningEvent(N1, 3600));
      rig.takeEvents();
      rig.act("finish", "j");
      assertThat(Act.becomes(() -> rig.settle().anyScheduler().getNode(N1) == null)).isTrue();
      assertThat(clusterGpus(rig)).isEqualTo(16);
      assertThat(updates(rig)).hasSizeBetween(1, 4).last().asString().contains("node_removed");
    }
  }

  /** Its time is over while containers run there: they end, and nothing of it stays in a book. */
  @Test
  void afterTheTimeoutItsContainersAreLost() {
    try (Rig rig = running()) {
      send(rig, new RMNodeDecommissioningEvent(N1, 3600));
      rig.takeEvents();
      send(rig, new RMNodeEvent(N1, RMNodeEventType.DECOMMISSION));
      assertThat(rig.anyScheduler().getNode(N1)).isNull();
      assertThat(clusterGpus(rig)).isEqualTo(16);
      assertThat(Act.ofKind(rig.takeEvents(), "container_completed")).hasSize(3);
    }
  }

  @Test
  void recommissionedItIsWholeAgain() {
    try (Rig rig = running()) {
      send(rig, new RMNodeDecommissioningEvent(N1, 3600));
      rig.takeEvents();
      send(rig, new RMNodeEvent(N1, RMNodeEventType.RECOMMISSION));
      assertThat(state(rig)).isEqualTo(NodeState.RUNNING);
      assertThat(rig.node("n1").at("/rm_total/gpus").asInt()).isEqualTo(4);
      assertThat(rig.node("n1").at("/scheduler_total/gpus").asInt()).isEqualTo(16);
      assertThat(clusterGpus(rig)).isEqualTo(32);
      List<JsonNode> told = updates(rig);
      assertThat(told).hasSizeBetween(1, 2);
      assertThat(told.get(told.size() - 1).get("state").asText()).isEqualTo("RUNNING");
      assertThat(rig.commit("j", "n1").get("code").asText()).isEqualTo("OK");
    }
  }
}
