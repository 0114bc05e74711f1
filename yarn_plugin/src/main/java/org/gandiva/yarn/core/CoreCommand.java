package org.gandiva.yarn.core;

import java.io.File;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** How the managed core is started: command line, environment, folder. The token is in a file. */
final class CoreCommand {
  private static final Logger LOG = LoggerFactory.getLogger(CoreCommand.class);

  /** The core ends by itself so long after it has lost the gateway. */
  private static final int EXIT_AFTER_LOST_S = 30;

  private static final List<String> KEPT = Arrays.asList("PATH", "HOME", "LANG", "LC_ALL", "TZ");
  private static final String OWN_PREFIX = "GANDIVA_";
  private static final String OWN_PYTHON_PATH = "GANDIVA_PYTHONPATH";

  private final String python;
  private final int port;
  private final Path tokenFile;
  private final Path folder;
  private final String confDir;

  CoreCommand(String python, int port, Path tokenFile, Path folder, String confDir) {
    this.python = python;
    this.port = port;
    this.tokenFile = tokenFile;
    this.folder = folder;
    this.confDir = confDir;
  }

  /** Returns the interpreter. */
  String python() {
    return python;
  }

  /**
   * Returns a process to start.
   *
   * @param id what the core shall say in its hello
   */
  ProcessBuilder builder(String id) {
    ProcessBuilder builder = new ProcessBuilder(words(id));
    builder.directory(folder.toFile());
    builder.redirectErrorStream(true);
    Map<String, String> environment = builder.environment();
    environment.clear();
    environment.putAll(scrubbed(System.getenv()));
    return builder;
  }

  List<String> words(String id) {
    List<String> words =
        new ArrayList<>(Arrays.asList(python, "-m", "gandiva_core", "core", "--managed", id));
    words.addAll(Arrays.asList("--port", Integer.toString(port)));
    words.addAll(Arrays.asList("--token-file", tokenFile.toString()));
    words.addAll(Arrays.asList("--journal-dir", folder.resolve("journal").toString()));
    words.addAll(Arrays.asList("--exit-after-lost-s", Integer.toString(EXIT_AFTER_LOST_S)));
    if (confDir != null) {
      words.addAll(Arrays.asList("--conf-dir", confDir));
    }
    return words;
  }

  /**
   * What of the ResourceManager's environment the core needs. A PYTHONPATH there is meant for
   * others (Spark's brings another py4j): ours has a name of its own.
   */
  static Map<String, String> scrubbed(Map<String, String> environment) {
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

  /** Returns the folder of the ResourceManager's files; null where it has none. */
  static String confDir(Configuration conf, Map<String, String> environment) {
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
