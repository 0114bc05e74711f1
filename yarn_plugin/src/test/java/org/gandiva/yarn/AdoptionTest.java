package org.gandiva.yarn;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.replay.Act;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;

/** DESIGN §4: observe, place, full, by queue and partition, without a restart. */
class AdoptionTest {
  private static final String MODE = GandivaConfiguration.MODE;
  private static final String QUEUES = GandivaConfiguration.QUEUES;
  private static final String WITHOUT_AGENT = GandivaConfiguration.OVERSUBSCRIBE_WITHOUT_AGENT;

  static Rig twoQueues(Rig rig) {
    return rig.with("yarn.scheduler.capacity.root.queues", "a,b")
        .with("yarn.scheduler.capacity.root.a.capacity", "50")
        .with("yarn.scheduler.capacity.root.a.maximum-capacity", "100")
        .with("yarn.scheduler.capacity.root.b.capacity", "50")
        .with("yarn.scheduler.capacity.root.b.maximum-capacity", "100");
  }

  private static String code(JsonNode result) {
    return result.get("code").asText();
  }

  private static int schedulable(Rig rig, String host) {
    return rig.node(host).at("/scheduler_total/gpus").asInt();
  }

  /** The same steps, jobs with and without GPUs, waits, ends and a lost node. */
  private static List<String> steps(Rig unstarted) {
    List<String> said = new ArrayList<>();
    try (Rig rig = twoQueues(unstarted).start().nodes(3, 4)) {
      for (int job = 0; job < 14; job++) {
        String key = "j" + job;
        rig.submitTo(job % 2 == 0 ? "a" : "b", key, "u" + job % 3);
        rig.ask(key, 1 + job % 3, job % 4);
        if (job > 3) {
          rig.act("finish", "j" + (job - 4));
        }
        said.add(rig.query("nodes", "").toString());
      }
      rig.settle();
      for (int job = 0; job < 14; job++) {
        said.add(rig.events("allocated", "j" + job).toString());
        said.add(rig.events("completed", "j" + job).toString());
      }
      said.add(rig.query("queues", "").toString());
    }
    return said;
  }

  /** Issue: in observe the order of allocations is the stock scheduler's, to the byte. */
  @Test
  void observeAllocatesAsStockDoes() {
    List<String> stock = steps(Rig.stock());
    assertThat(steps(Rig.gandiva(4).with(MODE, "observe"))).isEqualTo(stock);
    assertThat(stock.toString()).contains("\"gpus\":3");
  }

  @Test
  void inObserveTheCoreIsToldOfContainersAndItsCommitsAreRefused() {
    try (Rig rig = Rig.gandiva(4).with(MODE, "observe").start().nodes(1, 4)) {
      rig.takeEvents();
      rig.submit("j", "ann").ask("j", 6, 1).settle();
      assertThat(rig.allocated("j")).isEqualTo(4);
      assertThat(schedulable(rig, "n1")).isEqualTo(4);
      List<JsonNode> told = rig.takeEvents("container_allocated");
      assertThat(told).hasSize(4);
      JsonNode first = told.get(0);
      assertThat(first.get("container").asText()).startsWith("container_");
      assertThat(first.get("attempt").asText()).isEqualTo(rig.attempt("j"));
      assertThat(first.get("node").asText()).isEqualTo("n1:1");
      assertThat(first.get("gpus").asInt()).isEqualTo(1);
      assertThat(first.get("label").asText()).isEmpty();
      assertThat(code(rig.commit("j", "n1"))).isEqualTo("MODE");
      assertThat(code(rig.setHeight("n1", 2))).isEqualTo("MODE");
    }
  }

  @Test
  void theModeIsRaisedAndLoweredWithoutAnythingBeingKilled() throws IOException {
    try (Rig rig = Rig.gandiva(2).with(MODE, "observe").start().nodes(1, 4)) {
      rig.submit("j", "ann").ask("j", 10, 1).settle();
      assertThat(rig.allocated("j")).isEqualTo(4);
      rig.refresh(MODE, "place");
      assertThat(schedulable(rig, "n1")).isEqualTo(4);
      assertThat(code(rig.commit("j", "n1"))).isEqualTo("NO_ROOM");
      rig.refresh(MODE, "full");
      assertThat(schedulable(rig, "n1")).isEqualTo(8);
      assertThat(code(rig.commit("j", "n1", "n1", "n1"))).isEqualTo("OK");
      rig.act("beat", "j").refresh(MODE, "observe");
      assertThat(schedulable(rig, "n1")).as("what is held, and none to give").isEqualTo(7);
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isEqualTo(7);
      assertThat(rig.allocated("j")).isEqualTo(7);
      assertThat(rig.events("completed", "j")).isEmpty();
      assertThat(rig.events("preempted", "j")).isEmpty();
    }
  }

