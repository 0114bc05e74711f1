package org.gandiva.yarn.compatibility;

import static org.assertj.core.api.Assertions.assertThat;

import org.gandiva.yarn.replay.Act;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Issue rows "asynchronous scheduling in the site's file" and "multi-node placement policies". */
class AsynchronousSchedulingTest {
  private static final String ASYNC = "yarn.scheduler.capacity.schedule-asynchronously.";
  private static final String SORTING = "yarn.scheduler.capacity.multi-node-sorting.policy";
  private static final int ROUNDS = 30;

  private static Rig asynchronous(int threads) {
    return Rig.gandiva(4)
        .with(ASYNC + "enable", "true")
        .with(ASYNC + "maximum-threads", Integer.toString(threads))
        .with(ASYNC + "scheduling-interval-ms", "1");
  }

  /** Hadoop sorts the nodes itself before it looks at one. */
  private static Rig sorting(Rig rig) {
    return rig.with("yarn.scheduler.capacity.multi-node-placement-enabled", "true")
        .with(SORTING + ".names", "usage")
        .with(SORTING, "usage")
        .with(
            SORTING + ".usage.class",
            "org.apache.hadoop.yarn.server.resourcemanager.scheduler.placement"
                + ".ResourceUsageMultiNodeLookupPolicy")
        .with(SORTING + ".usage.sorting-interval.ms", "0");
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 4})
  void itsThreadsPlaceNoGpuAskButEveryOther(int threads) throws Exception {
    try (Rig rig = asynchronous(threads).start().nodes(2, 4)) {
      onlyTheCorePlacesGpus(rig);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 4})
  void norWithMultiNodePlacement(int threads) throws Exception {
    try (Rig rig = sorting(asynchronous(threads)).start().nodes(2, 4)) {
      onlyTheCorePlacesGpus(rig);
    }
  }

  @Test
  void norDoesMultiNodePlacementWithHeartbeats() throws Exception {
    try (Rig rig = sorting(Rig.gandiva(4)).start().nodes(2, 4)) {
      onlyTheCorePlacesGpus(rig);
    }
  }

  private static void onlyTheCorePlacesGpus(Rig rig) throws Exception {
    rig.step(Act.submit("gpu", "ann", "default"));
    rig.step(Act.submit("cpu", "bob", "default"));
    assertThat(Act.becomes(() -> hasStarted(rig, "gpu") && hasStarted(rig, "cpu"))).isTrue();
    rig.ask("gpu", 12, 1).ask("cpu", 20, 0);
    assertThat(Act.becomes(() -> rig.settle().act("beat", "cpu").allocated("cpu") == 20)).isTrue();
    for (int i = 0; i < ROUNDS; i++) {
      rig.settle();
    }
    assertThat(gpusUsed(rig)).isZero();
    String[] gang = {"n1", "n1", "n1", "n1", "n1", "n1", "n2", "n2", "n2", "n2", "n2", "n2"};
    assertThat(rig.commit("gpu", gang).get("code").asText()).isEqualTo("OK");
    assertThat(Act.becomes(() -> rig.settle().act("beat", "gpu").allocated("gpu") == 12)).isTrue();
    assertThat(gpusUsed(rig)).isEqualTo(12);
    assertThat(rig.scheduler().ownErrors()).isZero();
  }

  private static boolean hasStarted(Rig rig, String key) {
    return !rig.settle().events("am_started", key).isEmpty();
  }

  private static int gpusUsed(Rig rig) {
    return rig.node("n1").at("/used/gpus").asInt() + rig.node("n2").at("/used/gpus").asInt();
  }
}
