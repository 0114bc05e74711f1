package org.gandiva.yarn;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;

class VetoTest {
  @Test
  void heartbeatsPlaceNoGpuAskButEveryOther() {
    try (Rig rig = Rig.gandiva(1).start().nodes(2, 4)) {
      rig.submit("gpu", "ann").ask("gpu", 4, 1).submit("cpu", "ann").ask("cpu", 3, 0).settle();
      assertThat(rig.allocated("gpu")).isZero();
      assertThat(rig.allocated("cpu")).isEqualTo(3);
      assertThat(rig.scheduler().foreignGpusRefused()).isZero();
      assertThat(rig.query("queues", "").get("queues").get(0).get("pending_containers").asInt())
          .isEqualTo(4);
    }
  }

  @Test
  void aCommitServesTheAskInTheTable() {
    try (Rig rig = Rig.gandiva(1).start().nodes(2, 4)) {
      rig.submit("j", "ann").ask("j", 3, 1);
      assertThat(rig.commit("j", "n2", "n2", "n1").get("code").asText()).isEqualTo("OK");
      rig.act("beat", "j");
      assertThat(rig.allocated("j")).isEqualTo(3);
      assertThat(rig.node("n2").at("/used/gpus").asInt()).isEqualTo(2);
      assertThat(rig.commit("j", "n1").get("code").asText()).isEqualTo("ASK_GONE");
    }
  }

  /** Case B07: the capability of a container is the ask, GPU entry included, wherever it shows. */
  @Test
  void theContainerIsWhatWasAsked() {
    try (Rig rig = Rig.gandiva(4).start().nodes(1, 4)) {
      rig.submit("j", "ann").ask("j", 1, 1);
      String id = rig.commit("j", "n1").get("containers").get(0).asText();
      rig.act("beat", "j");
      JsonNode given = rig.events("allocated", "j").get(0).get("containers").get(0);
      JsonNode shown = rig.query("container", id);
      RMContainer held = rig.scheduler().getRMContainer(ContainerId.fromString(id));
      for (JsonNode seen : Arrays.asList(given, shown)) {
        assertThat(seen.get("memory_mib").asInt()).isEqualTo(256);
        assertThat(seen.get("vcores").asInt()).isEqualTo(1);
        assertThat(seen.get("gpus").asInt()).isEqualTo(1);
      }
      assertThat(held.getContainer().getResource()).isEqualTo(ResourceVector.of(256, 1, 1));
    }
  }

  @Test
  void aReleasedContainerIsGoneOnce() {
    try (Rig rig = Rig.gandiva(1).start().nodes(1, 4)) {
      rig.submit("j", "ann").ask("j", 2, 1).takeEvents();
      JsonNode containers = rig.commit("j", "n1", "n1").get("containers");
      rig.act("beat", "j");
      ObjectNode effect =
          Json.object().put("id", "r").put("op", "release_gang").put("attempt", rig.attempt("j"));
      effect.set("containers", containers);
      assertThat(rig.apply(effect).get("gone")).isEmpty();
      assertThat(rig.apply(effect).get("gone")).hasSize(2);
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isZero();
      assertThat(
              rig.takeEvents().stream()
                  .filter(e -> e.get("kind").asText().equals("container_completed")))
          .hasSize(2);
    }
  }
}
