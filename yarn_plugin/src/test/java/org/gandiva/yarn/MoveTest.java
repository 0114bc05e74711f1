package org.gandiva.yarn;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.exceptions.YarnException;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;

/** Moves between a queue that is the core's and one that is not: asks and containers stay right. */
class MoveTest {
  private static void move(Rig rig, String key, String queue) throws YarnException {
    rig.scheduler()
        .moveApplication(
            ApplicationAttemptId.fromString(rig.attempt(key)).getApplicationId(), queue);
    rig.settle();
  }

  private static JsonNode queue(Rig rig, String path) {
    for (JsonNode queue : rig.query("queues", "").get("queues")) {
      if (queue.get("queue").asText().equals(path)) {
        return queue;
      }
    }
    throw new AssertionError(path);
  }

  @Test
  void asksFollowTheirQueueBothWays() throws YarnException {
    Rig unstarted = AdoptionTest.twoQueues(Rig.gandiva(2)).with(GandivaConfiguration.QUEUES, "a");
    try (Rig rig = unstarted.start().nodes(2, 4)) {
      rig.submitTo("a", "j", "ann").ask("j", 6, 1).settle();
      assertThat(rig.allocated("j")).isZero();
      assertThat(rig.commit("j", "n1").get("code").asText()).isEqualTo("OK");
      rig.act("beat", "j").takeEvents();
      move(rig, "j", "b");
      assertThat(rig.allocated("j")).isEqualTo(6);
      assertThat(rig.takeEvents())
          .anyMatch(
              event ->
                  event.get("kind").asText().equals("app_moved")
                      && event.get("queue").asText().equals("root.b"))
          .filteredOn(event -> event.get("kind").asText().equals("container_allocated"))
          .hasSize(5);
      rig.ask("j", 3, 1).settle();
      assertThat(rig.allocated("j")).isEqualTo(8);
      assertThat(queue(rig, "root.b").get("pending_containers").asInt()).isEqualTo(1);
      move(rig, "j", "a");
      assertThat(queue(rig, "root.b").get("pending_containers").asInt()).isZero();
      assertThat(queue(rig, "root.b").get("allocated_containers").asInt()).isZero();
      assertThat(queue(rig, "root.a").get("pending_containers").asInt()).isEqualTo(1);
      assertThat(queue(rig, "root.a").get("allocated_containers").asInt()).isEqualTo(9);
      assertThat(rig.commit("j", "n2").get("code").asText()).isEqualTo("OK");
      rig.act("beat", "j").act("finish", "j");
      for (String path : new String[] {"root.a", "root.b", "root"}) {
        assertThat(queue(rig, path).get("pending_containers").asInt()).isZero();
        assertThat(queue(rig, path).get("allocated_containers").asInt()).isZero();
        assertThat(queue(rig, path).get("reserved_containers").asInt()).isZero();
      }
    }
  }
}
