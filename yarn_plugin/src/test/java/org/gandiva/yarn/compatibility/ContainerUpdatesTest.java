package org.gandiva.yarn.compatibility;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import org.gandiva.yarn.replay.Act;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Issue row "container updates". */
class ContainerUpdatesTest {
  private static Rig holding() {
    Rig unstarted = Rig.gandiva(4).with("yarn.scheduler.minimum-allocation-mb", "128");
    Rig rig = unstarted.start().nodes(1, 4);
    return rig.submit("j", "ann").ask("j", 2, 1);
  }

  private static String given(Rig rig) {
    String id = rig.commit("j", "n1").get("containers").get(0).asText();
    rig.act("beat", "j").takeEvents();
    return id;
  }

  @ParameterizedTest
  @CsvSource({"INCREASE_RESOURCE,512", "DECREASE_RESOURCE,128"})
  void memoryChangesAsInStock(String change, int memoryMib) {
    try (Rig rig = holding()) {
      String id = given(rig);
      rig.step(Act.update("j", id, change, memoryMib, 1));
      rig.settle().act("beat", "j").act("beat", "j");
      JsonNode updated = rig.events("updated", "j").get(0);
      assertThat(updated.get("memory_mib").asInt()).isEqualTo(memoryMib);
      assertThat(updated.get("gpus").asInt()).isEqualTo(1);
      assertThat(rig.node("n1").at("/used/memory_mib").asInt()).isEqualTo(256 + memoryMib);
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isEqualTo(1);
      assertThat(Act.ofKind(rig.takeEvents(), "container_completed")).isEmpty();
      rig.hello();
      JsonNode told = rig.takeEvents().get(0).at("/apps/0/containers");
      assertThat(told).hasSize(1);
      assertThat(told.get(0).get("memory_mib").asInt()).isEqualTo(memoryMib);
    }
  }

  @ParameterizedTest
  @CsvSource({"INCREASE_RESOURCE,9", "INCREASE_RESOURCE,4", "DECREASE_RESOURCE,0"})
  void theNumberOfGpusStays(String change, int gpus) {
    try (Rig rig = holding()) {
      String id = given(rig);
      rig.step(Act.update("j", id, change, 256, gpus));
      rig.settle().act("beat", "j");
      assertThat(rig.events("update_refused", "j").get(0).get("diagnostics").asText())
          .isEqualTo(
              "yarn.io/gpu of "
                  + id
                  + " cannot change from 1 to "
                  + gpus
                  + " under Gandiva: ask for a container of its own");
      assertThat(rig.events("updated", "j")).isEmpty();
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isEqualTo(1);
    }
  }

  @Test
  void aGpuContainerIsNotDemoted() {
    try (Rig rig = holding()) {
      String id = given(rig);
      rig.step(Act.update("j", id, "DEMOTE_EXECUTION_TYPE", 256, 1));
      assertThat(rig.events("update_refused", "j").get(0).get("diagnostics").asText())
          .isEqualTo(id + " holds yarn.io/gpu and cannot be promoted or demoted under Gandiva");
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isEqualTo(1);
    }
  }

  /** A refused change leaves what else the heartbeat brings alone. */
  @Test
  void theRestOfTheHeartbeatStands() {
    try (Rig rig = holding()) {
      String id = given(rig);
      rig.step(Act.update("j", id, "INCREASE_RESOURCE", 256, 2));
      assertThat(rig.events("ask_refused", "j")).isEmpty();
      assertThat(rig.commit("j", "n1").get("code").asText()).isEqualTo("OK");
    }
  }
}
