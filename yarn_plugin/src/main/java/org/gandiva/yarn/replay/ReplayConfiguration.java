package org.gandiva.yarn.replay;

import java.io.File;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CommonConfigurationKeys;
import org.apache.hadoop.fs.CommonConfigurationKeysPublic;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacitySchedulerConfiguration;
import org.gandiva.yarn.GandivaConfiguration;
import org.gandiva.yarn.gateway.ProtocolException;

/**
 * Builds the ResourceManager's configuration: Hadoop's defaults, the site's files, the caller's
 * properties, and last what virtual time needs. The last part is the same for every scheduler.
 */
final class ReplayConfiguration {
  /** Hadoop reads these as int: 24 days of real time, which is for ever in a replay. */
  private static final String FOR_EVER_MS = Integer.toString(Integer.MAX_VALUE);

  private static final String YEAR_S = Long.toString(TimeUnit.DAYS.toSeconds(365));
  private static final String DECADE_S = Long.toString(TimeUnit.DAYS.toSeconds(3650));
  private static final String ANY_PORT = "localhost:0";

  private ReplayConfiguration() {}

  static YarnConfiguration build(String confDir, Map<String, String> properties)
      throws ProtocolException {
    Configuration base = new Configuration();
    if (confDir != null) {
      base.setClassLoader(loaderOf(confDir));
      base.addResource("core-site.xml");
    }
    YarnConfiguration conf = new YarnConfiguration(base);
    assumed().forEach((key, value) -> conf.set(key, value, "replay harness"));
    properties.forEach((key, value) -> conf.set(key, value, "replay properties"));
    virtualTime().forEach((key, value) -> conf.set(key, value, "replay harness"));
    return conf;
  }

  private static ClassLoader loaderOf(String confDir) throws ProtocolException {
    File folder = new File(confDir);
    if (!new File(folder, YarnConfiguration.YARN_SITE_CONFIGURATION_FILE).isFile()) {
      throw ProtocolException.badRequest(
          "conf_dir: found no yarn-site.xml in " + confDir + ", expected a Hadoop configuration");
    }
    try {
      URL[] urls = {folder.toURI().toURL()};
      return new URLClassLoader(urls, ReplayConfiguration.class.getClassLoader());
    } catch (MalformedURLException e) {
      throw ProtocolException.badRequest("conf_dir: " + e.getMessage());
    }
  }

  /**
   * What a replay takes for granted unless its caller's properties say otherwise, whatever the
   * site's files say. Its nodes have agents, and all of Gandiva is in force.
   */
  private static SortedMap<String, String> assumed() {
    SortedMap<String, String> keys = new TreeMap<>();
    keys.put(GandivaConfiguration.MODE, "full");
    keys.put(GandivaConfiguration.OVERSUBSCRIBE_WITHOUT_AGENT, "true");
    // A silence is measured in real time, which is nothing to a replay.
    keys.put(GandivaConfiguration.CORE_FALLBACK, "wait");
    // Both run on real time: a caller who turns them on gives up the same bytes at each run.
    keys.put(CapacitySchedulerConfiguration.SCHEDULE_ASYNCHRONOUSLY_ENABLE, "false");
    keys.put(YarnConfiguration.RM_APPLICATION_MONITOR_INTERVAL_MS, FOR_EVER_MS);
    return keys;
  }

  /**
   * What the harness sets, whatever the scheduler: these run on the real clock or need a network.
   */
  static SortedMap<String, String> virtualTime() {
    SortedMap<String, String> keys = new TreeMap<>();
    keys.put(YarnConfiguration.RM_ADDRESS, ANY_PORT);
    keys.put(YarnConfiguration.RM_ADMIN_ADDRESS, ANY_PORT);
    keys.put(YarnConfiguration.RM_SCHEDULER_ADDRESS, ANY_PORT);
    keys.put(YarnConfiguration.RM_RESOURCE_TRACKER_ADDRESS, ANY_PORT);
    keys.put(YarnConfiguration.RM_WEBAPP_ADDRESS, ANY_PORT);
    keys.put(YarnConfiguration.RM_HA_ENABLED, "false");
    // The driver of the replay is the core.
    keys.put(GandivaConfiguration.CORE_MANAGED, "false");
    keys.put(YarnConfiguration.RECOVERY_ENABLED, "false");
    // Expiries run on real time: a node not beaten for a while would be lost in virtual noon.
    keys.put(YarnConfiguration.RM_NM_EXPIRY_INTERVAL_MS, FOR_EVER_MS);
    keys.put(YarnConfiguration.RM_AM_EXPIRY_INTERVAL_MS, FOR_EVER_MS);
    keys.put(YarnConfiguration.RM_CONTAINER_ALLOC_EXPIRY_INTERVAL_MS, FOR_EVER_MS);
    // Hadoop insists on key rolling slower than expiry.
    keys.put(YarnConfiguration.RM_NMTOKEN_MASTER_KEY_ROLLING_INTERVAL_SECS, DECADE_S);
    keys.put(YarnConfiguration.RM_CONTAINER_TOKEN_MASTER_KEY_ROLLING_INTERVAL_SECS, DECADE_S);
    keys.put(YarnConfiguration.RM_AMRM_TOKEN_MASTER_KEY_ROLLING_INTERVAL_SECS, DECADE_S);
    // The preemption monitor is driven by "edit_schedule" on the virtual clock.
    keys.put(CapacitySchedulerConfiguration.PREEMPTION_MONITORING_INTERVAL, FOR_EVER_MS);
    // A long run must stay visible whole.
    keys.put(YarnConfiguration.RM_MAX_COMPLETED_APPLICATIONS, "10000000");
    // Replays that run side by side share no file, and none reaches for a site's.
    keys.put(
        YarnConfiguration.FS_NODE_ATTRIBUTE_STORE_IMPL_CLASS, ForgetfulAttributes.class.getName());
    keys.put(YarnConfiguration.FS_NODE_LABELS_STORE_IMPL_CLASS, ForgetfulLabels.class.getName());
    // Host names of simulated nodes are known to no name service.
    keys.put(CommonConfigurationKeys.HADOOP_SECURITY_TOKEN_SERVICE_USE_IP, "false");
    keys.put(YarnConfiguration.RM_NODE_IP_CACHE_EXPIRY_INTERVAL_SECS, YEAR_S);
    keys.put(
        CommonConfigurationKeysPublic.HADOOP_SECURITY_GROUP_MAPPING,
        SimulatedGroups.class.getName());
    keys.put(
        CommonConfigurationKeysPublic.NET_TOPOLOGY_NODE_SWITCH_MAPPING_IMPL_KEY,
        SimulatedRacks.class.getName());
    return keys;
  }

  /** Returns every effective entry, sorted. */
  static SortedMap<String, String> flat(Configuration conf) {
    SortedMap<String, String> entries = new TreeMap<>();
    for (Map.Entry<String, String> entry : conf) {
      entries.put(entry.getKey(), entry.getValue());
    }
    return entries;
  }
}
