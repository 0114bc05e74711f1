package org.gandiva.yarn.compatibility;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.security.PrivilegedExceptionAction;
import java.util.List;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.api.protocolrecords.MoveApplicationAcrossQueuesRequest;
import org.apache.hadoop.yarn.api.protocolrecords.UpdateApplicationPriorityRequest;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.server.resourcemanager.ClientRMService;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.QueueMetrics;
import org.gandiva.yarn.replay.Act;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;

/** Issue rows about what users and masters change while an application waits or runs. */
class ApplicationChangesTest {
  private static Rig twoQueues() {
    return Rig.gandiva(4)
        .with("yarn.scheduler.capacity.root.queues", "a,b")
        .with("yarn.scheduler.capacity.root.a.capacity", "50")
        .with("yarn.scheduler.capacity.root.b.capacity", "50")
        .with("yarn.scheduler.capacity.root.b.maximum-application-lifetime", "-1")
        .with("yarn.cluster.max-application-priority", "10")
        .start()
        .nodes(2, 4);
  }

  private static ApplicationId id(Rig rig, String key) {
    return ApplicationAttemptId.fromString(rig.attempt(key)).getApplicationId();
  }

  private static void asAnn(Rig rig, Call call) {
    try {
      UserGroupInformation.createRemoteUser("ann")
          .doAs(
              (PrivilegedExceptionAction<Object>)
                  () -> call.on(rig.context().getClientRMService()));
    } catch (Exception e) {
      throw new AssertionError(e);
    }
    rig.settle();
  }

  /** What a client says. */
  private interface Call {
    Object on(ClientRMService service) throws Exception;
  }

  private static List<JsonNode> told(Rig rig) {
    return Act.ofKind(rig.takeEvents(), "asks");
  }

  @Test
  void asksAreLoweredAndWithdrawn() {
    try (Rig rig = twoQueues()) {
      rig.step(Act.submit("j", "ann", "a"));
      rig.takeEvents();
      rig.step(Act.ask("j", 1, 5, 1));
      assertThat(told(rig).get(0).at("/asks/0/count").asInt()).isEqualTo(5);
      rig.step(Act.ask("j", 1, 2, 1));
      assertThat(told(rig).get(0).at("/asks/0/count").asInt()).isEqualTo(2);
      assertThat(rig.commit("j", "n1", "n1", "n1").get("code").asText()).isEqualTo("ASK_GONE");
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isZero();
      rig.step(Act.ask("j", 1, 0, 1));
      assertThat(told(rig).get(0).get("asks")).isEmpty();
      assertThat(rig.commit("j", "n1").get("code").asText()).isEqualTo("ASK_GONE");
      assertThat(pendingGpuContainers(rig, "a")).isZero();
    }
  }

  @Test
  void aNewPriorityIsTold() {
    try (Rig rig = twoQueues()) {
      rig.step(Act.submit("j", "ann", "a"));
      rig.step(Act.ask("j", 1, 2, 1));
      rig.takeEvents();
      ApplicationId id = id(rig, "j");
      asAnn(
          rig,
          client ->
              client.updateApplicationPriority(
                  UpdateApplicationPriorityRequest.newInstance(id, Priority.newInstance(7))));
      assertThat(rig.context().getRMApps().get(id).getApplicationPriority().getPriority())
          .isEqualTo(7);
      assertThat(rig.act("beat", "j").takeEvents().get(0).get("app_priority").asInt()).isEqualTo(7);
      rig.hello();
      assertThat(rig.takeEvents().get(0).at("/apps/0/priority").asInt()).isEqualTo(7);
      assertThat(rig.commit("j", "n1", "n1").get("code").asText()).isEqualTo("OK");
    }
  }

  /** FACTS §2: asks held outside of the scheduler's table left +5 and −5 behind. */
  @Test
  void aMoveLeavesNoMetricBehind() {
    try (Rig rig = twoQueues()) {
      rig.step(Act.submit("j", "ann", "a"));
      rig.step(Act.ask("j", 1, 5, 1));
      rig.commit("j", "n1", "n1");
      rig.act("beat", "j").takeEvents();
      assertThat(pendingGpuContainers(rig, "a")).isEqualTo(3);
      ApplicationId id = id(rig, "j");
      asAnn(
          rig,
          client ->
              client.moveApplicationAcrossQueues(
                  MoveApplicationAcrossQueuesRequest.newInstance(id, "b")));
      List<JsonNode> moved = Act.ofKind(rig.takeEvents(), "app_moved");
      assertThat(moved.get(0).get("queue").asText()).isEqualTo("root.b");
      assertZero(rig, "a");
      assertThat(pendingGpuContainers(rig, "b")).isEqualTo(3);
      assertThat(rig.commit("j", "n2", "n2", "n2").get("code").asText()).isEqualTo("OK");
      rig.act("beat", "j").act("finish", "j").settle();
      assertZero(rig, "a");
      assertZero(rig, "b");
    }
  }

