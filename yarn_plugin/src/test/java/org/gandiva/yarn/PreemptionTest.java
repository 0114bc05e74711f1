package org.gandiva.yarn;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;

/** DESIGN §4: Hadoop's own preemption policy, for demand with and without GPUs, both arms. */
class PreemptionTest {
  private static final String POLICY = "yarn.resourcemanager.monitor.capacity.preemption.";

  private static Rig preempting(Rig rig) {
    return AdoptionTest.twoQueues(rig)
        .with(YarnConfiguration.RM_SCHEDULER_ENABLE_MONITORS, "true")
        .with("yarn.scheduler.maximum-allocation-mb", "32768")
        .with("yarn.scheduler.capacity.root.a.user-limit-factor", "10")
        .with("yarn.scheduler.capacity.root.b.user-limit-factor", "10")
        .with(POLICY + "total_preemption_per_round", "1.0")
        .with(POLICY + "natural_termination_factor", "1.0")
        .with(POLICY + "max_wait_before_kill", "3000");
  }

  private static Rig ask(Rig rig, String key, int count, int gpus, int memoryMib) {
    ObjectNode action = Json.object().put("do", "ask").put("key", key);
    ObjectNode ask = action.putArray("asks").addObject();
    ask.put("priority", 1).put("count", count);
    ask.put("memory_mib", memoryMib).put("vcores", 1).put("gpus", gpus);
    rig.step(action);
    return rig;
  }

  private static void preempt(Rig rig) {
    for (int round = 0; round < 30; round++) {
      rig.step(Json.object().put("do", "edit_schedule"));
    }
  }

  private static int preempted(Rig rig, String key) {
    rig.act("beat", key);
    return rig.events("preempted", key).stream().mapToInt(e -> e.get("containers").size()).sum();
  }

  private static Set<String> reclaimed(List<JsonNode> events) {
    Set<String> containers = new HashSet<>();
    for (JsonNode event : events) {
      assertThat(event.get("node").asText()).matches("n\\d:1");
      assertThat(event.get("gpus").asInt()).isEqualTo(1);
      assertThat(event.get("reason").asText()).isIn("preemption", "killable", "nonkillable");
      containers.add(event.get("container").asText());
    }
    return containers;
  }

  @Test
  void demandForGpusKillsThemInStockAndIsAQuestionToTheCoreHere() {
    try (Rig rig = preempting(Rig.stock()).start().nodes(2, 4)) {
      rig.submitTo("a", "rich", "ann").ask("rich", 8, 1).submitTo("b", "poor", "bob");
      rig.ask("poor", 4, 1);
      preempt(rig);
      assertThat(preempted(rig, "rich")).isEqualTo(4);
    }
    Rig ours = Rig.gandiva(1).with(GandivaConfiguration.MODE, "place");
    try (Rig rig = preempting(ours).start().nodes(2, 4)) {
      rig.submitTo("a", "rich", "ann").ask("rich", 8, 1).submitTo("b", "poor", "bob");
      rig.commit("rich", "n1", "n1", "n1", "n1", "n2", "n2", "n2", "n2");
      rig.act("beat", "rich").ask("poor", 4, 1).takeEvents();
      preempt(rig);
      assertThat(preempted(rig, "rich")).isZero();
      assertThat(rig.events("completed", "rich")).isEmpty();
      assertThat(reclaimed(rig.takeEvents("reclaim_asked"))).hasSizeGreaterThanOrEqualTo(3);
    }
  }

  /** The GPU job came last and holds most of the memory: stock takes its containers first. */
  @Test
  void demandWithoutGpusKillsNoGpuContainerHere() {
    try (Rig rig = preempting(Rig.stock()).start().nodes(2, 4)) {
      cpuDemand(rig, false);
      assertThat(preempted(rig, "gpu")).isPositive();
    }
    Rig ours = Rig.gandiva(1).with(GandivaConfiguration.MODE, "place");
    try (Rig rig = preempting(ours).start().nodes(2, 4)) {
      cpuDemand(rig, true);
      assertThat(preempted(rig, "gpu")).isZero();
      assertThat(reclaimed(rig.takeEvents("reclaim_asked"))).isNotEmpty();
    }
  }

  private static void cpuDemand(Rig rig, boolean isOurs) {
    rig.submitTo("a", "gpu", "ann");
    ask(rig, "gpu", 8, 1, 15_000);
    if (isOurs) {
      ObjectNode effect = Json.object().put("id", "e").put("op", "commit_gang");
      effect.put("attempt", rig.attempt("gpu"));
      for (int i = 0; i < 8; i++) {
        ObjectNode wish = effect.withArray("containers").addObject();
        wish.put("node", i < 4 ? "n1:1" : "n2:1").put("priority", 1);
        wish.put("allocation_request_id", -1);
        wish.put("memory_mib", 15_104).put("vcores", 1).put("gpus", 1);
      }
      assertThat(rig.apply(effect).get("code").asText()).isEqualTo("OK");
      rig.act("beat", "gpu").takeEvents();
    }
    rig.submitTo("b", "cpu", "bob");
    ask(rig, "cpu", 8, 0, 6_000);
    preempt(rig);
  }

  /** The same asks without GPUs are preempted alike in both arms. */
  @Test
  void plainContainersArePreemptedAsInStock() {
    assertThat(plain(Rig.gandiva(4))).isEqualTo(plain(Rig.stock())).isPositive();
  }

  private static int plain(Rig unstarted) {
    try (Rig rig = preempting(unstarted).start().nodes(2, 4)) {
      rig.submitTo("a", "rich", "ann");
      ask(rig, "rich", 20, 0, 6_000);
      rig.settle().submitTo("b", "poor", "bob");
      ask(rig, "poor", 8, 0, 6_000);
      preempt(rig);
      return preempted(rig, "rich");
    }
  }

  @Test
  void aQueueThatIsNotAdoptedIsPreemptedAsInStock() {
    Rig ours = Rig.gandiva(1).with(GandivaConfiguration.QUEUES, "");
    try (Rig rig = preempting(ours).start().nodes(2, 4)) {
      int killed = gpuDemand(rig);
      assertThat(rig.takeEvents("reclaim_asked")).isEmpty();
      try (Rig stock = preempting(Rig.stock()).start().nodes(2, 4)) {
        assertThat(killed).isEqualTo(gpuDemand(stock)).isPositive();
      }
    }
  }

  private static int gpuDemand(Rig rig) {
    rig.submitTo("a", "rich", "ann").ask("rich", 8, 1).settle().submitTo("b", "poor", "bob");
    rig.ask("poor", 4, 1);
    preempt(rig);
    return preempted(rig, "rich");
  }
}