  /** A reservation that stock code made in observe must not block its node in place. */
  @Test
  void stockReservationsGoWhenTheirAsksAreAdopted() throws IOException {
    try (Rig rig = Rig.gandiva(2).with(MODE, "observe").start().nodes(3, 4)) {
      rig.submit("large", "ann").ask("large", 4, 3).settle();
      rig.submit("small", "ann").ask("small", 3, 1);
      assertThat(rig.query("queues", "").at("/queues/0/reserved_containers").asInt()).isEqualTo(1);
      rig.refresh(MODE, "place");
      assertThat(rig.query("queues", "").at("/queues/0/reserved_containers").asInt()).isZero();
      assertThat(code(rig.commit("small", "n1", "n2", "n3"))).isEqualTo("OK");
    }
  }

  @Test
  void onlyAdoptedQueuesAreTheCores() throws IOException {
    try (Rig rig = twoQueues(Rig.gandiva(4).with(QUEUES, "root.a")).start().nodes(1, 4)) {
      rig.submitTo("a", "ours", "ann").ask("ours", 8, 1);
      rig.submitTo("b", "theirs", "bob").ask("theirs", 8, 1).settle();
      // Four physical GPUs and not a slot more, although the scheduler sees sixteen.
      assertThat(schedulable(rig, "n1")).isEqualTo(16);
      assertThat(rig.allocated("theirs")).isEqualTo(4);
      assertThat(rig.allocated("ours")).isZero();
      assertThat(code(rig.commit("theirs", "n1"))).isEqualTo("NOT_ADOPTED");
      assertThat(code(rig.commit("ours", "n1", "n1"))).isEqualTo("OK");
      // A plain ask behind the one that waits for GPUs gets its turn on the same node.
      rig.submitTo("b", "cpu", "bob").ask("cpu", 2, 0).settle();
      assertThat(rig.allocated("cpu")).isEqualTo(2);
      assertThat(rig.scheduler().foreignGpusRefused()).isZero();
    }
  }

  /** An answer OK says that the node has the height. */
  @Test
  void aNodeThatIsLeftToStockCodeGetsNoHeight() {
    try (Rig rig =
        Rig.gandiva(3)
            .with(GandivaConfiguration.OVERSUBSCRIBE_WITHOUT_AGENT, "false")
            .with(GandivaConfiguration.PARTITIONS, "gpu")
            .start()
            .nodes(1, 4)) {
      assertThat(code(rig.setHeight("n1", 2))).isEqualTo("NOT_ADOPTED");
      assertThat(code(rig.setHeight("n1", 1))).isEqualTo("OK");
      assertThat(rig.node("n1").at("/scheduler_total/gpus").asInt()).isEqualTo(4);
    }
  }

  @Test
  void aHeightIsSetByTheCoreWhereNobodyTrustsTheNode() {
    try (Rig rig = Rig.gandiva(3).with(WITHOUT_AGENT, "false").start().nodes(2, 4)) {
      rig.takeEvents();
      rig.submit("j", "ann").ask("j", 9, 1);
      assertThat(schedulable(rig, "n1")).isEqualTo(4);
      assertThat(code(rig.setHeight("n1", 2))).isEqualTo("OK");
      assertThat(schedulable(rig, "n1")).isEqualTo(8);
      assertThat(schedulable(rig, "n2")).isEqualTo(4);
      List<JsonNode> updates = rig.takeEvents("node_updated");
      assertThat(updates).hasSize(1);
      assertThat(updates.get(0).get("schedulable_gpus").asInt()).isEqualTo(8);
      assertThat(updates.get(0).get("gpus").asInt()).isEqualTo(4);
      assertThat(code(rig.commit("j", "n1", "n1", "n1", "n1", "n1"))).isEqualTo("OK");
      assertThat(code(rig.setHeight("n1", 1))).isEqualTo("OK");
      assertThat(schedulable(rig, "n1")).as("what is held, and none to give").isEqualTo(5);
      assertThat(code(rig.commit("j", "n1"))).isEqualTo("NO_ROOM");
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isEqualTo(5);
      assertThat(code(rig.setHeight("n9", 1))).isEqualTo("NODE_STATE");
      assertThat(code(rig.setHeight("n1", 4))).isEqualTo("BAD_REQUEST");
      assertThat(code(rig.setHeight("n1", 0))).isEqualTo("BAD_REQUEST");
    }
  }

