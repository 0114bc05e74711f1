package org.gandiva.yarn;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;

/** DESIGN §4: why a GPU ask waits, where {@code yarn application -status} shows it. */
class ExplanationsTest {
  private static final String REASON = "waits for 8 GPUs, 4 are free (NO_ROOM)";

  private static JsonNode explain(Rig rig, String key, String text) {
    String attempt = rig.attempt(key);
    String app = attempt.replaceFirst("appattempt_(\\d+_\\d+)_\\d+", "application_$1");
    return rig.apply(
        Json.object().put("id", "x").put("op", "explain").put("app", app).put("text", text));
  }

  private static String shown(Rig rig, String key) {
    return rig.query("app_diagnostics", key).get("diagnostics").asText();
  }

  private static Rig waiting() {
    Rig rig = Rig.gandiva(1).start().nodes(1, 4);
    rig.submit("j", "ann").ask("j", 8, 1);
    assertThat(explain(rig, "j", REASON).get("code").asText()).isEqualTo("OK");
    assertThat(shown(rig, "j")).contains(REASON);
    return rig;
  }

  @Test
  void aReasonIsShownUntilItIsTakenBack() {
    try (Rig rig = waiting()) {
      rig.act("beat", "j");
      assertThat(shown(rig, "j")).contains(REASON);
      assertThat(explain(rig, "j", "").get("code").asText()).isEqualTo("OK");
      assertThat(shown(rig, "j")).doesNotContain("GPU");
    }
  }

  @Test
  void whatDoesNotWaitAnyMoreNeedsNoReason() {
    try (Rig rig = waiting()) {
      rig.ask("j", 2, 1);
      rig.commit("j", "n1");
      assertThat(shown(rig, "j")).as("one of two").contains(REASON);
      rig.commit("j", "n1");
      assertThat(shown(rig, "j")).doesNotContain("GPU");
    }
    try (Rig rig = waiting()) {
      rig.ask("j", 0, 1);
      assertThat(shown(rig, "j")).as("withdrawn").doesNotContain("GPU");
    }
  }

  /** Without an end of its own, an application would keep it as its last word. */
  @Test
  void theEndOfAnApplicationIsNotExplainedByIt() {
    for (String end : new String[] {"finish", "kill"}) {
      try (Rig rig = waiting()) {
        rig.act(end, "j").settle();
        assertThat(rig.events("app_finished", "j")).as(end).hasSize(1);
        assertThat(shown(rig, "j")).as(end).doesNotContain("8 GPUs");
      }
    }
  }

  @Test
  void onlyOneLineOfAnApplicationThatRunsIsTaken() {
    try (Rig rig = waiting()) {
      assertThat(explain(rig, "j", "a\nb").get("code").asText()).isEqualTo("BAD_REQUEST");
      assertThat(explain(rig, "j", "\u001b[2J").get("code").asText()).isEqualTo("BAD_REQUEST");
      StringBuilder text = new StringBuilder();
      for (int i = 0; i < 1001; i++) {
        text.append('x');
      }
      assertThat(explain(rig, "j", text.toString()).get("code").asText()).isEqualTo("BAD_REQUEST");
      assertThat(shown(rig, "j")).contains(REASON);
      rig.act("finish", "j").settle();
      assertThat(explain(rig, "j", REASON).get("code").asText()).isEqualTo("ASK_GONE");
    }
  }
}
