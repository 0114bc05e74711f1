package org.gandiva.yarn.node;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.exceptions.YarnRuntimeException;
import org.gandiva.yarn.GandivaConfiguration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The agent as a child of a NodeManager, with a script that stands in for the interpreter. */
class AgentServiceTest {
  private static final int PATIENCE_S = 20;
  private static final String NODE = "127.0.0.1:45454";

  @TempDir Path folder;
  private AgentService service;

  private Configuration conf(String script) throws IOException {
    Path python = folder.resolve("python");
    Files.write(python, ("#!/bin/bash\n" + script).getBytes(StandardCharsets.UTF_8));
    Files.setPosixFilePermissions(python, PosixFilePermissions.fromString("rwx------"));
    Configuration conf = new Configuration(false);
    conf.set(YarnConfiguration.NM_ADDRESS, NODE);
    conf.set(GandivaConfiguration.AGENT_PYTHON, python.toString());
    conf.set(GandivaConfiguration.AGENT_LOG_DIR, folder.resolve("logs").toString());
    return conf;
  }

  private void start(Configuration conf) {
    service = new AgentService();
    service.init(conf);
    service.start();
  }

  @AfterEach
  void stop() {
    if (service != null) {
      service.stop();
    }
  }

  private static List<String> mark() {
    return new AgentCommand("python3", "localhost:45454", null, null).mark();
  }

  private static void await(String what, java.util.concurrent.Callable<Boolean> isSo)
      throws Exception {
    long untilNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
    while (!isSo.call()) {
      assertThat(System.nanoTime()).as(what).isLessThan(untilNs);
      Thread.sleep(50);
    }
  }

  private String said() throws IOException {
    Path log = folder.resolve("logs/agent.log");
    return Files.exists(log) ? new String(Files.readAllBytes(log), StandardCharsets.UTF_8) : "";
  }

  @Test
  void itIsStartedWithItsNodeAndStartedAgainWhenItEnds() throws Exception {
    start(conf("echo \"$@\"\n"));
    await("started twice", () -> said().split("\n", -1).length > 2);
    assertThat(said()).startsWith("-m nodemanager_agent --node localhost:45454\n");
  }

  @Test
  void itEndsWithItsNodeManager() throws Exception {
    Path told = folder.resolve("told");
    start(conf("trap 'touch " + told + "; exit 0' TERM\necho up\nwhile :; do sleep 0.1; done\n"));
    await("up", () -> said().contains("up"));
    service.stop();
    await("told", () -> Files.exists(told));
    await("gone", () -> EarlierAgent.find(mark()).isEmpty());
  }

  @Test
  void whatAKilledNodeManagerLeftBehindIsEndedAndNobodyElse() throws Exception {
    Configuration conf = conf("echo up\nwhile :; do sleep 0.1; done\n");
    String python = conf.get(GandivaConfiguration.AGENT_PYTHON);
    Process left =
        new ProcessBuilder(python, "-m", "nodemanager_agent", "--node", "localhost:45454").start();
    Process others =
        new ProcessBuilder(python, "-m", "nodemanager_agent", "--node", "localhost:45455").start();
    try {
      await("there", () -> EarlierAgent.find(mark()).size() == 1);
      start(conf);
      assertThat(left.waitFor(PATIENCE_S, TimeUnit.SECONDS)).isTrue();
      assertThat(others.isAlive()).isTrue();
      await("its own", () -> EarlierAgent.find(mark()).size() == 1);
    } finally {
      left.destroyForcibly();
      others.destroyForcibly();
    }
  }

  @Test
  void anInterpreterThatIsNotThereKeepsNoNodeManagerFromStarting() throws Exception {
    Configuration conf = conf("");
    conf.set(GandivaConfiguration.AGENT_PYTHON, folder.resolve("none").toString());
    start(conf);
    assertThat(service.isInState(org.apache.hadoop.service.Service.STATE.STARTED)).isTrue();
  }

  @Test
  void aPortThatChangesIsRefusedByItsKey() {
    Configuration conf = new Configuration(false);
    assertThatThrownBy(() -> AgentService.nodeOf(conf))
        .isInstanceOf(YarnRuntimeException.class)
        .hasMessage("yarn.nodemanager.address: found port 0, expected one that stays the same");
    conf.set(YarnConfiguration.NM_ADDRESS, "127.0.0.11:8041");
    assertThat(AgentService.nodeOf(conf)).isEqualTo("127.0.0.11:8041");
  }
}
