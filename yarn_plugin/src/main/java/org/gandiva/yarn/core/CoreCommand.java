package org.gandiva.yarn.core;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.gandiva.yarn.GandivaConfiguration;

/** How the managed core is started: command line, environment, folder. The token is in a file. */
final class CoreCommand implements ChildCommand {
  /** The core ends by itself so long after it has lost the gateway. */
  private static final int EXIT_AFTER_LOST_S = 30;

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

  @Override
  public String what() {
    return "Gandiva's core";
  }

  @Override
  public String pythonKey() {
    return GandivaConfiguration.CORE_PYTHON;
  }

  @Override
  public String python() {
    return python;
  }

  /**
   * {@inheritDoc}
   *
   * @param id what the core shall say in its hello
   */
  @Override
  public ProcessBuilder builder(String id) {
    return ChildEnvironment.process(words(id), folder);
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
}
