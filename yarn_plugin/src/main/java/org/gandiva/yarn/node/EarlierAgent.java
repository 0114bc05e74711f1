package org.gandiva.yarn.node;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An agent that a killed NodeManager left behind. It goes on serving its jobs until a new
 * NodeManager starts its own, which takes them over: then the old one is told to end, and only it.
 */
final class EarlierAgent {
  private static final Logger LOG = LoggerFactory.getLogger(EarlierAgent.class);
  private static final Path PROC = Paths.get("/proc");
  private static final long WAIT_S = 10;
  private static final long LOOK_MS = 100;

  private EarlierAgent() {}

  /** Ends every process whose command line has these words, one after the other; waits for it. */
  static void end(List<String> mark) throws IOException, InterruptedException {
    long untilNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_S);
    List<String> found = find(mark);
    for (String pid : found) {
      LOG.info("An agent of an earlier NodeManager, process {}, is told to end", pid);
      signal("-TERM", pid);
    }
    while (!found.isEmpty() && System.nanoTime() < untilNs) {
      Thread.sleep(LOOK_MS);
      found = find(mark);
    }
    for (String pid : found) {
      LOG.warn("Process {} did not end: it is killed", pid);
      signal("-KILL", pid);
    }
  }

  static List<String> find(List<String> mark) throws IOException {
    List<String> found = new ArrayList<>();
    try (DirectoryStream<Path> all = Files.newDirectoryStream(PROC, "[0-9]*")) {
      for (Path each : all) {
        if (Collections.indexOfSubList(words(each), mark) > 0) {
          found.add(each.getFileName().toString());
        }
      }
    }
    return found;
  }

  /** None for a process that has ended meanwhile, or that is not ours to look at. */
  private static List<String> words(Path process) {
    try {
      byte[] line = Files.readAllBytes(process.resolve("cmdline"));
      return Arrays.asList(new String(line, StandardCharsets.UTF_8).split("\0", -1));
    } catch (IOException e) {
      return Collections.emptyList();
    }
  }

  private static void signal(String which, String pid) throws IOException, InterruptedException {
    new ProcessBuilder("kill", which, pid).start().waitFor();
  }
}
