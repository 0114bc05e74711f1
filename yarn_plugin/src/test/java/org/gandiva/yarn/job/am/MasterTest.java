package org.gandiva.yarn.job.am;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterResponse;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.client.api.AMRMClient.ContainerRequest;
import org.apache.hadoop.yarn.client.api.async.AMRMClientAsync;
import org.apache.hadoop.yarn.client.api.async.NMClientAsync;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.util.Records;
import org.gandiva.yarn.job.JobSpec;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A master between YARN's clients, which are real and talk to nobody. */
class MasterTest {
  private static final String FIRST = "container_1_0001_01_000002";
  private static final String SECOND = "container_1_0001_01_000003";

  @TempDir Path folder;

  private Master master;

  /** An earlier attempt left two workers that had met; YARN tells of the first at once. */
  @BeforeEach
  void takeOver() throws Exception {
    JobSpec spec =
        GangTest.spec("gandiva.job.worker.instances", "2", "gandiva.job.worker.gpus", "0");
    StateFile state =
        new StateFile(
            FileSystem.getLocal(new Configuration()),
            new org.apache.hadoop.fs.Path(folder.resolve("state.json").toUri()));
    Gang left = new Gang(spec, new GangTest.Script());
    left.start();
    left.allocated(spec.types().get(0), new Place(FIRST, "h"));
    left.allocated(spec.types().get(0), new Place(SECOND, "h"));
    left.met(1);
    state.write(left);
    master = new Master(spec, state, new Object());
    AMRMClientAsync<ContainerRequest> resourceManager =
        AMRMClientAsync.createAMRMClientAsync(1000, new FromResourceManager(master));
    resourceManager.init(new YarnConfiguration());
    NMClientAsync nodes = NMClientAsync.createNMClientAsync(new FromNodeManagers(master));
    RegisterApplicationMasterResponse registered =
        Records.newRecord(RegisterApplicationMasterResponse.class);
    registered.setContainersFromPreviousAttempts(Collections.singletonList(container(FIRST)));
    master.start(resourceManager, nodes, null, registered);
  }

  private static Container container(String id) {
    Container container = Records.newRecord(Container.class);
    container.setId(ContainerId.fromString(id));
    container.setNodeId(NodeId.newInstance("h", 1));
    return container;
  }

  @Test
  void aContainerOfANodeThatComesBackLateIsNotLost() {
    master.foundAgain(Collections.singletonList(container(SECOND)));
    master.giveUp();
    assertThat(master.gang().containers()).containsExactly(FIRST, SECOND);
    assertThat(master.gang().restarts()).isZero();
  }

  @Test
  void oneThatNobodyTellsOfStartsTheGangAgainAndIsNobodysAfterwards() {
    master.giveUp();
    assertThat(master.gang().restarts()).isEqualTo(1);
    assertThat(master.gang().containers()).isEmpty();
    master.foundAgain(Arrays.asList(container(SECOND)));
    assertThat(master.gang().has(SECOND)).isFalse();
    master.giveUp();
    assertThat(master.gang().restarts()).as("each is given up once").isEqualTo(1);
  }
}
