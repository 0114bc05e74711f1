package org.gandiva.yarn;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import java.util.Collections;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ContainerUpdates;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;

/** What a commit by itself does not check (FACTS §2), and we do. */
class PlacementChecksTest {
  @Test
  void anAskWithoutLabelGoesToNoExclusivePartition() {
    try (Rig rig =
        Rig.gandiva(1)
            .with("yarn.node-labels.enabled", "true")
            .with("yarn.scheduler.capacity.root.accessible-node-labels", "*")
            .with("yarn.scheduler.capacity.root.accessible-node-labels.gold.capacity", "100")
            .with("yarn.scheduler.capacity.root.default.accessible-node-labels", "gold")
            .with(
                "yarn.scheduler.capacity.root.default.accessible-node-labels.gold.capacity", "100")
            .start()
            .nodes(1, 4)) {
      ObjectNode labelled = Json.object().put("do", "add_node").put("host", "g1").put("port", 1);
      labelled.put("memory_mib", 65_536).put("vcores", 64).put("gpus", 4).put("label", "gold");
      rig.step(labelled);
      assertThat(rig.node("g1").get("partition").asText()).isEqualTo("gold");
      rig.submit("j", "ann").ask("j", 1, 1);
      assertThat(rig.commit("j", "g1").get("code").asText()).isEqualTo("LABEL");
      assertThat(rig.commit("j", "n1").get("code").asText()).isEqualTo("OK");
    }
  }

  @Test
  void aBlacklistedNodeOrRackIsRefused() {
    try (Rig rig = Rig.gandiva(1).start().nodes(4, 4)) {
      rig.submit("j", "ann").ask("j", 1, 1);
      blacklist(rig, "n1", "/r2");
      assertThat(rig.commit("j", "n1").get("code").asText()).isEqualTo("BLACKLISTED");
      assertThat(rig.commit("j", "n4").get("code").asText()).isEqualTo("BLACKLISTED");
      assertThat(rig.commit("j", "n2").get("code").asText()).isEqualTo("OK");
    }
  }

  private static void blacklist(Rig rig, String... places) {
    rig.scheduler()
        .allocate(
            ApplicationAttemptId.fromString(rig.attempt("j")),
            Collections.emptyList(),
            null,
            Collections.emptyList(),
            Arrays.asList(places),
            null,
            new ContainerUpdates());
  }

  @Test
  void afterAJobEndedItsAsksAreGone() {
    try (Rig rig = Rig.gandiva(1).start().nodes(1, 4)) {
      rig.submit("j", "ann").ask("j", 2, 1).act("kill", "j");
      assertThat(rig.commit("j", "n1").get("code").asText()).isEqualTo("ASK_GONE");
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isZero();
    }
  }

  /** A master that asks for a GPU itself waits for the core like any other container. */
  @Test
  void aMasterWithAGpuIsPlacedByTheCore() {
    try (Rig rig = Rig.gandiva(1).start().nodes(2, 4)) {
      rig.takeEvents();
      ObjectNode submit = Json.object().put("do", "submit").put("key", "m").put("user", "ann");
      rig.step(submit.put("am_memory_mib", 256).put("am_vcores", 1).put("am_gpus", 1));
      assertThat(rig.events("am_started", "m")).isEmpty();
      JsonNode asks =
          rig.takeEvents().stream()
              .filter(event -> event.get("kind").asText().equals("asks"))
              .findFirst()
              .get();
      ObjectNode commit = Json.object().put("id", "m").put("op", "commit_gang");
      commit.put("attempt", asks.get("attempt").asText());
      ObjectNode wish = commit.putArray("containers").addObject().put("node", "n2:1");
      wish.setAll((ObjectNode) asks.get("asks").get(0));
      assertThat(rig.apply(commit).get("code").asText()).isEqualTo("OK");
      rig.settle();
      assertThat(rig.events("am_started", "m").get(0).get("node").asText()).isEqualTo("n2:1");
    }
  }
}
