package org.gandiva.yarn;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.stream.Collectors;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.NodeState;
import org.apache.hadoop.yarn.api.records.ResourceOption;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNodeDecommissioningEvent;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNodeEvent;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNodeEventType;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNodeResourceUpdateEvent;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;

class OverSubscriptionTest {
  private static final NodeId N1 = NodeId.newInstance("n1", 1);

  @Test
  void eightContainersShareFourDevicesAndANinthDoesNot() {
    try (Rig rig = Rig.gandiva(2).start().nodes(1, 4)) {
      rig.submit("j", "ann").ask("j", 9, 1);
      String[] eight = {"n1", "n1", "n1", "n1", "n1", "n1", "n1", "n1"};
      assertThat(rig.commit("j", eight).get("code").asText()).isEqualTo("OK");
      JsonNode ninth = rig.commit("j", "n1");
      assertThat(ninth.get("code").asText()).isEqualTo("NO_ROOM");
      JsonNode node = rig.node("n1");
      assertThat(node.at("/rm_total/gpus").asInt()).isEqualTo(4);
      assertThat(node.at("/scheduler_total/gpus").asInt()).isEqualTo(8);
      assertThat(node.at("/scheduler_total/memory_mib").asInt()).isEqualTo(65_536);
      assertThat(node.at("/used/gpus").asInt()).isEqualTo(8);
    }
  }

  @Test
  void theGreatestContainerIsPhysical() {
    try (Rig rig = Rig.gandiva(4).start().nodes(2, 4)) {
      assertThat(ResourceVector.gpus(rig.scheduler().getMaximumResourceCapability())).isEqualTo(4);
      assertThat(ResourceVector.gpus(rig.scheduler().getMaximumResourceCapability("default")))
          .isEqualTo(4);
      rig.submit("j", "ann");
      String reply =
          rig.rawStep(
              "{\"now_s\":99,\"actions\":[{\"do\":\"ask\",\"key\":\"j\",\"asks\":[{\"priority\":1,"
                  + "\"count\":1,\"memory_mib\":256,\"vcores\":1,\"gpus\":12}]}]}");
      assertThat(reply).contains("ask_refused").contains("yarn.io/gpu: 4>");
    }
  }

  /**
   * FAULTS A1: masters ask again after a restart, perhaps before the first node with GPUs is back.
   * Hadoop promises what is configured for a while, and so do we: a refused ask ends its master.
   */
  @Test
  void rightAfterAStartNodesThatAreNotBackYetCount() {
    String wait = YarnConfiguration.RM_WORK_PRESERVING_RECOVERY_SCHEDULING_WAIT_MS;
    String longerThanSince1970Ms = "100000000000000";
    try (Rig stock = Rig.stock().with(wait, longerThanSince1970Ms).start().nodes(1, 0);
        Rig rig = Rig.gandiva(4).with(wait, longerThanSince1970Ms).start().nodes(1, 0)) {
      assertThat(rig.scheduler().getMaximumResourceCapability("default"))
          .isEqualTo(stock.anyScheduler().getMaximumResourceCapability("default"));
      rig.submit("j", "ann").ask("j", 1, 4);
      assertThat(rig.events("ask_refused", "j")).isEmpty();
    }
  }

  @Test
  void laterUpdatesAreInflatedToo() {
    try (Rig rig = Rig.gandiva(4).start().nodes(1, 4)) {
      rig.context()
          .getDispatcher()
          .getEventHandler()
          .handle(
              new RMNodeResourceUpdateEvent(
                  N1, ResourceOption.newInstance(ResourceVector.of(65_536, 64, 2), -1)));
      JsonNode node = rig.settle().node("n1");
      assertThat(node.at("/rm_total/gpus").asInt()).isEqualTo(2);
      assertThat(node.at("/scheduler_total/gpus").asInt()).isEqualTo(8);
    }
  }

  @Test
  void aDecommissioningNodeIsNotInflated() {
    try (Rig rig = Rig.gandiva(4).start().nodes(2, 4)) {
      rig.submit("j", "ann").ask("j", 3, 1);
      rig.commit("j", "n1", "n1", "n1");
      rig.act("beat", "j");
      rig.context()
          .getDispatcher()
          .getEventHandler()
          .handle(new RMNodeDecommissioningEvent(N1, 3600));
      rig.takeEvents();
      for (int i = 0; i < 3; i++) {
        rig.submit("other" + i, "ann"); // Its master needs heartbeats of the nodes.
      }
      assertThat(rig.context().getRMNodes().get(N1).getState())
          .isEqualTo(NodeState.DECOMMISSIONING);
      assertThat(rig.node("n1").at("/scheduler_total/gpus").asInt()).isEqualTo(3);
      assertThat(rig.commit("j", "n1").get("code").asText()).isIn("NODE_STATE", "ASK_GONE");
      assertThat(
              rig.takeEvents().stream()
                  .filter(event -> event.get("kind").asText().equals("node_updated"))
                  .collect(Collectors.toList()))
          .hasSizeLessThanOrEqualTo(2);
    }
  }

  /** FACTS §2: an ask committed on a node that dies before its master fetches it must come back. */
  @Test
  void anAskIsRestoredWhenItsNodeDiesUnseen() {
    try (Rig rig = Rig.gandiva(1).start().nodes(2, 4)) {
      rig.submit("j", "ann").ask("j", 2, 1);
      assertThat(rig.commit("j", "n2", "n2").get("code").asText()).isEqualTo("OK");
      rig.takeEvents();
      rig.context()
          .getDispatcher()
          .getEventHandler()
          .handle(new RMNodeEvent(NodeId.newInstance("n2", 1), RMNodeEventType.EXPIRE));
      rig.act("beat", "j");
      assertThat(rig.allocated("j")).isZero();
      JsonNode asks =
          rig.takeEvents().stream()
              .filter(event -> event.get("kind").asText().equals("asks"))
              .reduce((first, second) -> second)
              .get();
      assertThat(asks.get("asks").get(0).get("count").asInt()).isEqualTo(2);
      assertThat(rig.commit("j", "n1", "n1").get("code").asText()).isEqualTo("OK");
    }
  }
}
