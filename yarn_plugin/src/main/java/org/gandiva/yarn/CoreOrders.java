package org.gandiva.yarn;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.gateway.ProtocolException;

/** What the core can order, by the name of the operation. */
final class CoreOrders {
  private final GandivaScheduler scheduler;
  private final GangCommitter committer;
  private final OverSubscription overSubscription;
  private volatile boolean isSnapshotOwed;

  CoreOrders(
      GandivaScheduler scheduler, GangCommitter committer, OverSubscription overSubscription) {
    this.scheduler = scheduler;
    this.committer = committer;
    this.overSubscription = overSubscription;
  }

  /**
   * Stock code gave GPUs away that the core does not know of: until it is told, it can place
   * nothing.
   */
  void oweSnapshot() {
    isSnapshotOwed = true;
  }

  /** All that there is, is being written down for the core. */
  void paySnapshot() {
    isSnapshotOwed = false;
  }

  ObjectNode apply(ObjectNode effect) throws ProtocolException {
    String op = effect.path("op").asText();
    switch (op) {
      case "commit_gang":
        return isSnapshotOwed ? tooEarly(effect) : committer.commit(effect);
      case "release_gang":
        return committer.release(effect);
      case "set_height":
        return overSubscription.setHeight(effect);
      case "explain":
        return scheduler.explanations().explain(effect);
      case "ask_move":
        return scheduler.messages().askMove(effect);
      case "ask_resize":
        return scheduler.messages().askResize(effect);
      case "let_go":
        return scheduler.messages().letGo(effect);
      case "agent_reported":
        return scheduler.recoveryHold().agentReported(scheduler, effect);
      default:
        throw ProtocolException.badRequest(
            "op: found "
                + Json.shown(op)
                + ", expected commit_gang, release_gang, set_height, explain, ask_move,"
                + " ask_resize, let_go or agent_reported");
    }
  }

  private static ObjectNode tooEarly(ObjectNode effect) throws ProtocolException {
    return Json.object()
        .put("id", Json.text(effect, "id"))
        .put("code", CommitCode.NOT_READY.name())
        .put("detail", "stock code served GPU asks meanwhile: a snapshot comes first")
        .put("index", 0);
  }
}
