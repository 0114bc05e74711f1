package org.gandiva.yarn.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.entry;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.gandiva.yarn.GandivaConfiguration;
import org.gandiva.yarn.gateway.CallWatcher;
import org.gandiva.yarn.gateway.EventQueue;
import org.gandiva.yarn.gateway.GandivaGateway;
import org.gandiva.yarn.gateway.ProtocolException;
import org.gandiva.yarn.gateway.Substrate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The core as a child, played by shell scripts. */
class CoreServiceTest {
  @TempDir Path folder;

  private CoreService service;
  private long workMs;

  private final GandivaGateway gateway =
      new GandivaGateway(
          new Substrate() {
            @Override
            public String schedulerClass() {
              return "test";
            }

            @Override
            public List<ObjectNode> snapshot() {
              work();
              return Collections.emptyList();
            }

            @Override
            public void admit(String managed) throws ProtocolException {
              service.admit(managed);
            }

            @Override
            public CallWatcher callWatcher() {
              return service.watch();
            }

            @Override
            public ObjectNode apply(ObjectNode effect) {
              work();
              return effect;
            }
          },
          new EventQueue(10));

  private final Fallback fallback =
      new Fallback() {
        @Override
        public boolean isExclusive() {
          return false;
        }

        @Override
        public void engage() {}

        @Override
        public void lift() {}
      };

  @AfterEach
  void stop() {
    if (service != null) {
      service.stop();
    }
  }

  private void work() {
    try {
      Thread.sleep(workMs);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private CoreService start(String python) {
    Configuration conf = new Configuration(false);
    conf.set(GandivaConfiguration.CORE_PYTHON, python);
    conf.set(GandivaConfiguration.CORE_LOG_DIR, folder.resolve("logs").toString());
    service = new CoreService(gateway, fallback);
    service.start(conf);
    return service;
  }

  private String script(String... lines) throws IOException {
    Path file = folder.resolve("python");
    Files.write(
        file, ("#!/bin/sh\n" + String.join("\n", lines) + "\n").getBytes(StandardCharsets.UTF_8));
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwx------"));
    return file.toString();
  }

  private static void waitUntil(BooleanSupplier isSo, String what) throws InterruptedException {
    for (long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(30); !isSo.getAsBoolean(); ) {
      assertThat(System.nanoTime()).as("never: %s", what).isLessThan(until);
      Thread.sleep(20);
    }
  }

  private String told() {
    try {
      Path file = folder.resolve("logs").resolve("core.log");
      return Files.exists(file) ? new String(Files.readAllBytes(file), StandardCharsets.UTF_8) : "";
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  private List<String> lines() {
    return new ArrayList<>(Arrays.asList(told().split("\n", -1)));
  }

  private static boolean isAlive(String pid) {
    return Files.exists(Paths.get("/proc", pid));
  }

  @Test
  void theChildIsGivenWhatItNeedsInAScrubbedEnvironment() throws Exception {
    start(
        script(
            "echo \"args: $*\"", "env | sed 's/=.*//' | sort | tr '\\n' ' '", "echo :end", "cat"));
    waitUntil(() -> told().contains(":end"), "the child speaks");
    assertThat(told())
        .contains("args: -m gandiva_core core --managed ")
        .contains("--port " + service.bridgePort() + " ")
        .contains("--exit-after-lost-s 30")
        .contains("--journal-dir " + folder.resolve("logs").resolve("journal"));
    List<String> names = Arrays.asList(lines().get(1).split(" ", -1));
    assertThat(names)
        .contains("PATH")
        .doesNotContain("PYTHONPATH", "JAVA_HOME", "HADOOP_CONF_DIR", "MAVEN_OPTS", "USER");
  }

  @Test
  void theTokenIsPrivateAndGoesWithTheBridge() throws Exception {
    Path left = folder.resolve("logs").resolve("bridge-999999999-1");
    Path other = folder.resolve("logs").resolve("bridge-1-1");
    Files.createDirectories(left);
    Files.createDirectories(other);
    Files.createFile(left.resolve("token"));
    Files.createFile(other.resolve("token"));
    start(script("cat"));
    Path token;
    try (Stream<Path> files = Files.walk(folder.resolve("logs"))) {
      token =
          files
              .filter(f -> f.endsWith("token") && !f.startsWith(other))
              .findFirst()
              .orElseThrow(AssertionError::new);
    }
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(token)))
        .isEqualTo("rw-------");
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(token.getParent())))
        .isEqualTo("rwx------");
    assertThat(Files.readAllLines(token, StandardCharsets.US_ASCII).get(0)).hasSize(64);
    assertThat(left).as("of a process that was killed").doesNotExist();
    service.stop();
    assertThat(token.getParent()).doesNotExist();
    assertThat(other.resolve("token")).as("of a process that runs").exists();
  }

  /** As a ResourceManager that was killed, under a parent that does not look after it. */
  @Test
  void theTokenOfAProcessThatEndedGoesEvenIfNobodyNoticedItsEnd() throws Exception {
    Process parent = new ProcessBuilder("/bin/sh", "-c", "true & echo $!; exec sleep 60").start();
    try {
      BufferedReader said =
          new BufferedReader(
              new InputStreamReader(parent.getInputStream(), StandardCharsets.US_ASCII));
      String ended = said.readLine();
      Path left = folder.resolve("logs").resolve("bridge-" + ended + "-1");
      Files.createDirectories(left);
      waitUntil(
          () -> {
            try {
              return new String(
                      Files.readAllBytes(Paths.get("/proc", ended, "stat")),
                      StandardCharsets.US_ASCII)
                  .contains(") Z ");
            } catch (IOException e) {
              throw new AssertionError(e);
            }
          },
          "a process that ended and is still there");
      start(script("cat"));
      assertThat(left).doesNotExist();
    } finally {
      parent.destroyForcibly();
    }
  }

