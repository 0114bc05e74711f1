package org.gandiva.yarn.compatibility;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.ContainerExpiredSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeUpdateSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.SchedulerEvent;
import org.gandiva.yarn.GandivaScheduler;
import org.gandiva.yarn.ResourceVector;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.replay.Act;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Cases A01, A04, A08 and A11: what went wrong in real clusters, with the values stated there. */
class HadoopCasesTest {
  private static final NodeId N1 = NodeId.newInstance("n1", 1);

  private static Rig arm(String name) {
    return name.equals("stock") ? Rig.stock() : Rig.gandiva(4);
  }

  /** A01: the maximum in the register reply has GPUs; 2 of 4 are granted, 5 are refused by name. */
  @ParameterizedTest
  @ValueSource(strings = {"stock", "gandiva"})
  void anAskAboveTheNodeIsRefusedAndTheApplicationGoesOn(String name) {
    try (Rig rig = arm(name).start()) {
      rig.step(Act.node("n1", 4, "").put("memory_mib", 8192).put("vcores", 8)).size();
      rig.submit("j", "ann");
      JsonNode maximum = rig.query("app_diagnostics", "j").get("maximum_capability");
      assertThat(maximum.get("gpus").asLong()).isGreaterThanOrEqualTo(4);
      rig.step(sized("j", 1024, 5));
      String said = rig.events("ask_refused", "j").get(0).get("diagnostics").asText();
      assertThat(said).contains("yarn.io/gpu", "5");
      assertThat(rig.query("app_diagnostics", "j").get("diagnostics").asText()).contains("5");
      rig.step(sized("j", 1024, 2));
      if (name.equals("gandiva")) {
        assertThat(maximum.get("gpus").asLong()).isEqualTo(4);
        assertThat(rig.apply(commitOf("j", rig, 1024, 2, "n1")).get("code").asText())
            .isEqualTo("OK");
        rig.act("beat", "j");
      }
      JsonNode given = rig.events("allocated", "j").get(0).at("/containers/0");
      assertThat(given.get("gpus").asInt()).isEqualTo(2);
    }
  }

  private static ObjectNode sized(String key, int memoryMib, int gpus) {
    ObjectNode action = Act.ask(key, 1, 1, gpus);
    ((ObjectNode) action.at("/asks/0")).put("memory_mib", memoryMib);
    return action;
  }

  private static ObjectNode commitOf(String key, Rig rig, int memoryMib, int gpus, String host) {
    ObjectNode effect = Act.commit(rig.attempt(key), 1, gpus, host);
    ((ObjectNode) effect.at("/containers/0")).put("memory_mib", memoryMib);
    return effect;
  }

  private static long reservations(Rig rig) {
    return rig.anyScheduler().getAllNodes().stream()
        .filter(node -> node.getReservedContainer() != null)
        .count();
  }

  /**
   * A04: a type that nobody has; what waits starts where room comes first, and reserves nothing.
   */
  @Test
  void aDeclaredTypeOfWhichThereIsNoneChangesNothing(@TempDir Path folder) throws Exception {
    String with = playedInItsOwnJvm(folder, "yarn.io/gpu,acme.com/fpga");
    assertThat(with.split("\n"))
        .containsExactly(
            "x waits: a@\"n1:1\" b@\"n2:1\" reserved@n1 reserved_gpus=4",
            "b ended: a@\"n1:1\" b@\"n2:1\" x@\"n2:1\" reserved_gpus=0",
            "a ended: a@\"n1:1\" b@\"n2:1\" x@\"n2:1\" y@\"n1:1\" reserved_gpus=0",
            "OK",
            "OK",
            "x waits: a@\"n1:1\" b@\"n2:1\" reserved_gpus=0",
            "OK",
            "b ended: a@\"n1:1\" b@\"n2:1\" x@\"n2:1\" reserved_gpus=0",
            "OK",
            "a ended: a@\"n1:1\" b@\"n2:1\" x@\"n2:1\" y@\"n1:1\" reserved_gpus=0");
    assertThat(playedInItsOwnJvm(folder, "yarn.io/gpu")).isEqualTo(with);
  }

  private static String playedInItsOwnJvm(Path folder, String types) throws Exception {
    Path log = folder.resolve("log");
    Process played =
        new ProcessBuilder(
                System.getProperty("java.home") + "/bin/java",
                "--add-opens=java.base/java.lang=ALL-UNNAMED",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                System.getProperty(
                    "surefire.test.class.path", System.getProperty("java.class.path")),
                NobodysDevices.class.getName(),
                types)
            .redirectOutput(log.toFile())
            .redirectError(folder.resolve("errors").toFile())
            .start();
    assertThat(played.waitFor()).isZero();
    return new String(Files.readAllBytes(log), StandardCharsets.UTF_8);
  }

