package org.gandiva.yarn.compatibility;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.security.PrivilegedExceptionAction;
import java.util.Collections;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateRequest;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ExecutionType;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.server.api.protocolrecords.DistributedSchedulingAllocateRequest;
import org.apache.hadoop.yarn.server.resourcemanager.OpportunisticContainerAllocatorAMService;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttempt;
import org.apache.hadoop.yarn.util.Records;
import org.gandiva.yarn.ResourceVector;
import org.gandiva.yarn.replay.Act;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Issue row "opportunistic containers": no scheduler is asked for them. */
class OpportunisticTest {
  private static final long REMOTE_ID = 99;

  private static Rig allocating(String centrally) {
    return Rig.gandiva(4)
        .with("yarn.resourcemanager.opportunistic-container-allocation.enabled", centrally)
        .start()
        .nodes(1, 4);
  }

  @ParameterizedTest
  @ValueSource(strings = {"true", "false"})
  void withGpusTheyAreRefusedByName(String centrally) {
    try (Rig rig = allocating(centrally)) {
      rig.submit("j", "ann");
      rig.step(Act.where(Act.ask("j", 1, 9, 1), "execution_type", "OPPORTUNISTIC"));
      rig.settle().act("beat", "j");
      assertThat(rig.events("ask_refused", "j").get(0).get("diagnostics").asText())
          .isEqualTo(
              "OPPORTUNISTIC containers with yarn.io/gpu are not supported by Gandiva: ask for"
                  + " GUARANTEED ones");
      assertThat(rig.allocated("j")).isZero();
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isZero();
    }
  }

  /**
   * Distributed scheduling: a NodeManager gave the container before the ResourceManager heard of
   * it. It is in no book, so the core's containers find all of the node; the agent binds no device
   * to it.
   */
  @Test
  void whatANodeManagerGaveIsInNoBook() throws Exception {
    try (Rig rig = allocating("true")) {
      rig.submit("j", "ann").takeEvents();
      ContainerId id = reported(rig, rig.attempt("j"));
      assertThat(rig.scheduler().getRMContainer(id).getExecutionType())
          .isEqualTo(ExecutionType.OPPORTUNISTIC);
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isZero();
      rig.hello();
      JsonNode app = rig.takeEvents().get(0).at("/apps/0");
      assertThat(app.get("containers")).isEmpty();
      rig.act("kill", "j").settle();
      assertThat(Act.ofKind(rig.takeEvents(), "container_completed")).isEmpty();
      assertThat(rig.scheduler().ownErrors()).isZero();
    }
  }

  @Test
  void whatANodeManagerGaveIsNotPromoted() throws Exception {
    try (Rig rig = allocating("true")) {
      rig.submit("j", "ann");
      ContainerId id = reported(rig, rig.attempt("j"));
      rig.act("beat", "j"); // The NodeManager's call counted as the master's: this one catches up.
      rig.step(Act.update("j", id.toString(), "PROMOTE_EXECUTION_TYPE", 256, 9));
      assertThat(rig.events("update_refused", "j").get(0).get("diagnostics").asText())
          .contains("cannot be promoted");
      rig.settle();
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isZero();
    }
  }

  /** What a NodeManager's own scheduler tells; it has the master's token. */
  private static ContainerId reported(Rig rig, String attempt) throws Exception {
    ApplicationAttemptId attemptId = ApplicationAttemptId.fromString(attempt);
    ContainerId id = ContainerId.newContainerId(attemptId, REMOTE_ID);
    Container given =
        Container.newInstance(
            id,
            NodeId.newInstance("n1", 1),
            "n1:8042",
            ResourceVector.of(256, 1, 9),
            Priority.newInstance(5),
            null,
            ExecutionType.OPPORTUNISTIC);
    DistributedSchedulingAllocateRequest request =
        Records.newRecord(DistributedSchedulingAllocateRequest.class);
    request.setAllocatedContainers(Collections.singletonList(given));
    request.setAllocateRequest(AllocateRequest.newBuilder().responseId(0).build());
    RMAppAttempt known =
        rig.context().getRMApps().get(attemptId.getApplicationId()).getCurrentAppAttempt();
    UserGroupInformation master = UserGroupInformation.createRemoteUser(attempt);
    master.addTokenIdentifier(known.getAMRMToken().decodeIdentifier());
    OpportunisticContainerAllocatorAMService service =
        (OpportunisticContainerAllocatorAMService) rig.context().getApplicationMasterService();
    master.doAs(
        (PrivilegedExceptionAction<Object>)
            () -> service.allocateForDistributedScheduling(request));
    return id;
  }
}
