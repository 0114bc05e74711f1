package org.gandiva.yarn;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Collections;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ExecutionType;
import org.apache.hadoop.yarn.api.records.ExecutionTypeRequest;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.ResourceSizing;
import org.apache.hadoop.yarn.api.records.SchedulingRequest;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerApp;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;

class GuardTest {
  private static SchedulingRequest gpuRequest(int gpus) {
    return SchedulingRequest.newBuilder()
        .priority(Priority.newInstance(2))
        .allocationRequestId(7)
        .allocationTags(Collections.emptySet())
        .executionType(ExecutionTypeRequest.newInstance(ExecutionType.GUARANTEED))
        .resourceSizing(ResourceSizing.newInstance(1, ResourceVector.of(256, 1, gpus)))
        .build();
  }

  /** The placement processor commits without asking the allocator: the guard is what stops it. */
  @Test
  void thePlacementProcessorGetsNoInflatedGpus() {
    try (Rig rig = Rig.gandiva(4).start().nodes(1, 4)) {
      rig.submit("j", "ann").takeEvents();
      FiCaSchedulerApp app =
          rig.scheduler().getApplicationAttempt(ApplicationAttemptId.fromString(rig.attempt("j")));
      boolean given =
          rig.scheduler()
              .attemptAllocationOnNode(
                  app, gpuRequest(1), rig.scheduler().getNode(NodeId.newInstance("n1", 1)));
      assertThat(given).isFalse();
      assertThat(rig.scheduler().foreignGpusRefused()).isEqualTo(1);
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isZero();
      assertThat(rig.takeEvents())
          .anyMatch(event -> event.get("kind").asText().equals("foreign_gpu_refused"));
    }
  }
}
