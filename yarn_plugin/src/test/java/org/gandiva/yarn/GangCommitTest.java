package org.gandiva.yarn;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ContainerUpdates;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.gateway.ProtocolException;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;

class GangCommitTest {
  @Test
  void aGangThatDoesNotFitLeavesNothing() {
    try (Rig rig = Rig.gandiva(1).start().nodes(2, 2)) {
      rig.submit("j", "ann").ask("j", 5, 1);
      JsonNode refused = rig.commit("j", "n1", "n1", "n2", "n1", "n2");
      assertThat(refused.get("code").asText()).isEqualTo("NO_ROOM");
      assertThat(refused.get("index").asInt()).isEqualTo(3);
      assertThat(refused.get("detail").asText()).contains("gpus=0 free");
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isZero();
      assertThat(rig.node("n1").at("/free/gpus").asInt()).isEqualTo(2);
    }
  }

  @Test
  void refusalsBurnNoContainerId() {
    try (Rig rig = Rig.gandiva(1).start().nodes(1, 2)) {
      rig.submit("j", "ann").ask("j", 3, 1);
      for (int i = 0; i < 17; i++) {
        assertThat(rig.commit("j", "n1", "n1", "n1").get("code").asText()).isEqualTo("NO_ROOM");
      }
      assertThat(rig.commit("j", "n1").get("containers").get(0).asText()).endsWith("_000002");
    }
  }

  @Test
  void everyRefusalHasItsCode() {
    try (Rig rig =
        Rig.gandiva(1)
            .with("yarn.scheduler.capacity.root.default.maximum-capacity", "50")
            .with("yarn.scheduler.capacity.root.default.capacity", "50")
            .with("yarn.scheduler.capacity.root.queues", "default,other")
            .with("yarn.scheduler.capacity.root.other.capacity", "50")
            .with("yarn.scheduler.capacity.root.default.user-limit-factor", "100")
            .start()
            .nodes(2, 4)) {
      rig.submit("j", "ann").ask("j", 6, 1);
      assertThat(rig.commit("j", "n1", "n1", "n1", "n2", "n2").get("code").asText())
          .isEqualTo("QUEUE_LIMIT");
      assertThat(rig.commit("j", "n9").get("code").asText()).isEqualTo("NODE_STATE");
      assertThat(rig.commit("j", "n1", "n1", "n1", "n2").get("code").asText()).isEqualTo("OK");
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isEqualTo(3);
    }
  }

  @Test
  void anAskThatInsistsOnANodeGoesNowhereElse() {
    try (Rig rig = Rig.gandiva(1).start().nodes(4, 2)) {
      rig.submit("j", "ann");
      rig.ask("j", 1, 1, "n3", false).ask("j", 1, 1, "/r2", false).ask("j", 1, 1, "*", false);
      assertThat(rig.commit("j", "n1").get("code").asText()).isEqualTo("LOCALITY");
      assertThat(rig.commit("j", "n4").get("code").asText()).isEqualTo("LOCALITY");
      assertThat(rig.commit("j", "n3").get("code").asText()).isEqualTo("OK");
    }
  }

  /** A refusal that only the scheduler itself can find comes late: what was done is taken back. */
  @Test
  void aLateRefusalIsRolledBackAndTheAsksReturn() {
    try (Rig rig =
        Rig.gandiva(1)
            .with("yarn.scheduler.capacity.root.default.user-limit-factor", "0.25")
            .start()
            .nodes(4, 4)) {
      rig.submit("a", "ann").ask("a", 8, 1);
      JsonNode refused = rig.commit("a", "n1", "n1", "n1", "n1", "n2", "n2", "n2", "n2");
      assertThat(refused.get("code").asText()).isEqualTo("USER_LIMIT");
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isZero();
      rig.act("beat", "a");
      assertThat(rig.allocated("a")).isZero();
      assertThat(rig.commit("a", "n3", "n3", "n3", "n3").get("code").asText()).isEqualTo("OK");
    }
  }

