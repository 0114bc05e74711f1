package org.gandiva.yarn.replay;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.gandiva.yarn.GandivaScheduler;
import org.gandiva.yarn.gateway.Json;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class StockReplayTest {
  @Test
  void fifoJobsWaitForFreedGpus() {
    try (Rig rig = Rig.stock().start().nodes(2, 4)) {
      rig.submit("first", "ann").ask("first", 6, 1).submit("second", "ann").ask("second", 4, 1);
      assertThat(rig.allocated("first")).isEqualTo(6);
      assertThat(rig.allocated("second")).isEqualTo(2);
      rig.act("finish", "first");
      assertThat(rig.allocated("second")).isEqualTo(4);
      rig.act("finish", "second");
      assertThat(rig.events("app_finished", "second")).hasSize(1);
      assertThat(rig.node("n1").at("/used/memory_mib").asInt()).isZero();
    }
  }

  @Test
  void sameInputsGiveSameBytes() {
    assertThat(script(Rig.stock())).isEqualTo(script(Rig.stock()));
  }

  private static String script(Rig unstarted) {
    StringBuilder said = new StringBuilder();
    try (Rig rig = unstarted.start().nodes(3, 4)) {
      for (int job = 0; job < 12; job++) {
        rig.submit("j" + job, "u" + job % 3).ask("j" + job, 1 + job % 5, 1);
        if (job > 2) {
          said.append(rig.act("finish", "j" + (job - 3)).query("nodes", ""));
        }
      }
      said.append(rig.events("allocated", "j5")).append(rig.query("queues", ""));
    }
    return said.toString();
  }

  /** Two replays at once broke each other over Hadoop's one folder a user. */
  @Test
  void noFileOfTheHostIsTouched(@TempDir Path folder) {
    Path attributes = folder.resolve("attributes");
    Path labels = folder.resolve("labels");
    Rig unstarted =
        Rig.stock()
            .with("yarn.node-labels.enabled", "true")
            .with("yarn.node-attribute.fs-store.root-dir", attributes.toUri().toString())
            .with("yarn.node-labels.fs-store.root-dir", labels.toUri().toString());
    try (Rig rig = unstarted.start().nodes(1, 4)) {
      rig.submit("j", "ann").ask("j", 1, 1);
      assertThat(rig.allocated("j")).isEqualTo(1);
    }
    assertThat(folder).isEmptyDirectory();
  }

  @Test
  void onlyTheSchedulerClassDiffers() {
    Map<String, String> stock;
    Map<String, String> ours;
    try (Rig rig = Rig.stock().start()) {
      assertThat(rig.anyScheduler().getClass()).isSameAs(CapacityScheduler.class);
      stock = flat(rig.configuration());
    }
    try (Rig rig = Rig.gandiva(4).start()) {
      ours = flat(rig.configuration());
    }
    TreeSet<String> differing = new TreeSet<>(stock.keySet());
    differing.addAll(ours.keySet());
    differing.removeIf(key -> stock.getOrDefault(key, "").equals(ours.getOrDefault(key, "")));
    assertThat(differing)
        .containsExactly(
            YarnConfiguration.RM_APPLICATION_MASTER_SERVICE_PROCESSORS,
            YarnConfiguration.RM_SCHEDULER,
            "yarn.scheduler.gandiva.height.max");
    assertThat(ours.get(YarnConfiguration.RM_SCHEDULER))
        .isEqualTo(GandivaScheduler.class.getName());
  }

  private static Map<String, String> flat(JsonNode configuration) {
    Map<String, String> flat = new TreeMap<>();
    for (Iterator<String> keys = configuration.fieldNames(); keys.hasNext(); ) {
      String key = keys.next();
      flat.put(key, configuration.get(key).asText());
    }
    return flat;
  }

  @Test
  void aMasterBeyondTheLimitSaysSo() {
    try (Rig rig =
        Rig.stock()
            .with("yarn.scheduler.capacity.maximum-am-resource-percent", "0.001")
            .start()
            .nodes(1, 4)) {
      rig.submit("a", "ann").submit("b", "ann");
      assertThat(rig.events("am_waiting", "b").get(0).get("reason").asText()).isEqualTo("AM_LIMIT");
      rig.act("finish", "a");
      assertThat(rig.events("am_started", "b")).hasSize(1);
    }
  }

  @Test
  void anUnknownQueueIsARejectionNotAnError() {
    try (Rig rig = Rig.stock().start().nodes(1, 4)) {
      rig.rawStep(
          "{\"now_s\":9,\"actions\":[{\"do\":\"submit\",\"key\":\"x\",\"queue\":\"nowhere\","
              + "\"am_memory_mib\":256,\"am_vcores\":1}]}");
      assertThat(rig.rawStep("{\"now_s\":10,\"actions\":[{\"do\":\"finish\",\"key\":\"x\"}]}"))
          .contains("NOT_RUNNING");
    }
  }

  @Test
  void badStepsNameTheField() {
    try (Rig rig = Rig.stock().start()) {
      assertThat(rig.rawStep("{\"now_s\":\"soon\"}")).contains("now_s: found", "BAD_REQUEST");
      assertThat(rig.rawStep("{\"now_s\":1,\"actions\":[{\"do\":\"dance\"}]}")).contains("dance");
      assertThat(rig.rawStep("nothing")).contains("not JSON").doesNotContain("\\tat ");
    }
  }

  @Test
  void timeDoesNotGoBack() {
    try (Rig rig = Rig.stock().start()) {
      rig.rawStep("{\"now_s\":5}");
      assertThat(rig.rawStep("{\"now_s\":4}")).contains("go back");
    }
  }

  @Test
  void aLostNodeEndsItsContainers() {
    try (Rig rig = Rig.stock().start().nodes(2, 4)) {
      rig.submit("j", "ann").ask("j", 8, 1);
      assertThat(rig.events("am_started", "j").get(0).get("node").asText()).isEqualTo("n1:1");
      rig.step(Json.object().put("do", "remove_node").put("host", "n2"));
      assertThat(rig.events("completed", "j").get(0).get("containers")).hasSize(4);
    }
  }
}