  @Test
  void stoppingReturnsAtOnceAndTheChildEnds() throws Exception {
    start(script("echo pid $$", "trap '' TERM", "cat", "echo bye"));
    waitUntil(() -> told().contains("pid "), "the child runs");
    String pid = told().trim().substring("pid ".length());
    service.stop();
    // Deaf to SIGTERM, it sees its input end.
    waitUntil(() -> !isAlive(pid), "the child has ended");
  }

  @Test
  void aChildThatEndsIsStartedAgainAsAnother() throws Exception {
    start(script("echo \"id $5\"", "exit 3"));
    waitUntil(() -> service.restarts() >= 1, "a second start");
    waitUntil(() -> lines().size() > 2, "two ids");
    assertThat(lines().get(0)).startsWith("id ").isNotEqualTo(lines().get(1));
    assertThat(service.alarm()).as("two ends are no alarm").isEmpty();
  }

  /** While we work on an answer, a core is not silent, however long that takes. */
  @Test
  void whoWaitsForAnAnswerIsNotSilent() throws Exception {
    start(script("echo \"id $5\"", "cat"));
    waitUntil(() -> told().contains("id "), "the child runs");
    String id = told().trim().substring("id ".length());
    gateway.hello("{\"protocol\":1,\"client\":\"test\",\"managed\":\"" + id + "\"}");
    workMs = 3 * CoreWatch.SILENCE_MS / 2;
    String effects = "[{\"id\":\"e\",\"op\":\"commit_gang\",\"code\":\"OK\"}]";
    gateway.apply("{\"epoch\":1,\"seq\":1,\"effects\":" + effects + "}");
    assertThat(service.watch().opens()).isZero();
    gateway.takeEvents("{\"epoch\":1}"); // with a snapshot
    assertThat(service.watch().opens()).isZero();
    assertThat(service.watch().state()).isEqualTo(CoreWatch.State.CONNECTED);
  }

  @Test
  void onlyTheYoungestChildIsAdmitted() throws Exception {
    start(script("echo \"id $5\"", "cat"));
    waitUntil(() -> told().contains("id "), "the child runs");
    String id = told().trim().substring("id ".length());
    String stranger = "{\"protocol\":1,\"client\":\"test\"}";
    assertThat(gateway.hello(stranger)).contains("\"kind\":\"MANAGED\"");
    String own = "{\"protocol\":1,\"client\":\"test\",\"managed\":\"" + id + "\"}";
    assertThat(gateway.hello(own)).contains("\"epoch\":1");
    assertThat(service.watch().state()).isEqualTo(CoreWatch.State.CONNECTED);
    assertThat(gateway.hello(stranger)).contains("MANAGED");
    assertThat(gateway.takeEvents("{\"epoch\":1}")).as("and ends nobody").contains("\"ok\":true");
  }

  @Test
  void anInterpreterThatIsMissingIsSaidInOneLineAndStopsNothing() throws Exception {
    start(folder.resolve("no-python").toString());
    waitUntil(() -> service.restarts() >= 1, "it was tried again");
    assertThat(service.bridgePort()).isPositive();
  }

  @Test
  void aFolderThatCannotBeMadeIsAnAlarmAndStopsNothing() throws Exception {
    Files.createFile(folder.resolve("logs"));
    start("python3");
    assertThat(service.alarm()).contains(GandivaConfiguration.CORE_LOG_DIR);
    assertThat(service.bridgePort()).isZero();
  }

  @Test
  void aPortThatIsTakenIsAnAlarmAndStopsNothing() throws Exception {
    try (ServerSocket other = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      Configuration conf = new Configuration(false);
      conf.set(GandivaConfiguration.CORE_LOG_DIR, folder.toString());
      conf.setInt(GandivaConfiguration.PORT, other.getLocalPort());
      service = new CoreService(gateway, fallback);
      service.start(conf);
      assertThat(service.alarm())
          .startsWith(GandivaConfiguration.PORT + ": ")
          .contains(Integer.toString(other.getLocalPort()))
          .doesNotContain("\n");
      assertThat(service.bridgePort()).isZero();
    }
  }

  @Test
  void aTokenFileOfTheSiteIsCheckedAsEver() throws Exception {
    Path token = folder.resolve("token");
    Files.write(token, "0123456789abcdef\n".getBytes(StandardCharsets.UTF_8));
    Files.setPosixFilePermissions(token, PosixFilePermissions.fromString("rw-r--r--"));
    Configuration conf = new Configuration(false);
    conf.set(GandivaConfiguration.CORE_LOG_DIR, folder.toString());
    conf.set(GandivaConfiguration.TOKEN_FILE, token.toString());
    service = new CoreService(gateway, fallback);
    assertThatThrownBy(() -> service.start(conf)).hasMessageContaining("expected rw------- (0600)");
  }

  @Test
  void aSitesOwnPythonPathIsNotTheCores() {
    Map<String, String> environment = new HashMap<>();
    environment.put("PYTHONPATH", "/spark/python");
    environment.put("GANDIVA_PYTHONPATH", "/work");
    environment.put("GANDIVA_QUANTUM_MS", "1");
    environment.put("AWS_SECRET_ACCESS_KEY", "x");
    assertThat(ChildEnvironment.scrubbed(environment))
        .containsOnly(entry("PYTHONPATH", "/work"), entry("GANDIVA_QUANTUM_MS", "1"));
  }
}