  /** FACTS §2: asks held outside of the scheduler's table gave 5 + 5 of 16; in it, 8 + 8. */
  @Test
  void twoUsersShareTheQueue() {
    try (Rig rig =
        Rig.gandiva(1)
            .with("yarn.scheduler.capacity.root.default.minimum-user-limit-percent", "25")
            .start()
            .nodes(4, 4)) {
      rig.submit("a", "ann").ask("a", 16, 1).submit("b", "bob").ask("b", 16, 1);
      int[] given = new int[2];
      for (int i = 0; i < 16; i++) {
        String host = "n" + (1 + i / 4);
        String key = i % 2 == 0 ? "a" : "b";
        given[i % 2] += rig.commit(key, host).get("code").asText().equals("OK") ? 1 : 0;
      }
      assertThat(given).containsExactly(8, 8);
    }
  }

  @Test
  void aMasterSeesAGangWholeOrNotAtAll() throws Exception {
    try (Rig rig = Rig.gandiva(4).start().nodes(2, 8)) {
      rig.submit("j", "ann").ask("j", 640, 1);
      ApplicationAttemptId attempt = ApplicationAttemptId.fromString(rig.attempt("j"));
      AtomicBoolean isOver = new AtomicBoolean();
      Set<Integer> seen = ConcurrentHashMap.newKeySet();
      ExecutorService master = Executors.newSingleThreadExecutor();
      Future<?> beats =
          master.submit(
              () -> {
                while (!isOver.get()) {
                  seen.add(fetch(rig.scheduler(), attempt));
                }
              });
      String[] gang = new String[16];
      Arrays.fill(gang, 0, 8, "n1");
      Arrays.fill(gang, 8, 16, "n2");
      for (int i = 0; i < 4; i++) {
        assertThat(rig.commit("j", gang).get("code").asText()).isEqualTo("OK");
      }
      isOver.set(true);
      beats.get();
      master.shutdown();
      seen.add(fetch(rig.scheduler(), attempt));
      assertThat(seen).allMatch(count -> count % 16 == 0);
    }
  }

  private static int fetch(GandivaScheduler scheduler, ApplicationAttemptId attempt) {
    return scheduler
        .allocate(
            attempt,
            Collections.emptyList(),
            null,
            Collections.emptyList(),
            null,
            null,
            new ContainerUpdates())
        .getContainers()
        .size();
  }

  /** FAULTS E5: garbage is refused with a reason; nothing of it is applied. */
  @Test
  void garbageIsRefusedWithAReason() {
    try (Rig rig = Rig.gandiva(1).start().nodes(1, 4)) {
      rig.submit("j", "ann").ask("j", 1, 1);
      List<String> bad =
          Arrays.asList(
              "{\"id\":\"x\",\"op\":\"explode\"}",
              "{\"id\":\"x\",\"op\":\"commit_gang\",\"attempt\":\"nobody\",\"containers\":[{}]}",
              "{\"id\":\"x\",\"op\":\"commit_gang\",\"attempt\":\"" + rig.attempt("j") + "\"}",
              "{\"id\":\"x\",\"op\":\"commit_gang\",\"attempt\":\""
                  + rig.attempt("j")
                  + "\",\"containers\":[{\"node\":\"n1:1\",\"priority\":1,"
                  + "\"allocation_request_id\":-1,\"memory_mib\":256,\"vcores\":1,\"gpus\":-1}]}");
      for (String effect : bad) {
        assertThat(rig.apply(parse(effect)).get("code").asText()).isEqualTo("BAD_REQUEST");
      }
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isZero();
      assertThat(rig.scheduler().ownErrors()).isZero();
    }
  }

  private static ObjectNode parse(String text) {
    try {
      return Json.parse(text);
    } catch (ProtocolException e) {
      throw new AssertionError(e);
    }
  }
}
