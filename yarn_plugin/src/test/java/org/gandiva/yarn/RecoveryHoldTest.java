package org.gandiva.yarn;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;

/**
 * DESIGN §4: nothing is committed on a node with recovered GPU containers before its agent said.
 */
class RecoveryHoldTest {
  private static final NodeId N1 = NodeId.fromString("n1:1");
  private static final long MS = 1_000_000;

  private long nowNs = 5;

  private static JsonNode agentReported(Rig rig, String node) {
    return rig.apply(Json.object().put("id", "a").put("op", "agent_reported").put("node", node));
  }

  @Test
  void aNodeThatIsHeldTakesNoGangUntilItsAgentReports() {
    try (Rig rig = Rig.gandiva(1).start().nodes(2, 4)) {
      rig.submit("j", "ann").ask("j", 4, 1);
      rig.scheduler().recoveryHold().begin(N1);
      JsonNode refused = rig.commit("j", "n2", "n1");
      assertThat(refused.get("code").asText()).isEqualTo("NOT_READY");
      assertThat(refused.get("index").asInt()).isEqualTo(1);
      assertThat(refused.get("detail").asText()).contains("n1:1").contains("60 s at most");
      assertThat(rig.node("n2").at("/used/gpus").asInt()).as("whole or nothing").isZero();
      assertThat(rig.commit("j", "n2").get("code").asText()).isEqualTo("OK");
      assertThat(agentReported(rig, "n1:1").get("code").asText()).isEqualTo("OK");
      assertThat(rig.commit("j", "n1").get("code").asText()).isEqualTo("OK");
      assertThat(agentReported(rig, "n9:1").get("code").asText()).isEqualTo("NODE_STATE");
    }
  }

  @Test
  void theHoldEndsByItselfOrWithTheNode() throws CommitRefusal {
    RecoveryHold hold = new RecoveryHold(60_000, () -> nowNs);
    hold.begin(N1);
    nowNs += 59_999 * MS;
    assertThat(refusalOf(hold)).contains("1 s at most");
    nowNs += MS;
    hold.check(N1);
    hold.begin(N1);
    assertThat(refusalOf(hold)).contains("60 s at most");
    hold.onRemoved(N1);
    hold.check(N1);
  }

  private static String refusalOf(RecoveryHold hold) {
    try {
      hold.check(N1);
      return "";
    } catch (CommitRefusal refusal) {
      return refusal.getMessage();
    }
  }
}
