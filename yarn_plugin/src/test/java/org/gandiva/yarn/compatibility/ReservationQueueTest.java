package org.gandiva.yarn.compatibility;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Collections;
import org.apache.hadoop.yarn.api.protocolrecords.GetNewReservationRequest;
import org.apache.hadoop.yarn.api.protocolrecords.ReservationSubmissionRequest;
import org.apache.hadoop.yarn.api.records.ReservationDefinition;
import org.apache.hadoop.yarn.api.records.ReservationId;
import org.apache.hadoop.yarn.api.records.ReservationRequest;
import org.apache.hadoop.yarn.api.records.ReservationRequestInterpreter;
import org.apache.hadoop.yarn.api.records.ReservationRequests;
import org.apache.hadoop.yarn.server.resourcemanager.ClientRMService;
import org.gandiva.yarn.ResourceVector;
import org.gandiva.yarn.replay.Act;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;

/** Issue row "reservation queues": queues that Hadoop's ReservationSystem makes in a plan queue. */
class ReservationQueueTest {
  private static final long HOUR_MS = 3_600_000;
  private static final long MINUTE_MS = 60_000; // So that it begins about now.

  private static Rig planned() {
    return Rig.gandiva(4)
        .with("yarn.resourcemanager.reservation-system.enable", "true")
        .with("yarn.scheduler.capacity.root.queues", "default,plan")
        .with("yarn.scheduler.capacity.root.default.capacity", "50")
        .with("yarn.scheduler.capacity.root.plan.capacity", "50")
        .with("yarn.scheduler.capacity.root.plan.reservable", "true")
        .start()
        .nodes(2, 4);
  }

  private static ReservationId reserve(Rig rig, int gpus) throws Exception {
    rig.context().getReservationSystem().synchronizePlan("root.plan", true);
    ClientRMService client = rig.context().getClientRMService();
    ReservationId id =
        client.getNewReservation(GetNewReservationRequest.newInstance()).getReservationId();
    long nowMs = System.currentTimeMillis();
    ReservationRequest containers =
        ReservationRequest.newInstance(ResourceVector.of(512, 1, 1), gpus, 1, HOUR_MS);
    ReservationDefinition definition =
        ReservationDefinition.newInstance(
            nowMs,
            nowMs + HOUR_MS + MINUTE_MS,
            ReservationRequests.newInstance(
                Collections.singletonList(containers), ReservationRequestInterpreter.R_ALL),
            "gpus");
    client.submitReservation(ReservationSubmissionRequest.newInstance(definition, "plan", id));
    rig.context().getReservationSystem().synchronizePlan("root.plan", true);
    return id;
  }

  @Test
  void anApplicationInAReservationIsPlacedByTheCore() throws Exception {
    try (Rig rig = planned()) {
      ReservationId id = reserve(rig, 2);
      assertThat(Act.becomes(() -> rig.anyScheduler().getQueue(id.toString()) != null)).isTrue();
      rig.step(Act.node("n3", 4, "")); // Hadoop sizes a new queue when the cluster next changes.
      rig.takeEvents();
      rig.step(Act.submit("j", "ann", "root.plan").put("reservation", id.toString()));
      assertThat(Act.becomes(() -> !rig.settle().events("am_started", "j").isEmpty())).isTrue();
      rig.ask("j", 2, 1);
      JsonNode told = Act.ofKind(rig.takeEvents(), "app_added").get(0);
      assertThat(told.get("queue").asText()).isEqualTo("root.plan." + id);
      assertThat(rig.settle().allocated("j")).isZero();
      assertThat(rig.commit("j", "n1", "n1").get("code").asText()).isEqualTo("OK");
      assertThat(rig.act("beat", "j").allocated("j")).isEqualTo(2);
      assertThat(rig.scheduler().ownErrors()).isZero();
    }
  }
}
