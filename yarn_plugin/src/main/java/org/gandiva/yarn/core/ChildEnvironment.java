package org.gandiva.yarn.core;

import java.io.File;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What a child is given of its daemon's environment, and where the daemon's files are. */
public final class ChildEnvironment {
  private static final Logger LOG = LoggerFactory.getLogger(ChildEnvironment.class);
  private static final List<String> KEPT = Arrays.asList("PATH", "HOME", "LANG", "LC_ALL", "TZ");
  private static final String OWN_PREFIX = "GANDIVA_";
  private static final String OWN_PYTHON_PATH = "GANDIVA_PYTHONPATH";

  private ChildEnvironment() {}

  /**
   * What of a daemon's environment its child needs. A PYTHONPATH there is meant for others (Spark's
   * brings another py4j): ours has a name of its own.
   */
  public static Map<String, String> scrubbed(Map<String, String> environment) {
    Map<String, String> kept = new HashMap<>();
    environment.forEach(
        (name, value) -> {
          if (KEPT.contains(name) || name.startsWith(OWN_PREFIX)) {
            kept.put(name, value);
          }
        });
    if (kept.containsKey(OWN_PYTHON_PATH)) {
      kept.put("PYTHONPATH", kept.remove(OWN_PYTHON_PATH));
    }
    return kept;
  }

  /** Returns a process to start: in a folder, with its output in one stream, and nothing else. */
  public static ProcessBuilder process(List<String> words, Path folder) {
    ProcessBuilder builder = new ProcessBuilder(words);
    builder.directory(folder.toFile());
    builder.redirectErrorStream(true);
    Map<String, String> environment = builder.environment();
    environment.clear();
    environment.putAll(scrubbed(System.getenv()));
    return builder;
  }

  /** Returns the folder of the daemon's files; null where it has none. */
  public static String confDir(Configuration conf, Map<String, String> environment) {
    URL site = conf.getResource(YarnConfiguration.YARN_SITE_CONFIGURATION_FILE);
    if (site != null && site.getProtocol().equals("file")) {
      try {
        return Paths.get(site.toURI()).getParent().toString();
      } catch (URISyntaxException e) {
        LOG.warn("The folder of {} is not found: {}", site, e.getMessage());
      }
    }
    String named = environment.getOrDefault("YARN_CONF_DIR", environment.get("HADOOP_CONF_DIR"));
    return named != null && new File(named).isDirectory() ? named : null;
  }
}
