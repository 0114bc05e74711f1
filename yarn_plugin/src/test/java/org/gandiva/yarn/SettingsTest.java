package org.gandiva.yarn;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;

/** What the core is told of mode, adoption and limits: always of physical GPUs. */
class SettingsTest {
  private static final String ROOT = "yarn.scheduler.capacity.root.";

  private static JsonNode settings(Rig rig) {
    rig.hello();
    JsonNode resync = rig.takeEvents("resync").get(0);
    assertThat(resync.get("part").asInt()).isEqualTo(1);
    return resync.get("settings");
  }

  private static JsonNode limit(JsonNode settings, String queue, String partition) {
    for (JsonNode limit : settings.get("limits")) {
      if (limit.get("queue").asText().equals(queue)
          && limit.get("partition").asText().equals(partition)) {
        return limit;
      }
    }
    throw new AssertionError("no limit of " + queue + " in \"" + partition + "\": " + settings);
  }

  private static List<String> texts(JsonNode list) {
    List<String> found = new ArrayList<>();
    list.forEach(item -> found.add(item.asText()));
    return found;
  }

  private static Rig vectors(UnaryOperator<Rig> more) {
    Rig rig =
        Rig.gandiva(4)
            .with(ROOT + "queues", "a,b")
            .with(ROOT + "a.capacity", "[memory=65536,vcores=64,yarn.io/gpu=2]")
            .with(ROOT + "a.maximum-capacity", "[memory=131072,vcores=128,yarn.io/gpu=3]")
            .with(ROOT + "b.capacity", "[memory=65536,vcores=64,yarn.io/gpu=6]")
            .with(ROOT + "b.maximum-capacity", "[memory=131072,vcores=128,yarn.io/gpu=8]");
    return more.apply(rig);
  }

  @Test
  void percentagesAndWeightsAreRatiosOfAPartition() {
    Rig unstarted =
        AdoptionTest.twoQueues(Rig.gandiva(3))
            .with(ROOT + "a.capacity", "30")
            .with(ROOT + "a.maximum-capacity", "60")
            .with(ROOT + "a.queues", "x,y")
            .with(ROOT + "a.x.capacity", "50")
            .with(ROOT + "a.y.capacity", "50")
            .with(ROOT + "a.y.ordering-policy", "fair")
            .with(ROOT + "b.capacity", "70")
            .with(ROOT + "b.gandiva.slicing", "false");
    try (Rig rig = unstarted.start().nodes(2, 4)) {
      JsonNode settings = settings(rig);
      assertThat(settings.get("mode").asText()).isEqualTo("full");
      assertThat(settings.get("height_max").asInt()).isEqualTo(3);
      assertThat(texts(settings.get("adopted_queues")))
          .containsExactly("root.a.x", "root.a.y", "root.b");
      assertThat(texts(settings.get("adopted_partitions"))).containsExactly("");
      JsonNode root = limit(settings, "root", "");
      assertThat(root.get("parent").asText()).isEmpty();
      assertThat(root.get("guaranteed_ratio").asDouble()).isEqualTo(1.0);
      JsonNode x = limit(settings, "root.a.x", "");
      assertThat(x.get("parent").asText()).isEqualTo("root.a");
      assertThat(x.get("guaranteed_ratio").asDouble()).isEqualTo(0.15);
      assertThat(x.get("max_ratio").asDouble()).isEqualTo(0.6);
      assertThat(x.get("ordering").asText()).isEqualTo("fifo");
      assertThat(x.get("mechanisms_off")).isEmpty();
      assertThat(limit(settings, "root.a.y", "").get("ordering").asText()).isEqualTo("fair");
      assertThat(texts(limit(settings, "root.b", "").get("mechanisms_off")))
          .containsExactly("slicing");
    }
    Rig weights =
        AdoptionTest.twoQueues(Rig.gandiva(3))
            .with(ROOT + "a.capacity", "1w")
            .with(ROOT + "b.capacity", "3w");
    try (Rig rig = weights.start().nodes(2, 4)) {
      assertThat(limit(settings(rig), "root.b", "").get("guaranteed_ratio").asDouble())
          .isEqualTo(0.75);
    }
  }

  /**
   * An amount of GPUs means devices: told as they are, and scaled only where the scheduler counts.
   */
  @Test
  void amountsArePhysicalWhateverTheHeight() throws IOException {
    try (Rig rig = vectors(r -> r).start().nodes(2, 4)) {
      JsonNode a = limit(settings(rig), "root.a", "");
      assertThat(a.get("guaranteed_gpus").asDouble()).isEqualTo(2);
      assertThat(a.get("max_gpus").asDouble()).isEqualTo(3);
      assertThat(a.has("max_ratio")).isFalse();
      // Twelve slots of thirty-two: three devices, four high.
      rig.submitTo("a", "j", "ann").ask("j", 13, 1);
      for (int gang = 0; gang < 3; gang++) {
        assertThat(rig.commit("j", "n1", "n1", "n1", "n1").get("code").asText()).isEqualTo("OK");
      }
      assertThat(rig.commit("j", "n1").get("code").asText()).isEqualTo("QUEUE_LIMIT");
      rig.refresh(GandivaConfiguration.MODE, "observe");
      assertThat(limit(settings(rig), "root.a", "").get("max_gpus").asDouble()).isEqualTo(3);
      assertThat(rig.configuration().get(ROOT + "a.capacity").asText()).endsWith("gpu=2]");
    }
    try (Rig rig = vectors(r -> r.with(GandivaConfiguration.MODE, "place")).start().nodes(2, 4)) {
      assertThat(limit(settings(rig), "root.a", "").get("max_gpus").asDouble()).isEqualTo(3);
      rig.submitTo("a", "j", "ann").ask("j", 4, 1);
      assertThat(rig.commit("j", "n1", "n1", "n1", "n1").get("code").asText())
          .isEqualTo("QUEUE_LIMIT");
      assertThat(rig.commit("j", "n1", "n1", "n2").get("code").asText()).isEqualTo("OK");
    }
  }

