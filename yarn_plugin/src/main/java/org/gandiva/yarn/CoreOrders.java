package org.gandiva.yarn;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.gateway.ProtocolException;

/** What the core can order, by the name of the operation. */
final class CoreOrders {
  private final GandivaScheduler scheduler;
  private final GangCommitter committer;
  private final OverSubscription overSubscription;

  CoreOrders(
      GandivaScheduler scheduler, GangCommitter committer, OverSubscription overSubscription) {
    this.scheduler = scheduler;
    this.committer = committer;
    this.overSubscription = overSubscription;
  }

  ObjectNode apply(ObjectNode effect) throws ProtocolException {
    String op = effect.path("op").asText();
    switch (op) {
      case "commit_gang":
        return committer.commit(effect);
      case "release_gang":
        return committer.release(effect);
      case "set_height":
        return overSubscription.setHeight(effect);
      case "explain":
        return scheduler.explanations().explain(effect);
      case "agent_reported":
        return scheduler.recoveryHold().agentReported(scheduler, effect);
      default:
        throw ProtocolException.badRequest(
            "op: found "
                + Json.shown(op)
                + ", expected commit_gang, release_gang, set_height, explain or agent_reported");
    }
  }
}
