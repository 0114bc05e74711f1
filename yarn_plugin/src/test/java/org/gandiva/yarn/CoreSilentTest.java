package org.gandiva.yarn;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;

/** E3 and E4 of the faults, inside one JVM: what stock code may do while the core is silent. */
class CoreSilentTest {
  private static Rig rig(String fallback) {
    return Rig.gandiva(4).with(GandivaConfiguration.CORE_FALLBACK, fallback).start().nodes(1, 4);
  }

  static void waitUntil(BooleanSupplier isSo) {
    long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
    while (!isSo.getAsBoolean()) {
      assertThat(System.nanoTime()).isLessThan(until);
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(10));
    }
  }

  private static GandivaMXBean metrics(Rig rig) {
    return rig.scheduler().metrics();
  }

  @Test
  void underExclusiveStockServesPhysicalGpusAndNeverMore() {
    try (Rig rig = rig("exclusive")) {
      rig.submit("j", "ann").ask("j", 8, 1).settle();
      assertThat(rig.allocated("j")).as("the core is there").isZero();
      waitUntil(() -> metrics(rig).getFallbackEngaged() == 1);
      assertThat(metrics(rig).getCoreState()).isEqualTo("SILENT");
      assertThat(metrics(rig).getBreakerOpens()).isEqualTo(1);
      assertThat(metrics(rig).getNodesByHeight()).containsOnlyKeys("1");
      rig.settle();
      assertThat(rig.allocated("j")).isEqualTo(4);
    }
  }

  @Test
  void aCoreThatIsBackIsToldOfAllThatStockGave() {
    try (Rig rig = rig("exclusive")) {
      rig.submit("j", "ann").ask("j", 8, 1);
      waitUntil(() -> metrics(rig).getFallbackEngaged() == 1);
      rig.settle();
      rig.hello();
      assertThat(metrics(rig).getFallbackEngaged()).isZero();
      assertThat(metrics(rig).getNodesByHeight()).containsOnlyKeys("4");
      JsonNode resync = rig.takeEvents().get(0);
      assertThat(resync.at("/apps/0/containers")).hasSize(4);
      assertThat(resync.at("/apps/0/asks/0/count").asInt()).isEqualTo(4);
      rig.settle();
      assertThat(rig.allocated("j")).as("the veto holds again").isEqualTo(4);
      rig.takeEvents();
      assertThat(rig.commit("j", "n1", "n1").get("code").asText()).isEqualTo("OK");
    }
  }

  @Test
  void residentsAboveThePhysicalCountLiveOn() {
    try (Rig rig = rig("exclusive")) {
      rig.submit("j", "ann").ask("j", 7, 1);
      rig.takeEvents();
      assertThat(rig.commit("j", "n1", "n1", "n1", "n1", "n1", "n1").get("code").asText())
          .isEqualTo("OK");
      waitUntil(() -> metrics(rig).getFallbackEngaged() == 1);
      rig.settle();
      assertThat(rig.events("completed", "j")).isEmpty();
      assertThat(rig.events("preempted", "j")).isEmpty();
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isEqualTo(6);
    }
  }

  /** Of a node that owes GPUs, Hadoop would give away no memory either. */
  @Test
  void aNodeThatHoldsMoreThanItHasGoesOnToServeOtherWork() {
    try (Rig rig = rig("exclusive")) {
      rig.submit("j", "ann").ask("j", 7, 1);
      rig.submit("cpu", "ann");
      rig.takeEvents();
      rig.commit("j", "n1", "n1", "n1", "n1", "n1", "n1");
      rig.act("beat", "j");
      waitUntil(() -> metrics(rig).getFallbackEngaged() == 1);
      rig.ask("cpu", 3, 0).settle();
      assertThat(rig.allocated("cpu")).isEqualTo(3);
      assertThat(rig.allocated("j")).as("six on four devices: none is free").isEqualTo(6);
      assertThat(rig.node("n1").at("/scheduler_total/gpus").asInt()).isEqualTo(6);
      rig.act("kill", "j").settle();
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isZero();
      assertThat(rig.node("n1").at("/scheduler_total/gpus").asInt()).isEqualTo(4);
    }
  }

  /** A core that hung and goes on in its old session has missed nothing that it must know. */
  @Test
  void aCoreThatGoesOnInItsOldSessionGetsAResync() {
    try (Rig rig = rig("exclusive")) {
      rig.takeEvents();
      rig.submit("j", "ann").ask("j", 8, 1);
      waitUntil(() -> metrics(rig).getFallbackEngaged() == 1);
      rig.settle();
      JsonNode first = rig.takeEvents().get(0);
      assertThat(first.get("kind").asText()).isEqualTo("resync");
      assertThat(first.at("/apps/0/containers")).hasSize(4);
      assertThat(metrics(rig).getFallbackEngaged()).isZero();
    }
  }

  /** What it decided before it hung would put two on a device that stock code gave away whole. */
  @Test
  void nothingIsCommittedBeforeTheCoreKnowsWhatStockGave() {
    try (Rig rig = rig("exclusive")) {
      rig.takeEvents();
      rig.submit("j", "ann").ask("j", 8, 1);
      waitUntil(() -> metrics(rig).getFallbackEngaged() == 1);
      rig.settle();
      JsonNode early = rig.commit("j", "n1");
      assertThat(early.get("code").asText()).isEqualTo("NOT_READY");
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isEqualTo(4);
      rig.takeEvents();
      assertThat(rig.commit("j", "n1").get("code").asText()).isEqualTo("OK");
    }
  }

  @Test
  void aNodeThatArrivesMeanwhileStaysPhysical() {
    try (Rig rig = rig("exclusive")) {
      waitUntil(() -> metrics(rig).getFallbackEngaged() == 1);
      ObjectNode late = Json.object().put("do", "add_node").put("host", "late").put("rack", "/r");
      rig.step(late.put("memory_mib", 65_536).put("vcores", 64).put("gpus", 4));
      assertThat(metrics(rig).getNodesByHeight()).containsOnlyKeys("1");
      rig.hello();
      assertThat(metrics(rig).getNodesByHeight()).containsEntry("4", 2L);
    }
  }

  @Test
  void underWaitNothingIsGivenAndTheSilenceIsVisible() {
    try (Rig rig = rig("wait")) {
      rig.submit("j", "ann").ask("j", 2, 1);
      rig.submit("cpu", "ann").ask("cpu", 3, 0);
      waitUntil(() -> metrics(rig).getCoreState().equals("SILENT"));
      rig.settle();
      assertThat(rig.allocated("j")).isZero();
      assertThat(rig.allocated("cpu")).as("work without GPUs goes on").isEqualTo(3);
      assertThat(metrics(rig).getFallbackEngaged()).isZero();
      assertThat(metrics(rig).getCoreConnected()).isZero();
      assertThat(metrics(rig).getCoreStateMs()).isGreaterThanOrEqualTo(1000);
      assertThat(metrics(rig).getNodesByHeight()).containsOnlyKeys("4");
    }
  }
}
