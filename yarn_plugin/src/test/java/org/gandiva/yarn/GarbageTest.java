package org.gandiva.yarn;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import org.gandiva.yarn.gateway.GandivaGateway;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;

/** E5 of the faults: what cannot be believed is refused whole, with a reason, and counted. */
class GarbageTest {
  private static ObjectNode wish(String node) {
    ObjectNode wish = Json.object().put("node", node).put("priority", 1);
    wish.put("allocation_request_id", -1).put("memory_mib", 256).put("vcores", 1);
    return wish.put("gpus", 1);
  }

  private static ObjectNode commit(Rig rig, ObjectNode... wishes) {
    ObjectNode effect = Json.object().put("id", "e").put("op", "commit_gang");
    effect.put("attempt", rig.attempt("j")).putArray("containers").addAll(Arrays.asList(wishes));
    return effect;
  }

  private static Rig rig() {
    Rig rig = Rig.gandiva(2).start().nodes(2, 4);
    return rig.submit("j", "ann").ask("j", 4, 1);
  }

  private static String huge() {
    char[] text = new char[10 * 1024 * 1024];
    Arrays.fill(text, 'x');
    return new String(text);
  }

  private static void refused(Rig rig, ObjectNode effect, String code) {
    JsonNode result = rig.apply(effect);
    assertThat(result.get("code").asText()).as(Json.shown(effect.toString())).isEqualTo(code);
    assertThat(result.get("detail").asText()).isNotEmpty().hasSizeLessThan(400);
    assertThat(rig.node("n1").at("/used/gpus").asInt()).isZero();
    assertThat(rig.node("n2").at("/used/gpus").asInt()).isZero();
  }

  @Test
  void aGangWithOneBadContainerIsRefusedWhole() {
    try (Rig rig = rig()) {
      refused(rig, commit(rig, wish("n1:1"), wish("nowhere:1")), "NODE_STATE");
      refused(rig, commit(rig, wish("n1:1"), wish("no node id")), "NODE_STATE");
      refused(rig, commit(rig, wish("n1:1"), wish(huge())), "NODE_STATE");
      refused(rig, commit(rig, wish("n1:1"), wish("n2:1").put("gpus", -1)), "BAD_REQUEST");
      refused(rig, commit(rig, wish("n1:1"), wish("n2:1").put("vcores", 1L << 40)), "BAD_REQUEST");
      refused(rig, commit(rig, wish("n1:1"), wish("n2:1").put("gpus", 0.5)), "BAD_REQUEST");
      refused(rig, commit(rig, wish("n1:1"), wish("n2:1").put("gpus", "1")), "BAD_REQUEST");
      refused(rig, commit(rig, wish("n1:1"), wish("n2:1").put("memory_mib", -256)), "ASK_GONE");
      refused(rig, commit(rig, wish("n1:1"), wish("n2:1").putNull("priority")), "BAD_REQUEST");
      refused(rig, commit(rig), "BAD_REQUEST");
      refused(rig, commit(rig, wish("n1:1")).put("attempt", huge()), "BAD_REQUEST");
      String other = "appattempt_1_0009_000001";
      refused(rig, commit(rig, wish("n1:1")).put("attempt", other), "ASK_GONE");
      assertThat(rig.scheduler().metrics().getGarbageRefused()).isEqualTo(7);
      assertThat(rig.scheduler().metrics().getEffectsRefused()).containsEntry("NODE_STATE", 3L);
      assertThat(rig.apply(commit(rig, wish("n1:1"))).get("code").asText()).isEqualTo("OK");
    }
  }

  @Test
  void anEffectWithoutAnIdOrAKnownOperationIsRefused() {
    try (Rig rig = rig()) {
      refused(rig, commit(rig, wish("n1:1")).put("id", huge()), "BAD_REQUEST");
      refused(rig, commit(rig, wish("n1:1")).put("id", 7), "BAD_REQUEST");
      refused(rig, commit(rig, wish("n1:1")).put("op", "commit_everything"), "BAD_REQUEST");
      refused(rig, commit(rig, wish("n1:1")).put("op", huge()), "BAD_REQUEST");
      ObjectNode height = Json.object().put("id", "h").put("op", "set_height").put("node", "n1:1");
      refused(rig, height.put("height", 0), "BAD_REQUEST");
      refused(rig, height.put("height", 9), "BAD_REQUEST");
      refused(rig, height.put("height", 1e300), "BAD_REQUEST");
    }
  }

  @Test
  void aReleaseIsReadWholeBeforeAnythingIsGivenBack() {
    try (Rig rig = rig()) {
      JsonNode done = rig.apply(commit(rig, wish("n1:1"), wish("n1:1")));
      ObjectNode release = Json.object().put("id", "r").put("op", "release_gang");
      release.put("attempt", rig.attempt("j"));
      String first = done.at("/containers/0").asText();
      release.putArray("containers").add(first).add("no container");
      assertThat(rig.apply(release).get("code").asText()).isEqualTo("BAD_REQUEST");
      release.putArray("containers").add(first).add(first);
      assertThat(rig.apply(release).get("code").asText()).isEqualTo("BAD_REQUEST");
      String master = first.replaceFirst("_\\d+$", "_000001");
      release.putArray("containers").add(first).add(master);
      assertThat(rig.apply(release).get("detail").asText()).contains("has no GPU");
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isEqualTo(2);
      release.putArray("containers").add(first);
      assertThat(rig.apply(release).get("code").asText()).isEqualTo("OK");
    }
  }

  @Test
  void requestsThatAreNoMessagesAreRefusedAndCounted() {
    try (Rig rig = rig()) {
      GandivaGateway gateway = rig.scheduler().gateway();
      char[] deep = new char[2_000_000];
      Arrays.fill(deep, '[');
      for (String request :
          Arrays.asList(
              "",
              "NaN",
              "null",
              "[]",
              "{",
              "{\"epoch\":NaN}",
              "{\"epoch\":\"1\"}",
              "{}",
              "{\"epoch\":1e99}",
              "{\"epoch\":1} {}",
              "{\"epoch\":1,\"epoch\":1}",
              new String(deep),
              huge())) {
        assertThat(gateway.apply(request)).contains("\"kind\":\"BAD_REQUEST\"");
        assertThat(gateway.takeEvents(request)).contains("\"kind\":\"BAD_REQUEST\"");
        assertThat(gateway.hello(request)).contains("\"kind\":\"BAD_REQUEST\"");
      }
      assertThat(rig.scheduler().metrics().getRequestsRefused()).containsEntry("BAD_REQUEST", 39L);
      assertThat(gateway.apply("{\"epoch\":77,\"seq\":1}")).contains("STALE_EPOCH");
      assertThat(rig.commit("j", "n1").get("code").asText())
          .as("the session goes on")
          .isEqualTo("OK");
    }
  }
}
