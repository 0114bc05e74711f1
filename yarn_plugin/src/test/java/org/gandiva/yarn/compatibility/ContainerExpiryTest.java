package org.gandiva.yarn.compatibility;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.ContainerExpiredSchedulerEvent;
import org.gandiva.yarn.replay.Act;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;

/** Issue row "allocated and never launched": Hadoop's expirer ends such a container. */
class ContainerExpiryTest {
  private static ContainerId committed(Rig rig) {
    rig.submit("j", "ann").ask("j", 1, 1);
    ContainerId id = ContainerId.fromString(rig.commit("j", "n1").at("/containers/0").asText());
    rig.takeEvents();
    return id;
  }

  @Test
  void theAskOfAnUnfetchedContainerComesBack() {
    try (Rig rig = Rig.gandiva(4).start().nodes(1, 4)) {
      ContainerId id = committed(rig);
      rig.anyScheduler().handle(new ContainerExpiredSchedulerEvent(id));
      List<JsonNode> events = rig.takeEvents();
      assertThat(Act.ofKind(events, "container_completed")).hasSize(1);
      assertThat(Act.ofKind(events, "asks").get(0).at("/asks/0/count").asInt()).isEqualTo(1);
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isZero();
      assertThat(rig.commit("j", "n1").get("code").asText()).isEqualTo("OK");
    }
  }

  @Test
  void aFetchedContainerEndsForItsMaster() {
    try (Rig rig = Rig.gandiva(4).start().nodes(1, 4)) {
      ContainerId id = committed(rig);
      rig.act("beat", "j");
      rig.anyScheduler().handle(new ContainerExpiredSchedulerEvent(id));
      rig.settle();
      List<JsonNode> events = rig.takeEvents();
      assertThat(Act.ofKind(events, "container_completed")).hasSize(1);
      assertThat(Act.ofKind(events, "asks")).isEmpty();
      assertThat(rig.events("completed", "j")).hasSize(1);
      assertThat(rig.commit("j", "n1").get("code").asText()).isEqualTo("ASK_GONE");
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isZero();
    }
  }
}
