package org.gandiva.yarn;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.api.records.ResourceInformation;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.exceptions.YarnRuntimeException;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.MutableConfigurationProvider;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CSQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.conf.CSConfigurationProvider;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.conf.FileBasedCSConfigurationProvider;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.ContainerPreemptEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.SchedulerEventType;
import org.apache.hadoop.yarn.util.resource.ResourceUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Takes a configuration into force: read and checked whole first, then applied. */
final class Adopter {
  private static final Logger LOG = LoggerFactory.getLogger(Adopter.class);

  private final GandivaScheduler scheduler;

  Adopter(GandivaScheduler scheduler) {
    this.scheduler = scheduler;
  }

  /**
   * Reads what the configuration, fresh from its files, says is adopted.
   *
   * @throws YarnRuntimeException with one line: key, found, expected
   */
  Adoption read(Configuration conf) throws IOException {
    Adoption adoption =
        AdoptionReader.read(
            AdoptionReader.load(conf, scheduler.getRMContext(), provider()), liveQueues());
    requireCountedGpus(adoption.mode());
    return adoption;
  }

  /** The core hands out nothing that the cluster does not count. */
  private static void requireCountedGpus(Mode mode) {
    boolean isCounted = ResourceUtils.getResourceTypes().containsKey(ResourceInformation.GPU_URI);
    if (mode != Mode.OBSERVE && !isCounted) {
      throw new YarnRuntimeException(
          String.format(
              "%s: found \"%s\" and %s not in %s, expected it there, or mode observe",
              GandivaConfiguration.MODE,
              mode.word(),
              ResourceInformation.GPU_URI,
              YarnConfiguration.RESOURCE_TYPES));
    }
  }

  /** As {@link #read}, for a refresh: a mistake is the administrator's to see, in one line. */
  Adoption reread(Configuration conf) throws IOException {
    try {
      return read(conf);
    } catch (YarnRuntimeException e) {
      throw new IOException(e.getMessage() + "; what was in force before stays in force");
    }
  }

  /**
   * Returns what the scheduler is to be initialised with: the same, but amounts of GPUs in queue
   * capacities times the height. What a program sets wins over the files that are read later.
   */
  Configuration scaled(Configuration conf, Adoption adoption, int heightMax) throws IOException {
    Configuration loaded = AdoptionReader.load(conf, scheduler.getRMContext(), provider());
    Map<String, String> overrides = AbsoluteGpus.scaled(loaded, adoption, heightMax);
    if (overrides.isEmpty()) {
      return conf;
    }
    String store = YarnConfiguration.SCHEDULER_CONFIGURATION_STORE_CLASS;
    if (!conf.get(store, YarnConfiguration.FILE_CONFIGURATION_STORE)
        .equals(YarnConfiguration.FILE_CONFIGURATION_STORE)) {
      throw new IOException(
          String.format(
              "%s: found \"%s\", expected \"file\": amounts of yarn.io/gpu in %s need it in mode"
                  + " full with %s above 1",
              store,
              conf.get(store),
              overrides.keySet().iterator().next(),
              GandivaConfiguration.HEIGHT_MAX));
    }
    Configuration scaled = new Configuration(conf);
    overrides.forEach((key, value) -> scaled.set(key, value, "Gandiva: amount times height"));
    return scaled;
  }

  private CSConfigurationProvider provider() {
    MutableConfigurationProvider store = scheduler.getMutableConfProvider();
    return store instanceof CSConfigurationProvider
        ? (CSConfigurationProvider) store
        : new FileBasedCSConfigurationProvider(scheduler.getRMContext());
  }

  private Collection<String> liveQueues() {
    List<String> paths = new ArrayList<>();
    if (scheduler.getCapacitySchedulerQueueManager() != null) {
      for (CSQueue queue : scheduler.getCapacitySchedulerQueueManager().getQueues().values()) {
        paths.add(queue.getQueuePath());
      }
    }
    return paths;
  }

  /** Puts an adoption in force: the veto at once, then heights, then what stock code reserved. */
  void apply(Adoption next, Veto veto, SettingsEvents settings, OverSubscription overSubscription) {
    LOG.info("Gandiva: {}", next);
    veto.replace(next);
    settings.tell();
    overSubscription.refitAll();
    releaseReservations();
  }

  /**
   * A reservation of stock code for an ask that is the core's now would block its node for ever.
   */
  void releaseReservations() {
    for (FiCaSchedulerNode node : scheduler.getAllNodes()) {
      RMContainer reserved = node.getReservedContainer();
      if (reserved != null
          && ResourceVector.gpus(reserved.getReservedResource()) > 0
          && scheduler.isOurs(
              reserved.getApplicationAttemptId(), reserved.getNodeLabelExpression())) {
        scheduler.handle(
            new ContainerPreemptEvent(
                reserved.getApplicationAttemptId(),
                reserved,
                SchedulerEventType.KILL_RESERVED_CONTAINER));
      }
    }
  }
}
