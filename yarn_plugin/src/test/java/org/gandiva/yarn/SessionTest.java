package org.gandiva.yarn;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.stream.Collectors;
import org.gandiva.yarn.gateway.GandivaGateway;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;

class SessionTest {
  private static List<String> kinds(Rig rig) {
    return rig.takeEvents().stream()
        .map(event -> event.get("kind").asText())
        .collect(Collectors.toList());
  }

  @Test
  void aNewHelloEndsTheOldSession() {
    try (Rig rig = Rig.gandiva(1).start().nodes(1, 4)) {
      long old = rig.hello();
      rig.hello();
      GandivaGateway gateway = rig.scheduler().gateway();
      String request = "{\"epoch\":" + old + ",\"seq\":1,\"effects\":[]}";
      assertThat(gateway.apply(request)).contains("STALE_EPOCH");
      assertThat(gateway.takeEvents("{\"epoch\":" + old + "}")).contains("STALE_EPOCH");
    }
  }

  @Test
  void aRepeatedSequenceGetsTheRememberedReplyAndAGapIsRefused() {
    try (Rig rig = Rig.gandiva(1).start().nodes(1, 4)) {
      rig.submit("j", "ann").ask("j", 2, 1);
      long epoch = rig.hello();
      GandivaGateway gateway = rig.scheduler().gateway();
      String commit =
          "{\"epoch\":%d,\"seq\":%d,\"effects\":[{\"id\":\"1\",\"op\":\"commit_gang\",\"attempt\":\"%s\","
              + "\"containers\":[{\"node\":\"n1:1\",\"priority\":1,\"allocation_request_id\":-1,"
              + "\"memory_mib\":256,\"vcores\":1,\"gpus\":1}]}]}";
      String first = gateway.apply(String.format(commit, epoch, 1, rig.attempt("j")));
      assertThat(first).contains("\"code\":\"OK\"");
      assertThat(gateway.apply(String.format(commit, epoch, 1, rig.attempt("j")))).isEqualTo(first);
      assertThat(gateway.apply(String.format(commit, epoch, 3, rig.attempt("j"))))
          .contains("BAD_SEQUENCE");
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isEqualTo(1);
    }
  }

  @Test
  void theFirstBatchIsTheWholeState() {
    try (Rig rig = Rig.gandiva(4).start().nodes(2, 4)) {
      rig.submit("j", "ann").ask("j", 3, 1);
      rig.commit("j", "n1");
      rig.hello();
      JsonNode resync = rig.takeEvents().get(0);
      assertThat(resync.get("kind").asText()).isEqualTo("resync");
      assertThat(resync.get("nodes")).hasSize(2);
      assertThat(resync.at("/nodes/0/gpus").asInt()).isEqualTo(4);
      assertThat(resync.at("/nodes/0/schedulable_gpus").asInt()).isEqualTo(16);
      assertThat(resync.at("/apps/0/asks/0/count").asInt()).isEqualTo(2);
      assertThat(resync.at("/apps/0/containers/0/node").asText()).isEqualTo("n1:1");
      assertThat(resync.at("/apps/0/queue").asText()).isEqualTo("root.default");
    }
  }

  @Test
  void asksAreToldWhenTheyChangeAndOnceMore() {
    try (Rig rig = Rig.gandiva(1).start().nodes(1, 4)) {
      rig.takeEvents();
      rig.submit("j", "ann").ask("j", 3, 1);
      assertThat(kinds(rig)).containsExactly("app_added", "asks");
      rig.act("beat", "j").act("beat", "j");
      assertThat(kinds(rig)).containsExactly("asks_unchanged");
      rig.ask("j", 0, 1);
      assertThat(kinds(rig)).containsExactly("asks");
      rig.act("finish", "j");
      assertThat(kinds(rig)).containsExactly("app_removed");
    }
  }

  @Test
  void anOverflowDropsAllForOneResync() {
    try (Rig rig = Rig.gandiva(1).with(GandivaConfiguration.EVENTS_MAX, "3").start().nodes(2, 4)) {
      rig.takeEvents();
      for (int i = 0; i < 5; i++) {
        rig.submit("j" + i, "ann");
      }
      List<JsonNode> events = rig.takeEvents();
      assertThat(events).hasSize(1);
      assertThat(events.get(0).get("apps")).hasSize(5);
      rig.submit("late", "ann");
      assertThat(kinds(rig)).containsExactly("app_added");
    }
  }

  /** DESIGN §4: an exception out of handle() would end the ResourceManager. */
  @Test
  void whatFailsInOurCodeIsCountedAndGoesNoFurther() {
    try (Rig rig = Rig.gandiva(4).start().nodes(1, 4)) {
      rig.scheduler()
          .setClock(
              () -> {
                throw new IllegalStateException("no time");
              });
      rig.submit("j", "ann").ask("j", 1, 0);
      assertThat(rig.scheduler().ownErrors()).isPositive();
      assertThat(rig.allocated("j")).isEqualTo(1);
    }
  }

  /** Case C05: ten thousand nodes arrive in parts below 16 MiB. */
  @Test
  void tenThousandNodesFitTheirParts() {
    try (Rig rig = Rig.gandiva(1).start()) {
      StringBuilder actions = new StringBuilder();
      for (int i = 0; i < 10_000; i++) {
        actions
            .append(i == 0 ? "" : ",")
            .append(
                "{\"do\":\"add_node\",\"memory_mib\":65536,\"vcores\":64,\"gpus\":8,\"host\":\"")
            .append("gpu-server-with-a-long-name-in-a-large-data-centre-")
            .append(i)
            .append("\"}");
      }
      assertThat(rig.rawStep("{\"now_s\":1,\"actions\":[" + actions + "]}"))
          .contains("\"ok\":true");
      rig.hello();
      List<JsonNode> parts = rig.takeEvents();
      assertThat(parts).allMatch(part -> Json.write(part).length() < 16 * 1024 * 1024);
      assertThat(parts.stream().mapToInt(part -> part.get("nodes").size()).sum()).isEqualTo(10_000);
      assertThat(parts.get(0).get("parts").asInt()).isEqualTo(parts.size());
    }
  }
}
