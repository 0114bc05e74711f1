package org.gandiva.yarn.replay;

import java.util.function.Consumer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.server.resourcemanager.RMContext;
import org.apache.hadoop.yarn.server.resourcemanager.amlauncher.AMLauncherEvent;
import org.apache.hadoop.yarn.server.resourcemanager.amlauncher.AMLauncherEventType;
import org.apache.hadoop.yarn.server.resourcemanager.amlauncher.ApplicationMasterLauncher;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttempt;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptEvent;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptEventType;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptImpl;

/** "Launches" an application master by giving it its token: no process, no thread, no delay. */
final class InstantLauncher extends ApplicationMasterLauncher {
  private final VirtualClock clock;
  private final Consumer<ApplicationAttemptId> launched;

  InstantLauncher(RMContext context, VirtualClock clock, Consumer<ApplicationAttemptId> launched) {
    super(context);
    this.clock = clock;
    this.launched = launched;
  }

  @Override
  protected void serviceInit(Configuration conf) {
    // No thread pool: nothing is launched.
  }

  @Override
  protected void serviceStart() {
    // No launcher thread.
  }

  @Override
  protected void serviceStop() {
    // Nothing was started.
  }

  @Override
  public synchronized void handle(AMLauncherEvent event) {
    if (event.getType() != AMLauncherEventType.LAUNCH) {
      return;
    }
    RMAppAttempt attempt = event.getAppAttempt();
    ApplicationAttemptId id = attempt.getAppAttemptId();
    ((RMAppAttemptImpl) attempt)
        .setAMRMToken(context.getAMRMTokenSecretManager().createAndGetAMRMToken(id));
    context
        .getDispatcher()
        .getEventHandler()
        .handle(new RMAppAttemptEvent(id, RMAppAttemptEventType.LAUNCHED, clock.getTime()));
    launched.accept(id);
  }
}
