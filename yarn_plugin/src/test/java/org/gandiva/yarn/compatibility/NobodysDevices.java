package org.gandiva.yarn.compatibility;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.gandiva.yarn.GandivaScheduler;
import org.gandiva.yarn.ResourceVector;
import org.gandiva.yarn.replay.Act;
import org.gandiva.yarn.replay.Rig;

/**
 * Case A04, played in a JVM of its own, since Hadoop keeps the number of resource types in statics:
 * four-GPU jobs on nodes that are taken, and what they get when room comes. Prints the log of it.
 */
final class NobodysDevices {
  private final Rig rig;
  private final StringBuilder log = new StringBuilder();

  private NobodysDevices(Rig rig) {
    this.rig = rig;
  }

  /** Plays both schedulers with the declared types of the first argument. */
  public static void main(String[] args) {
    for (Rig unstarted : new Rig[] {Rig.stock(), Rig.gandiva(1)}) {
      try (Rig rig = unstarted.with("yarn.resource-types", args[0]).start().nodes(2, 4)) {
        rig.step(Act.node("n3", 3, "")); // Stock reserves nothing beyond a queue's limit.
        rig.step(Act.node("n4", 3, ""));
        NobodysDevices played = new NobodysDevices(rig);
        played.play();
        System.out.print(played.log);
      }
    }
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }

  private void play() {
    give("a", "n1");
    give("b", "n2");
    ask("x");
    say("x waits");
    rig.act("finish", "b").settle();
    give("x", "n2");
    say("b ended");
    ask("y");
    rig.act("finish", "a").settle();
    give("y", "n1");
    say("a ended");
  }

  private void ask(String key) {
    rig.submit(key, "ann").step(sized(Act.ask(key, 1, 1, 4), "/asks/0"));
    rig.settle();
  }

  /** The job has one container with four GPUs; under Gandiva it is the core that gives it. */
  private void give(String key, String host) {
    if (rig.events("am_started", key).isEmpty()) {
      ask(key);
    }
    if (rig.anyScheduler() instanceof GandivaScheduler) {
      ObjectNode commit = Act.commit(rig.attempt(key), 1, 4, host);
      log.append(rig.apply(sized(commit, "/containers/0")).get("code").asText()).append('\n');
      rig.act("beat", key);
    }
    rig.settle();
  }

  private static ObjectNode sized(ObjectNode action, String where) {
    ((ObjectNode) action.at(where)).put("memory_mib", 1024);
    return action;
  }

  private void say(String what) {
    CapacityScheduler scheduler = rig.anyScheduler();
    log.append(what).append(':');
    for (String key : new String[] {"a", "b", "x", "y"}) {
      rig.events("allocated", key)
          .forEach(e -> log.append(' ').append(key).append('@').append(e.at("/containers/0/node")));
    }
    RMContainer reserved = scheduler.getNode(NodeId.newInstance("n1", 1)).getReservedContainer();
    log.append(reserved == null ? "" : " reserved@n1")
        .append(" reserved_gpus=")
        .append(ResourceVector.gpus(scheduler.getRootQueue().getQueueResourceUsage().getReserved()))
        .append('\n');
  }
}
