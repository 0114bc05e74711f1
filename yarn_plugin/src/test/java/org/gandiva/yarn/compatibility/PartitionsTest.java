package org.gandiva.yarn.compatibility;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.yarn.api.records.NodeLabel;
import org.gandiva.yarn.replay.Act;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;

/** Issue row "partitions": for GPU asks they are separate clusters. */
class PartitionsTest {
  private static final String LEAF = "yarn.scheduler.capacity.root.default.";

  private static Rig labelled() {
    return Rig.gandiva(4)
        .with("yarn.node-labels.enabled", "true")
        .with("yarn.scheduler.capacity.root.accessible-node-labels", "*")
        .with("yarn.scheduler.capacity.root.accessible-node-labels.gold.capacity", "100")
        .with(LEAF + "accessible-node-labels", "gold")
        .with(LEAF + "accessible-node-labels.gold.capacity", "100");
  }

  private static String code(JsonNode result) {
    return result.get("code").asText();
  }

  @Test
  void twoExclusivePartitionsNeverMix() {
    try (Rig rig = labelled().start().nodes(1, 4)) {
      rig.step(Act.node("g1", 4, "gold"));
      rig.submit("j", "ann");
      rig.step(Act.where(Act.also(Act.ask("j", 1, 2, 1), 2, 2, 1), "label", "gold"));
      String attempt = rig.attempt("j");
      assertThat(code(rig.apply(Act.commit(attempt, 1, 1, "g1")))).isEqualTo("LABEL");
      assertThat(code(rig.apply(Act.commit(attempt, 2, 1, "n1")))).isEqualTo("LABEL");
      assertThat(code(rig.apply(Act.commit(attempt, 2, 1, "g1", "n1")))).isEqualTo("LABEL");
      assertThat(code(rig.apply(Act.commit(attempt, 1, 1, "n1", "n1")))).isEqualTo("OK");
      assertThat(code(rig.apply(Act.commit(attempt, 2, 1, "g1", "g1")))).isEqualTo("OK");
      assertThat(rig.node("g1").at("/used/gpus").asInt()).isEqualTo(2);
    }
  }

  /** Lending would mean to kill for the owner's sake; CPU asks go on as in stock. */
  @Test
  void idleGpusOfAShareablePartitionAreNotLent() throws Exception {
    try (Rig rig = labelled().start()) {
      rig.context()
          .getNodeLabelManager()
          .addToCluserNodeLabels(Collections.singletonList(NodeLabel.newInstance("gold", false)));
      rig.step(Act.node("n1", 4, "").put("memory_mib", 512));
      rig.step(Act.node("g1", 4, "gold"));
      rig.submit("j", "ann").step(Act.ask("j", 1, 1, 1));
      rig.step(Act.ask("j", 2, 3, 0));
      rig.settle();
      assertThat(rig.allocated("j")).isEqualTo(3);
      assertThat(rig.node("g1").at("/containers").asInt()).isEqualTo(2);
      assertThat(code(rig.apply(Act.commit(rig.attempt("j"), 1, 1, "g1")))).isEqualTo("LABEL");
      assertThat(rig.node("g1").at("/used/gpus").asInt()).isZero();
    }
  }

  @Test
  void theQueuesDefaultLabelIsTold() {
    try (Rig rig = labelled().with(LEAF + "default-node-label-expression", "gold").start()) {
      rig.step(Act.node("n1", 4, ""));
      rig.step(Act.node("g1", 4, "gold"));
      rig.submit("j", "ann").takeEvents();
      rig.ask("j", 1, 1);
      List<JsonNode> told = Act.ofKind(rig.takeEvents(), "asks");
      assertThat(told.get(0).at("/asks/0/label").asText()).isEqualTo("gold");
      assertThat(code(rig.commit("j", "n1"))).isEqualTo("LABEL");
      assertThat(code(rig.commit("j", "g1"))).isEqualTo("OK");
    }
  }
}
