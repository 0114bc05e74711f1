package org.gandiva.yarn;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.ResourceCommitRequest;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;

/** Faults in the middle of a gang: it is whole or absent all the same. */
class HalfWayTest {
  /** Fails once, after this many commits of ours. */
  static final AtomicInteger COMMITS_LEFT = new AtomicInteger(Integer.MAX_VALUE);

  /** Hadoop's code with a fault planted. */
  public static class FaultyScheduler extends GandivaScheduler {
    @Override
    @SuppressWarnings("rawtypes")
    public boolean tryCommit(Resource cluster, ResourceCommitRequest request, boolean update) {
      if (request instanceof GandivaCommitRequest && COMMITS_LEFT.getAndDecrement() == 0) {
        throw new IllegalStateException("planted\nfault");
      }
      return super.tryCommit(cluster, request, update);
    }
  }

  @Test
  void anExceptionTakesTheWholeGangBackAndIsToldAsOneLine() {
    try (Rig rig =
        Rig.gandiva(1)
            .with(YarnConfiguration.RM_SCHEDULER, FaultyScheduler.class.getName())
            .start()
            .nodes(2, 4)) {
      rig.submit("j", "ann").ask("j", 4, 1);
      COMMITS_LEFT.set(2);
      JsonNode failed = rig.commit("j", "n1", "n1", "n2", "n2");
      assertThat(failed.get("code").asText()).isEqualTo("INTERNAL");
      assertThat(failed.get("detail").asText()).isEqualTo("IllegalStateException: planted fault");
      assertThat(rig.node("n1").at("/used/gpus").asInt()).isZero();
      rig.act("beat", "j");
      assertThat(rig.allocated("j")).isZero();
      assertThat(rig.commit("j", "n1", "n1", "n2", "n2").get("code").asText()).isEqualTo("OK");
    } finally {
      COMMITS_LEFT.set(Integer.MAX_VALUE);
    }
  }
}
