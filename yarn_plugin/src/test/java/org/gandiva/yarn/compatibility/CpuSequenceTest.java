package org.gandiva.yarn.compatibility;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import org.gandiva.yarn.GandivaScheduler;
import org.gandiva.yarn.replay.Act;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;

/**
 * Must show: at height 4 with GPU nodes in an exclusive partition of their own the sequence of CPU
 * allocations is stock's.
 */
class CpuSequenceTest {
  private static final String ROOT = "yarn.scheduler.capacity.root.";
  private static final int JOBS = 18;

  private static Rig site(Rig rig) {
    rig.with("yarn.node-labels.enabled", "true");
    rig.with(ROOT + "queues", "a,b,c");
    rig.with(ROOT + "accessible-node-labels", "*");
    rig.with(ROOT + "accessible-node-labels.gpu.capacity", "100");
    int[] shares = {50, 30, 20};
    for (int i = 0; i < shares.length; i++) {
      String queue = ROOT + "abc".charAt(i) + ".";
      rig.with(queue + "capacity", Integer.toString(shares[i]));
      rig.with(queue + "accessible-node-labels", "gpu");
      rig.with(queue + "accessible-node-labels.gpu.capacity", Integer.toString(shares[i]));
    }
    return rig.start();
  }

  /** Jobs with CPU and GPU containers come and go on a cluster that is too small for them. */
  private static List<String> cpuAllocations(Rig unstarted) {
    List<String> sequence = new ArrayList<>();
    try (Rig rig = site(unstarted)) {
      for (int i = 1; i <= 3; i++) {
        rig.step(Act.node("n" + i, 0, "").put("memory_mib", 4096));
      }
      rig.step(Act.node("g1", 4, "gpu"));
      rig.step(Act.node("g2", 4, "gpu"));
      for (int job = 0; job < JOBS; job++) {
        String key = "j" + job;
        note(rig, sequence, Act.submit(key, "u" + job % 4, "abc".substring(job % 3, job % 3 + 1)));
        if (job % 2 == 0) {
          note(rig, sequence, Act.where(Act.ask(key, 1, 2, 1), "label", "gpu"));
          give(rig, key, job % 4 == 0 ? "g1" : "g2");
        }
        note(rig, sequence, Act.ask(key, 2, 3 + job % 4, 0));
        if (job >= 9) {
          note(rig, sequence, Act.node("x" + job, 0, "").put("memory_mib", 512));
        }
      }
    }
    return sequence;
  }

  private static void give(Rig rig, String key, String host) {
    if (rig.anyScheduler() instanceof GandivaScheduler
        && !rig.events("am_started", key).isEmpty()) {
      assertThat(rig.apply(Act.commit(rig.attempt(key), 1, 1, host, host)).get("code").asText())
          .isEqualTo("OK");
    }
  }

  private static void note(Rig rig, List<String> sequence, ObjectNode action) {
    for (JsonNode event : rig.step(action).get("events")) {
      String kind = event.get("kind").asText();
      if (kind.equals("am_started")) {
        sequence.add(event.get("key").asText() + " master on " + event.get("node").asText());
      } else if (kind.equals("allocated")) {
        for (JsonNode container : event.get("containers")) {
          if (container.get("gpus").asInt() == 0) {
            sequence.add(event.get("key").asText() + " on " + container.get("node").asText());
          }
        }
      }
    }
  }

  @Test
  void withGpuNodesInAPartitionOfTheirOwnCpuAsksAreServedInStocksOrder() {
    List<String> stock = cpuAllocations(Rig.stock());
    assertThat(stock).hasSizeGreaterThan(40);
    assertThat(cpuAllocations(Rig.gandiva(4))).isEqualTo(stock);
  }
}
