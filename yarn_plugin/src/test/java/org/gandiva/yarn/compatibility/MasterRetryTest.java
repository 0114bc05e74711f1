package org.gandiva.yarn.compatibility;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.replay.Act;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;

/** Issue row "a master that is started again", with its containers kept and without. */
class MasterRetryTest {
  /** Its master crashed while it held two containers and asked for a third. */
  private static Rig crashed(boolean keeps) {
    Rig rig = Rig.gandiva(4).start().nodes(2, 4);
    rig.step(Act.submit("j", "ann", "default").put("keep_containers", keeps));
    rig.ask("j", 3, 1);
    assertThat(rig.commit("j", "n1", "n2").get("code").asText()).isEqualTo("OK");
    rig.act("beat", "j").settle().takeEvents(); // Hadoop keeps containers that their nodes run.
    rig.act("crash", "j").settle();
    assertThat(rig.events("am_started", "j")).hasSize(2);
    return rig;
  }

  private static JsonNode release(Rig rig, JsonNode container) {
    ObjectNode effect = Json.object().put("id", "r").put("op", "release_gang");
    effect.put("attempt", rig.attempt("j"));
    effect.putArray("containers").add(container);
    return rig.apply(effect);
  }

  @Test
  void keptContainersStayInTheBooksOfTheNewAttempt() {
    try (Rig rig = crashed(true)) {
      assertThat(Act.ofKind(rig.takeEvents(), "container_completed")).isEmpty();
      assertThat(rig.query("app_diagnostics", "j").get("containers").asInt()).isEqualTo(2);
      String old = rig.events("am_started", "j").get(0).get("attempt").asText();
      assertThat(rig.apply(Act.commit(old, 1, 1, "n1")).get("code").asText()).isEqualTo("ASK_GONE");
      assertThat(rig.commit("j", "n1").get("code").asText()).isEqualTo("ASK_GONE");
      rig.ask("j", 1, 1);
      assertThat(rig.commit("j", "n1").get("code").asText()).isEqualTo("OK");
      rig.act("beat", "j").hello();
      JsonNode app = rig.takeEvents().get(0).at("/apps/0");
      assertThat(app.get("attempt").asText()).isEqualTo(rig.attempt("j"));
      assertThat(app.get("containers")).hasSize(3);
    }
  }

  @Test
  void theCoreCanReleaseAKeptContainer() {
    try (Rig rig = crashed(true)) {
      rig.hello();
      JsonNode kept = rig.takeEvents().get(0).at("/apps/0/containers/0/container");
      assertThat(release(rig, kept).get("gone")).isEmpty();
      rig.settle().settle(); // A launched container's room is free once its node says so.
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isZero();
      assertThat(Act.ofKind(rig.takeEvents(), "container_completed")).hasSize(1);
      assertThat(release(rig, kept).get("gone")).hasSize(1);
    }
  }

  @Test
  void otherContainersEndBeforeTheNewAttemptIsTold() {
    try (Rig rig = crashed(false)) {
      StringBuilder kinds = new StringBuilder();
      rig.takeEvents().forEach(event -> kinds.append(event.get("kind").asText()).append(' '));
      assertThat(kinds.toString())
          .containsSubsequence("container_completed", "container_completed", "app_added");
      rig.settle().settle();
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isZero();
      assertThat(rig.node("n2").at("/used/gpus").asInt()).isZero();
    }
  }
}