  @Test
  void killedWhileItWaits() {
    try (Rig rig = twoQueues()) {
      rig.step(Act.submit("j", "ann", "a"));
      rig.step(Act.ask("j", 1, 9, 1));
      rig.takeEvents();
      rig.act("kill", "j").settle();
      List<JsonNode> gone = Act.ofKind(rig.takeEvents(), "app_removed");
      assertThat(gone.get(0).get("final_state").asText()).isEqualTo("KILLED");
      assertThat(rig.commit("j", "n1").get("code").asText()).isEqualTo("ASK_GONE");
      assertZero(rig, "a");
    }
  }

  /** Hadoop's own monitor ends it, on the real clock. */
  @Test
  void aLifetimeEndsRunningAndWaitingContainers() throws Exception {
    try (Rig rig =
        Rig.gandiva(4)
            .with("yarn.resourcemanager.application-timeouts.monitor.interval-ms", "50")
            .start()
            .nodes(1, 4)) {
      rig.step(Act.submit("j", "ann", "default").put("lifetime_s", 1));
      rig.step(Act.ask("j", 1, 3, 1));
      assertThat(rig.commit("j", "n1", "n1").get("code").asText()).isEqualTo("OK");
      rig.act("beat", "j").takeEvents();
      assertThat(Act.becomes(() -> !rig.settle().events("app_finished", "j").isEmpty())).isTrue();
      assertThat(rig.events("app_finished", "j").get(0).get("rm_state").asText())
          .isEqualTo("KILLED");
      List<JsonNode> events = rig.takeEvents();
      assertThat(Act.ofKind(events, "container_completed")).hasSize(2);
      assertThat(Act.ofKind(events, "app_removed")).hasSize(1);
      assertZero(rig, "default");
    }
  }

  /** A GPU ask and a CPU ask of one application are two things. */
  @Test
  void cpuAsksOfTheSameApplicationAreStocks() {
    try (Rig rig = twoQueues()) {
      rig.step(Act.submit("j", "ann", "a"));
      rig.takeEvents();
      rig.step(Act.also(Act.ask("j", 1, 4, 1), 2, 3, 0));
      rig.settle();
      assertThat(rig.allocated("j")).isEqualTo(3);
      assertThat(told(rig).get(0).get("asks")).hasSize(1);
      assertThat(rig.commit("j", "n1", "n1", "n2", "n2").get("code").asText()).isEqualTo("OK");
      assertThat(rig.act("beat", "j").allocated("j")).isEqualTo(7);
    }
  }

  private static QueueMetrics metrics(Rig rig, String queue) {
    return rig.anyScheduler().getQueue(queue).getMetrics();
  }

  private static int pendingGpuContainers(Rig rig, String queue) {
    return metrics(rig, queue).getPendingContainers();
  }

  private static void assertZero(Rig rig, String queue) {
    QueueMetrics metrics = metrics(rig, queue);
    assertThat(metrics.getPendingContainers()).as(queue + " pending").isZero();
    assertThat(metrics.getPendingResources().toString()).doesNotMatch(".*: ?[1-9].*");
    assertThat(metrics.getPendingMB()).isZero();
    assertThat(metrics.getAllocatedContainers()).as(queue + " allocated").isZero();
    assertThat(metrics.getAllocatedMB()).isZero();
    assertThat(metrics.getActiveUsers()).isZero();
    assertThat(rig.anyScheduler().getQueue(queue).getQueueResourceUsage().getUsed().getResources())
        .allMatch(amount -> amount.getValue() == 0);
    assertThat(
            rig.anyScheduler().getQueue(queue).getQueueResourceUsage().getPending().getResources())
        .allMatch(amount -> amount.getValue() == 0);
  }
}