  @Test
  void aBadRefreshKeepsWhatWasInForceAndSaysWhyInOneLine() throws IOException {
    try (Rig rig = twoQueues(Rig.gandiva(4)).start().nodes(1, 4)) {
      assertThatThrownBy(() -> rig.refresh(QUEUES, "root.aa"))
          .isInstanceOf(IOException.class)
          .hasMessage(
              "yarn.scheduler.gandiva.queues: found \"root.aa\", expected a queue: the nearest is"
                  + " root.a; what was in force before stays in force");
      assertThatThrownBy(() -> rig.refresh(MODE, "off")).hasMessageContaining("expected observe");
      assertThatThrownBy(() -> rig.refresh(GandivaConfiguration.CORE_FALLBACK, "hope"))
          .hasMessageContaining("expected wait or exclusive");
      assertThat(schedulable(rig, "n1")).isEqualTo(16);
      rig.refresh(MODE, "place");
      assertThat(schedulable(rig, "n1")).isEqualTo(4);
    }
  }

  @Test
  void aBadValueAtTheStartStopsTheResourceManager() {
    assertThatThrownBy(() -> Rig.gandiva(4).with(QUEUES, "root.x").start())
        .hasMessageContaining("found \\\"root.x\\\", expected a queue: the nearest is root");
  }

  /** A queue of stock's own beside adopted ones is bound by devices, not by slots. */
  @Test
  void aQueueThatIsNotAdoptedKeepsItsMaximumOfDevices() {
    Rig unstarted =
        twoQueues(Rig.gandiva(4).with(QUEUES, "root.a"))
            .with("yarn.scheduler.capacity.root.b.maximum-capacity", "50");
    try (Rig rig = unstarted.start().nodes(2, 4)) {
      rig.submitTo("b", "theirs", "bob").ask("theirs", 8, 1).settle();
      assertThat(rig.allocated("theirs")).isEqualTo(4);
      rig.submitTo("b", "cpu", "bob").ask("cpu", 2, 0).settle();
      assertThat(rig.allocated("cpu")).isEqualTo(2);
      rig.step(Json.object().put("do", "remove_node").put("host", "n2"));
      rig.settle();
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isLessThanOrEqualTo(4);
    }
  }

  /** The same where the maximum is an amount, which the scheduler holds four times as large. */
  @Test
  void whileTheCoreIsAwayAmountsOfDevicesHold() {
    Rig unstarted =
        Rig.gandiva(4)
            .with(GandivaConfiguration.CORE_FALLBACK, "exclusive")
            .with("yarn.scheduler.capacity.root.queues", "a,b")
            .with("yarn.scheduler.capacity.root.a.capacity", "[memory=1024,vcores=8,yarn.io/gpu=2]")
            .with(
                "yarn.scheduler.capacity.root.a.maximum-capacity",
                "[memory=65536,vcores=64,yarn.io/gpu=3]")
            .with("yarn.scheduler.capacity.root.a.user-limit-factor", "10")
            .with(
                "yarn.scheduler.capacity.root.b.capacity", "[memory=1024,vcores=8,yarn.io/gpu=2]");
    try (Rig rig = unstarted.start().nodes(2, 4)) {
      rig.submitTo("a", "j", "ann").ask("j", 9, 1);
      assertThat(code(rig.commit("j", "n1"))).isEqualTo("OK");
      rig.act("beat", "j");
      CoreSilentTest.waitUntil(() -> rig.scheduler().metrics().getFallbackEngaged() == 1);
      assertThat(schedulable(rig, "n1")).isEqualTo(4);
      rig.settle();
      assertThat(rig.allocated("j")).isEqualTo(3);
      rig.hello();
      assertThat(schedulable(rig, "n1")).isEqualTo(16);
      assertThat(rig.takeEvents("resync").get(0).at("/apps/0/containers")).hasSize(3);
      assertThat(code(rig.commit("j", "n2"))).isEqualTo("OK");
      rig.settle();
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isLessThanOrEqualTo(3);
    }
  }

  /** GPUs on top of a live container: an error where adopted, stock's business elsewhere. */
  @Test
  void stockMayEnlargeAContainerWithinTheDevicesOfItsNode() {
    try (Rig rig = Rig.gandiva(2).with(MODE, "observe").start().nodes(1, 4)) {
      rig.submit("j", "ann").ask("j", 1, 1).settle();
      String id = rig.events("allocated", "j").get(0).at("/containers/0/container").asText();
      rig.takeEvents();
      rig.step(Act.update("j", id, "INCREASE_RESOURCE", 256, 3));
      rig.settle();
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isEqualTo(3);
      assertThat(rig.takeEvents("container_allocated")).isEmpty();
    }
  }
}