  /** A08: late events about a node that left, and about what was reserved there. */
  @ParameterizedTest
  @CsvSource({"stock,true", "stock,false", "gandiva,true", "gandiva,false"})
  void lateEventsOfALostNodeHarmNobody(String name, boolean expiresFirst) {
    try (Rig rig = arm(name).start()) {
      rig.step(Act.node("m0", 0, "").put("memory_mib", 4096));
      rig.step(Act.node("n1", 4, ""));
      rig.step(Act.node("n3", 3, "")); // Stock reserves nothing beyond a queue's limit.
      rig.step(Act.node("n4", 3, ""));
      rig.submit("a", "ann").submit("x", "ann");
      ContainerId waiting = reserveOrGive(rig);
      RMNode gone = rig.context().getRMNodes().get(N1);
      rig.step(Json.object().put("do", "remove_node").put("host", "n1"));
      SchedulerEvent expired = new ContainerExpiredSchedulerEvent(waiting);
      SchedulerEvent update = new NodeUpdateSchedulerEvent(gone);
      rig.anyScheduler().handle(expiresFirst ? expired : update);
      rig.anyScheduler().handle(expiresFirst ? update : expired);
      assertThat(rig.anyScheduler().getNode(N1)).isNull();
      assertThat(reservations(rig)).isZero();
      assertThat(rig.anyScheduler().getRootQueueMetrics().getReservedContainers()).isZero();
      assertThat(
              ResourceVector.gpus(rig.anyScheduler().getRootQueueMetrics().getAllocatedResources()))
          .isZero();
      rig.step(Act.node("n2", 4, ""));
      rig.submit("y", "ann").ask("y", 1, 0);
      assertThat(rig.allocated("y")).isEqualTo(1);
      if (name.equals("gandiva")) {
        assertThat(rig.scheduler().ownErrors()).isZero();
        rig.step(sized("x", 1024, 4));
        assertThat(rig.apply(commitOf("x", rig, 1024, 4, "n2")).get("code").asText())
            .isEqualTo("OK");
      }
    }
  }

  /** Stock reserves; under Gandiva the same is a container that its master has not fetched. */
  private static ContainerId reserveOrGive(Rig rig) {
    if (rig.anyScheduler() instanceof GandivaScheduler) {
      rig.step(sized("x", 1024, 4));
      String id = rig.apply(commitOf("x", rig, 1024, 4, "n1")).at("/containers/0").asText();
      return ContainerId.fromString(id);
    }
    rig.step(sized("a", 1024, 4));
    rig.step(sized("x", 1024, 4));
    rig.settle();
    return rig.anyScheduler().getNode(N1).getReservedContainer().getContainerId();
  }

  /** A11: 1536 of 3072 MiB used, 2048 asked: the second master waits, and is told all of it. */
  @ParameterizedTest
  @ValueSource(strings = {"stock", "gandiva"})
  void aMasterBeyondTheLimitWaitsAndIsToldWhy(String name) {
    try (Rig rig = limited(name, 12_288)) {
      rig.step(Act.submit("a", "ann", "default").put("am_memory_mib", 1536));
      rig.step(Act.submit("b", "ann", "default").put("am_memory_mib", 2048));
      assertThat(rig.events("am_started", "a")).hasSize(1);
      assertThat(rig.events("am_started", "b")).isEmpty();
      assertThat(rig.query("app_diagnostics", "b").get("diagnostics").asText())
          .contains("Queue's AM resource limit exceeded")
          .contains("AM Resource Request = <memory:2048")
          .contains("Queue Resource Limit for AM = <memory:3072")
          .contains("Queue AM Resource Usage = <memory:1536");
    }
  }

  /** A11: with nothing active one master starts even above the limit, and a second one waits. */
  @ParameterizedTest
  @ValueSource(strings = {"stock", "gandiva"})
  void theFirstMasterStartsEvenAboveTheLimit(String name) {
    try (Rig rig = limited(name, 4096)) {
      rig.step(Act.submit("a", "ann", "default").put("am_memory_mib", 2048));
      rig.step(Act.submit("b", "ann", "default").put("am_memory_mib", 2048));
      assertThat(rig.events("am_started", "a")).hasSize(1);
      assertThat(rig.events("am_started", "b")).isEmpty();
      assertThat(rig.query("app_diagnostics", "b").get("diagnostics").asText())
          .contains("Queue Resource Limit for AM = <memory:1024");
    }
  }

  private static Rig limited(String name, int memoryMib) {
    Rig rig = arm(name).with("yarn.scheduler.capacity.maximum-am-resource-percent", "0.25").start();
    rig.step(Act.node("n1", 4, "").put("memory_mib", memoryMib));
    return rig;
  }
}
