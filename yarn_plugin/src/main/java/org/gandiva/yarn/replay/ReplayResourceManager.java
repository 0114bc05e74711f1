package org.gandiva.yarn.replay;

import java.util.ArrayDeque;
import java.util.Queue;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.event.Dispatcher;
import org.apache.hadoop.yarn.event.EventHandler;
import org.apache.hadoop.yarn.server.resourcemanager.AdminService;
import org.apache.hadoop.yarn.server.resourcemanager.ApplicationMasterService;
import org.apache.hadoop.yarn.server.resourcemanager.ClientRMService;
import org.apache.hadoop.yarn.server.resourcemanager.OpportunisticContainerAllocatorAMService;
import org.apache.hadoop.yarn.server.resourcemanager.ResourceManager;
import org.apache.hadoop.yarn.server.resourcemanager.ResourceTrackerService;
import org.apache.hadoop.yarn.server.resourcemanager.amlauncher.ApplicationMasterLauncher;
import org.apache.hadoop.yarn.server.resourcemanager.recovery.RMStateStore;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.AbstractYarnScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ResourceScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.SchedulerEvent;

/**
 * Hadoop's ResourceManager with its threads, sockets and web pages left out: events wait until the
 * driver pumps them, and the services are called in the JVM. What decides is untouched.
 */
final class ReplayResourceManager extends ResourceManager {
  private final VirtualClock clock;
  private final long clusterTimestampMs;
  private EventPump pump;
  private final Queue<ApplicationAttemptId> launched = new ArrayDeque<>();

  ReplayResourceManager(VirtualClock clock, long clusterTimestampMs) {
    this.clock = clock;
    this.clusterTimestampMs = clusterTimestampMs;
  }

  EventPump pump() {
    return pump;
  }

  /** Attempts whose master was "launched" and waits to be played, oldest first. */
  Queue<ApplicationAttemptId> launched() {
    return launched;
  }

  @Override
  protected void serviceInit(Configuration conf) throws Exception {
    super.serviceInit(conf);
    RMStateStore store = new InlineStateStore();
    store.init(conf);
    setRMStateStore(store);
  }

  @Override
  protected void serviceStart() throws Exception {
    super.serviceStart();
    // Application ids carry it: a wall-clock value would make every run different.
    setClusterTimeStamp(clusterTimestampMs);
    pump.drain();
  }

  @Override
  protected Dispatcher createDispatcher() {
    pump = new EventPump(); // A start that fails asks for a second one.
    return pump;
  }

  @Override
  protected EventHandler<SchedulerEvent> createSchedulerEventDispatcher() {
    return event -> scheduler.handle(event);
  }

  @Override
  protected ResourceScheduler createScheduler() {
    ResourceScheduler created = super.createScheduler();
    if (created instanceof AbstractYarnScheduler) {
      ((AbstractYarnScheduler<?, ?>) created).setClock(clock);
    }
    return created;
  }

  @Override
  protected ApplicationMasterLauncher createAMLauncher() {
    return new InstantLauncher(rmContext, clock, launched::add);
  }

  @Override
  protected void startWepApp() {
    // No web pages.
  }

  @Override
  protected AdminService createAdminService() {
    return new AdminService(this) {
      @Override
      protected void startServer() {
        // Called in the JVM.
      }

      @Override
      protected void stopServer() {
        // Was not started.
      }
    };
  }

  @Override
  protected ClientRMService createClientRMService() {
    return new ClientRMService(
        rmContext,
        scheduler,
        rmAppManager,
        applicationACLsManager,
        queueACLsManager,
        rmContext.getRMDelegationTokenSecretManager()) {
      @Override
      protected void serviceStart() {
        // No socket: called in the JVM.
      }
    };
  }

  @Override
  protected ResourceTrackerService createResourceTrackerService() {
    return new ResourceTrackerService(
        rmContext,
        nodesListManager,
        nmLivelinessMonitor,
        rmContext.getContainerTokenSecretManager(),
        rmContext.getNMTokenSecretManager()) {
      @Override
      protected void serviceStart() {
        // No socket: called in the JVM.
      }
    };
  }

  @Override
  protected ApplicationMasterService createApplicationMasterService() {
    if (YarnConfiguration.isOpportunisticContainerAllocationEnabled(
        rmContext.getYarnConfiguration())) {
      return opportunistic();
    }
    return new ApplicationMasterService(rmContext, scheduler) {
      @Override
      protected void serviceStart() {
        // No socket: called in the JVM.
      }
    };
  }

  private ApplicationMasterService opportunistic() {
    return new OpportunisticContainerAllocatorAMService(rmContext, scheduler) {
      @Override
      protected void serviceStart() {
        // No socket: called in the JVM.
      }
    };
  }
}
