package org.gandiva.yarn;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.PreemptionMessage;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.util.Records;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;

/** SPEC G-69: what the core tells a master, as a PreemptionMessage. */
class MasterMessagesTest {
  private static Rig running() {
    Rig rig = Rig.gandiva(1).start().nodes(2, 4);
    rig.submit("j", "ann").ask("j", 1, 1);
    rig.commit("j", "n1");
    return rig;
  }

  private static RMContainer worker(Rig rig) {
    List<RMContainer> found = new ArrayList<>();
    for (RMContainer each :
        rig.scheduler()
            .getApplicationAttempt(ApplicationAttemptId.fromString(rig.attempt("j")))
            .getLiveContainers()) {
      if (!each.isAMContainer()) {
        found.add(each);
      }
    }
    assertThat(found).hasSize(1);
    return found.get(0);
  }

  private static ObjectNode order(String op, RMContainer container) {
    return Json.object()
        .put("id", "m")
        .put("op", op)
        .put("container", container.getContainerId().toString());
  }

  private static String node(Rig rig, String host) {
    return rig.scheduler().getAllNodes().stream()
        .map(each -> each.getNodeID().toString())
        .filter(each -> each.startsWith(host + ":"))
        .findFirst()
        .get();
  }

  private static PreemptionMessage delivered(Rig rig) {
    AllocateResponse response = Records.newRecord(AllocateResponse.class);
    rig.scheduler().messages().deliver(ApplicationAttemptId.fromString(rig.attempt("j")), response);
    return response.getPreemptionMessage();
  }

  private static String code(JsonNode result) {
    return result.get("code").asText();
  }

  @Test
  void aMoveNamesTheContainerAndTheOneRequestToMake() {
    try (Rig rig = running()) {
      RMContainer container = worker(rig);
      ObjectNode order =
          order("ask_move", container)
              .put("node", node(rig, "n2"))
              .put("allocation_request_id", 1_000_007);
      assertThat(code(rig.apply(order))).isEqualTo("OK");
      PreemptionMessage message = delivered(rig);
      assertThat(message.getStrictContract().getContainers())
          .extracting(each -> each.getId())
          .containsExactly(container.getContainerId());
      ResourceRequest ask = message.getContract().getResourceRequest().get(0).getResourceRequest();
      assertThat(ask.getResourceName()).isEqualTo("n2");
      assertThat(ask.getRelaxLocality()).isFalse();
      assertThat(ask.getAllocationRequestId()).isEqualTo(1_000_007);
      assertThat(ask.getNumContainers()).isEqualTo(1);
      assertThat(ask.getCapability()).isEqualTo(container.getAllocatedResource());
      assertThat(delivered(rig)).as("told once").isNull();
      assertThat(rig.scheduler().getRMContainer(container.getContainerId()))
          .as("nobody is killed by it")
          .isNotNull();
    }
  }

  @Test
  void aResizeNamesHowManyThereShallBe() {
    try (Rig rig = running()) {
      ObjectNode order =
          order("ask_resize", worker(rig))
              .put("node", node(rig, "n1"))
              .put("workers", 4)
              .put("allocation_request_id", 1_000_000_000_000_001L);
      assertThat(code(rig.apply(order))).isEqualTo("OK");
      ResourceRequest ask = ask(delivered(rig));
      assertThat(ask.getNumContainers()).isEqualTo(4);
      assertThat(ask.getAllocationRequestId()).isEqualTo(1_000_000_000_000_001L);
      assertThat(ask.getResourceName()).isEqualTo("n1");
      assertThat(code(rig.apply(order.put("workers", 0)))).isEqualTo("BAD_REQUEST");
      order.put("workers", 2).put("allocation_request_id", 1_000_001);
      assertThat(code(rig.apply(order))).isEqualTo("BAD_REQUEST");
    }
  }

  @Test
  void messagesOfOneMasterAreToldInTheirOrderAndEndWithIt() {
    try (Rig rig = running()) {
      RMContainer container = worker(rig);
      ObjectNode move =
          order("ask_move", container)
              .put("node", node(rig, "n2"))
              .put("allocation_request_id", 1_000_001);
      rig.apply(move);
      assertThat(code(rig.apply(order("let_go", container)))).isEqualTo("OK");
      assertThat(ask(delivered(rig)).getNumContainers()).isEqualTo(1);
      assertThat(ask(delivered(rig)).getNumContainers()).isEqualTo(0);
      rig.apply(move);
      rig.act("finish", "j").settle();
      assertThat(delivered(rig)).isNull();
      assertThat(code(rig.apply(move))).isEqualTo("ASK_GONE");
    }
  }

  private static ResourceRequest ask(PreemptionMessage message) {
    return message.getContract().getResourceRequest().get(0).getResourceRequest();
  }

  @Test
  void whatCannotBeMovedIsRefusedByItsCode() {
    try (Rig rig = running()) {
      RMContainer container = worker(rig);
      ObjectNode nowhere =
          order("ask_move", container).put("node", "n9:1").put("allocation_request_id", 1_000_001);
      assertThat(code(rig.apply(nowhere))).isEqualTo("NODE_STATE");
      ObjectNode low =
          order("ask_move", container).put("node", node(rig, "n2")).put("allocation_request_id", 7);
      assertThat(code(rig.apply(low))).isEqualTo("BAD_REQUEST");
      ObjectNode nonsense = Json.object().put("id", "m").put("op", "let_go").put("container", "x");
      assertThat(code(rig.apply(nonsense))).isEqualTo("BAD_REQUEST");
      assertThat(delivered(rig)).isNull();
    }
  }
}
