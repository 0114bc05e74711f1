package org.gandiva.yarn.compatibility;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.replay.Act;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Issue row "SchedulingRequests": FACTS §2 measured 9 and 6 containers on four GPUs in stock. */
class SchedulingRequestsTest {
  private static Rig handledBy(String handler) {
    return Rig.gandiva(4)
        .with("yarn.resourcemanager.placement-constraints.handler", handler)
        .start()
        .nodes(1, 4);
  }

  private static ObjectNode request(int count, int gpus) {
    return request(7, count, gpus);
  }

  private static ObjectNode request(int id, int count, int gpus) {
    ObjectNode action = Json.object().put("do", "ask_constrained").put("key", "j");
    ObjectNode request = action.putArray("requests").addObject();
    request.put("priority", 2).put("allocation_request_id", id).put("count", count);
    request.put("memory_mib", 256).put("vcores", 1).put("gpus", gpus);
    request.putArray("tags").add("worker");
    return action;
  }

  @ParameterizedTest
  @ValueSource(strings = {"scheduler", "placement-processor", "disabled"})
  void withGpusTheyAreRefusedByName(String handler) {
    try (Rig rig = handledBy(handler)) {
      rig.submit("j", "ann").step(request(9, 1));
      rig.act("beat", "j").act("beat", "j").settle();
      String said = rig.events("ask_refused", "j").get(0).get("diagnostics").asText();
      assertThat(said).contains("SchedulingRequests with yarn.io/gpu", "ResourceRequest");
      assertThat(rig.query("app_diagnostics", "j").get("diagnostics").asText()).contains(said);
      assertThat(rig.allocated("j")).isZero();
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isZero();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"scheduler", "placement-processor"})
  void withoutGpusTheyAreStocks(String handler) throws Exception {
    try (Rig rig = handledBy(handler)) {
      rig.submit("j", "ann").step(request(3, 0));
      assertThat(Act.becomes(() -> rig.act("beat", "j").settle().allocated("j") == 3)).isTrue();
    }
  }

  /** Stock code serves them there, up to the physical GPUs of the node. */
  @ParameterizedTest
  @ValueSource(strings = {"scheduler", "placement-processor"})
  void inObserveTheyAreStocks(String handler) throws Exception {
    try (Rig rig =
        Rig.gandiva(4)
            .with("yarn.scheduler.gandiva.mode", "observe")
            .with("yarn.resourcemanager.placement-constraints.handler", handler)
            .start()
            .nodes(1, 4)) {
      rig.submit("j", "ann").step(request(4, 1));
      assertThat(Act.becomes(() -> rig.act("beat", "j").settle().allocated("j") == 4)).isTrue();
      rig.step(request(8, 1, 1));
      rig.act("beat", "j").settle().act("beat", "j").settle();
      assertThat(rig.allocated("j")).isEqualTo(4);
      assertThat(rig.events("ask_refused", "j")).isEmpty();
    }
  }

  /** A refused heartbeat is one heartbeat: the next one is served. */
  @ParameterizedTest
  @ValueSource(strings = {"scheduler", "placement-processor"})
  void theNextHeartbeatIsServed(String handler) {
    try (Rig rig = handledBy(handler)) {
      rig.submit("j", "ann").step(request(1, 1));
      rig.ask("j", 2, 1);
      assertThat(rig.commit("j", "n1", "n1").get("code").asText()).isEqualTo("OK");
      assertThat(rig.act("beat", "j").allocated("j")).isEqualTo(2);
    }
  }
}
