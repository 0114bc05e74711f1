package org.gandiva.yarn.node;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.gandiva.yarn.GandivaConfiguration;
import org.gandiva.yarn.core.ChildCommand;
import org.gandiva.yarn.core.ChildEnvironment;

/** How the node's agent is started. Its settings are in the NodeManager's own files. */
final class AgentCommand implements ChildCommand {
  private static final String MODULE = "nodemanager_agent";

  private final String python;
  private final String node;
  private final String confDir;
  private final Path folder;

  /**
   * Creates the command.
   *
   * @param node the NodeManager's id, host:port
   * @param confDir of its files; null where it has none
   * @param folder to run in
   */
  AgentCommand(String python, String node, String confDir, Path folder) {
    this.python = python;
    this.node = node;
    this.confDir = confDir;
    this.folder = folder;
  }

  @Override
  public String what() {
    return "Gandiva's agent";
  }

  @Override
  public String pythonKey() {
    return GandivaConfiguration.AGENT_PYTHON;
  }

  @Override
  public String python() {
    return python;
  }

  @Override
  public ProcessBuilder builder(String id) {
    return ChildEnvironment.process(words(), folder);
  }

  List<String> words() {
    List<String> words = new ArrayList<>(Collections.singleton(python));
    words.addAll(mark());
    if (confDir != null) {
      words.addAll(Arrays.asList("--conf-dir", confDir));
    }
    return words;
  }

  /** The words by which an agent of this node is told from all other processes. */
  List<String> mark() {
    return Arrays.asList("-m", MODULE, "--node", node);
  }
}
