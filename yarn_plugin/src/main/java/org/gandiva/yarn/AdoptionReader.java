package org.gandiva.yarn;

import java.io.IOException;
import java.io.InputStream;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.exceptions.YarnException;
import org.apache.hadoop.yarn.exceptions.YarnRuntimeException;
import org.apache.hadoop.yarn.server.resourcemanager.RMContext;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.conf.CSConfigurationProvider;

/** Reads what is adopted, and refuses whole what does not make sense. */
final class AdoptionReader {
  private static final String DEFAULT_PARTITION = "DEFAULT";
  private static final String SWITCHES = ".gandiva.";

  private AdoptionReader() {}

  /**
   * Returns the configuration as the scheduler is about to see it: yarn-site.xml read anew, and the
   * scheduler's own file over it. What was set by a program wins over both.
   */
  static Configuration load(Configuration given, RMContext context, CSConfigurationProvider queues)
      throws IOException {
    Configuration fresh = new Configuration(given);
    try (InputStream site =
        context
            .getConfigurationProvider()
            .getConfigurationInputStream(fresh, YarnConfiguration.YARN_SITE_CONFIGURATION_FILE)) {
      if (site != null) {
        fresh.addResource(site, YarnConfiguration.YARN_SITE_CONFIGURATION_FILE);
        fresh.size(); // Read now: the stream is about to be closed.
      }
    } catch (YarnException e) {
      throw new IOException(e);
    }
    return queues.loadConfiguration(fresh);
  }

  /**
   * Reads and checks every key.
   *
   * @param liveQueues paths of queues that exist
   * @throws YarnRuntimeException with one line: key, found, expected
   */
  static Adoption read(Configuration conf, Collection<String> liveQueues) {
    GandivaConfiguration settings = new GandivaConfiguration(conf);
    QueueNames names = new QueueNames(conf, liveQueues);
    return new Adoption(
        Mode.of(settings.mode()),
        queues(settings.queues(), names),
        partitions(settings.partitions()),
        switches(conf, names),
        settings.coreFallback());
  }

  private static Set<String> queues(String text, QueueNames names) {
    Set<String> found = new LinkedHashSet<>();
    for (String word : text.split(",", -1)) {
      String name = word.trim();
      if (name.equals(GandivaConfiguration.ALL)) {
        return null;
      }
      if (!name.isEmpty()) {
        found.add(names.resolve(name, GandivaConfiguration.QUEUES));
      }
    }
    return found;
  }

  /** A label that no node has yet may come later, and is no mistake. */
  private static Set<String> partitions(String text) {
    Set<String> found = new LinkedHashSet<>();
    for (String word : text.split(",", -1)) {
      String name = word.trim();
      if (name.equals(GandivaConfiguration.ALL)) {
        return null;
      }
      found.add(name.equals(DEFAULT_PARTITION) ? "" : name);
    }
    return found;
  }

  private static Map<String, Boolean> switches(Configuration conf, QueueNames names) {
    Map<String, Boolean> found = new TreeMap<>();
    for (Map.Entry<String, String> entry : conf) {
      String key = entry.getKey();
      int at = key.lastIndexOf(SWITCHES);
      if (at < 0 || !key.startsWith(QueueNames.PREFIX)) {
        continue;
      }
      String path = key.substring(QueueNames.PREFIX.length(), at);
      String mechanism = key.substring(at + SWITCHES.length());
      check(Adoption.MECHANISMS.contains(mechanism), key, mechanism, mechanisms());
      check(names.isKnown(path), key, path, "a queue: the nearest is " + names.nearest(path));
      String value = conf.getTrimmed(key).toLowerCase(Locale.ROOT);
      boolean isOn = value.equals("true");
      check(isOn || value.equals("false"), key, value, "true or false");
      found.put(path + "." + mechanism, isOn);
    }
    return found;
  }

  private static String mechanisms() {
    return "one of " + String.join(", ", Adoption.MECHANISMS);
  }

  private static void check(boolean isRight, String key, String found, String expected) {
    if (!isRight) {
      throw new YarnRuntimeException(key + ": found \"" + found + "\", expected " + expected);
    }
  }
}
