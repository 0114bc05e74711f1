package org.gandiva.yarn;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttempt;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerApp;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.gateway.ProtocolException;

/**
 * Why an application's GPU asks wait, in its diagnostics. The place is the one that Hadoop itself
 * has for reasons of waiting: shown while an attempt has no other diagnostics. It would also become
 * the last word on an application that ended without one, so it is cleared before its end.
 */
final class Explanations {
  private static final int LENGTH_MAX = 1000;

  private final GandivaScheduler scheduler;
  private final Set<ApplicationAttemptId> explained = ConcurrentHashMap.newKeySet();

  Explanations(GandivaScheduler scheduler) {
    this.scheduler = scheduler;
  }

  /** Does the effect explain. */
  ObjectNode explain(ObjectNode effect) throws ProtocolException {
    ObjectNode result = Json.object().put("id", Json.text(effect, "id"));
    String text = line(Json.text(effect, "text"));
    RMApp app = scheduler.getRMContext().getRMApps().get(application(Json.text(effect, "app")));
    FiCaSchedulerApp live = scheduler.liveAttempt(app);
    if (live == null) {
      return result
          .put("code", CommitCode.ASK_GONE.name())
          .put("detail", "the application has no attempt that runs");
    }
    if (text.isEmpty()) {
      clear(live.getApplicationAttemptId());
    } else {
      explained.add(live.getApplicationAttemptId());
      app.getCurrentAppAttempt().updateAMLaunchDiagnostics(text);
    }
    return result.put("code", CommitCode.OK.name());
  }

  private static String line(String text) throws ProtocolException {
    if (text.length() > LENGTH_MAX || text.chars().anyMatch(Character::isISOControl)) {
      throw ProtocolException.badRequest(
          "text: found "
              + text.length()
              + " characters, expected one line of at most "
              + LENGTH_MAX
              + " without control characters");
    }
    return text;
  }

  private static ApplicationId application(String text) throws ProtocolException {
    try {
      return ApplicationId.fromString(text);
    } catch (IllegalArgumentException e) {
      throw ProtocolException.badRequest(
          "app: found " + Json.shown(text) + ", expected an application id");
    }
  }

  /** After a heartbeat or a commit: what does not wait any more needs no reason. */
  void onAsks(FiCaSchedulerApp app) {
    if (explained.contains(app.getApplicationAttemptId())
        && AskLedger.table(app).path("asks").size() == 0) {
      clear(app.getApplicationAttemptId());
    }
  }

  /** Takes an attempt's reason away; to be called before its end is handled. */
  void clear(ApplicationAttemptId attempt) {
    if (!explained.remove(attempt)) {
      return;
    }
    RMApp app = scheduler.getRMContext().getRMApps().get(attempt.getApplicationId());
    RMAppAttempt known = app == null ? null : app.getRMAppAttempt(attempt);
    if (known != null) {
      known.updateAMLaunchDiagnostics(null);
    }
  }
}