  /** Hadoop 3.4's vectors that mix amounts, shares and weights. */
  @Test
  void mixedVectorsAreAmountsOrWhatTheyComeToNow() {
    Rig unstarted =
        Rig.gandiva(4)
            .with("yarn.scheduler.capacity.legacy-queue-mode.enabled", "false")
            .with(ROOT + "queues", "a,b")
            .with(ROOT + "a.capacity", "[memory=50%,vcores=50%,yarn.io/gpu=2]")
            .with(ROOT + "a.maximum-capacity", "[memory=100%,vcores=100%,yarn.io/gpu=4]")
            .with(ROOT + "b.capacity", "[memory=50%,vcores=50%,yarn.io/gpu=25%]")
            .with(ROOT + "b.maximum-capacity", "[memory=100%,vcores=100%,yarn.io/gpu=50%]");
    try (Rig rig = unstarted.start().nodes(2, 4)) {
      JsonNode settings = settings(rig);
      JsonNode a = limit(settings, "root.a", "");
      assertThat(a.get("guaranteed_gpus").asDouble()).isEqualTo(2);
      assertThat(a.get("max_gpus").asDouble()).isEqualTo(4);
      JsonNode b = limit(settings, "root.b", "");
      assertThat(b.get("max_ratio").asDouble()).isEqualTo(0.5);
      assertThat(b.get("guaranteed_ratio").asDouble()).isBetween(0.15, 0.25);
    }
  }

  @Test
  void aChangeIsToldOnceAndNoChangeIsNot() throws IOException {
    try (Rig rig = AdoptionTest.twoQueues(Rig.gandiva(2)).start().nodes(1, 4)) {
      rig.takeEvents();
      rig.refresh(GandivaConfiguration.MODE, "full");
      assertThat(rig.takeEvents("settings")).isEmpty();
      rig.refresh(GandivaConfiguration.QUEUES, "a");
      List<JsonNode> told = rig.takeEvents("settings");
      assertThat(told).hasSize(1);
      assertThat(texts(told.get(0).get("adopted_queues"))).containsExactly("root.a");
      assertThat(texts(limit(told.get(0), "root.b", "").get("mechanisms_off")))
          .isEqualTo(Adoption.MECHANISMS);
      rig.refresh(GandivaConfiguration.MODE, "observe");
      JsonNode observe = rig.takeEvents("settings").get(0);
      assertThat(observe.get("mode").asText()).isEqualTo("observe");
      assertThat(texts(observe.get("adopted_queues"))).containsExactly("root.a");
      assertThat(texts(limit(observe, "root.a", "").get("mechanisms_off")))
          .isEqualTo(Adoption.MECHANISMS);
    }
  }

  @Test
  void partitionsHaveLimitsOfTheirOwnAndAppearWithTheirNodes() {
    Rig unstarted =
        AdoptionTest.twoQueues(Rig.gandiva(2))
            .with("yarn.node-labels.enabled", "true")
            .with(ROOT + "accessible-node-labels.gpu.capacity", "100")
            .with(ROOT + "a.accessible-node-labels", "gpu")
            .with(ROOT + "a.accessible-node-labels.gpu.capacity", "100")
            .with(ROOT + "a.accessible-node-labels.gpu.maximum-capacity", "100")
            .with(ROOT + "b.accessible-node-labels", " ")
            .with(GandivaConfiguration.PARTITIONS, "gpu");
    try (Rig rig = unstarted.start().nodes(1, 4)) {
      rig.takeEvents();
      ObjectNode node = Json.object().put("do", "add_node").put("host", "g1").put("port", 1);
      rig.step(node.put("memory_mib", 65_536).put("vcores", 64).put("gpus", 4).put("label", "gpu"));
      List<JsonNode> told = rig.takeEvents();
      int at = 0;
      while (!told.get(at).get("kind").asText().equals("settings")) {
        assertThat(told.get(at).get("kind").asText()).isNotEqualTo("node_added");
        at++;
      }
      JsonNode settings = told.get(at);
      assertThat(texts(settings.get("adopted_partitions"))).containsExactly("gpu");
      assertThat(limit(settings, "root.a", "gpu").get("guaranteed_ratio").asDouble()).isEqualTo(1);
      assertThat(limit(settings, "root.b", "").get("guaranteed_ratio").asDouble()).isEqualTo(0.5);
      // Only the adopted partition's nodes are over-subscribed.
      assertThat(rig.node("g1").at("/scheduler_total/gpus").asInt()).isEqualTo(8);
      assertThat(rig.node("n1").at("/scheduler_total/gpus").asInt()).isEqualTo(4);
      // Asks in the default partition are stock's.
      rig.submitTo("a", "j", "ann").ask("j", 2, 1).settle();
      assertThat(rig.allocated("j")).isEqualTo(2);
      assertThat(rig.commit("j", "g1").get("code").asText()).isIn("ASK_GONE", "NOT_ADOPTED");
    }
  }
}
