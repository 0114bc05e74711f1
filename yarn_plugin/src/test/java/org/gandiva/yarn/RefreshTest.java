package org.gandiva.yarn;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code yarn rmadmin -refreshQueues} with a shop's files, read as the ResourceManager does. */
class RefreshTest {
  private static final String QUEUE = "yarn.scheduler.capacity.root.";

  private final ClassLoader before = Thread.currentThread().getContextClassLoader();
  private final TreeMap<String, String> site = new TreeMap<>();
  private final TreeMap<String, String> queues = new TreeMap<>();
  @TempDir Path folder;

  @BeforeEach
  void aSite() throws IOException {
    // Hadoop finds its files on the class path.
    Thread.currentThread()
        .setContextClassLoader(new URLClassLoader(new URL[] {folder.toUri().toURL()}, before));
    site.put("yarn.resourcemanager.scheduler.class", GandivaScheduler.class.getName());
    site.put("yarn.resource-types", "yarn.io/gpu");
    queues.put(
        "yarn.scheduler.capacity.resource-calculator",
        "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator");
    queues.put(QUEUE + "queues", "a,b");
    queues.put(QUEUE + "a.capacity", "50");
    queues.put(QUEUE + "b.capacity", "50");
    write();
  }

  @AfterEach
  void restore() {
    Thread.currentThread().setContextClassLoader(before);
  }

  private void write() throws IOException {
    write("yarn-site.xml", site);
    write("capacity-scheduler.xml", queues);
  }

  private void write(String file, Map<String, String> properties) throws IOException {
    StringBuilder xml = new StringBuilder("<configuration>\n");
    properties.forEach(
        (key, value) ->
            xml.append("<property><name>")
                .append(key)
                .append("</name><value>")
                .append(value)
                .append("</value></property>\n"));
    Files.write(
        folder.resolve(file),
        xml.append("</configuration>\n").toString().getBytes(StandardCharsets.UTF_8));
  }

  @Test
  void keysComeFromTheFilesAsTheyAreNow() throws Exception {
    try (Rig rig = Rig.fromFiles(folder)) {
      rig.nodes(1, 4);
      site.put(GandivaConfiguration.MODE, "place");
      write();
      rig.refreshFromFiles();
      assertThat(rig.scheduler().adoption().mode()).isEqualTo(Mode.PLACE);
      // The scheduler's own file is read later, and wins.
      queues.put(GandivaConfiguration.MODE, "full");
      queues.put(GandivaConfiguration.QUEUES, "b");
      write();
      rig.refreshFromFiles();
      assertThat(rig.scheduler().adoption().mode()).isEqualTo(Mode.FULL);
      assertThat(rig.scheduler().adoption().adopts("root.a", "")).isFalse();
      queues.put(QUEUE + "queues", "a,b,c");
      queues.put(QUEUE + "b.capacity", "30");
      queues.put(QUEUE + "c.capacity", "20");
      queues.put(GandivaConfiguration.QUEUES, "c");
      write();
      rig.refreshFromFiles();
      assertThat(rig.scheduler().adoption().adopts("root.c", "")).isTrue();
      // What is taken out of the files is back at its default.
      queues.remove(GandivaConfiguration.MODE);
      site.remove(GandivaConfiguration.MODE);
      write();
      rig.refreshFromFiles();
      assertThat(rig.scheduler().adoption().mode()).isEqualTo(Mode.OBSERVE);
    }
  }

  @Test
  void aMistakeChangesNothingAtAll() throws Exception {
    try (Rig rig = Rig.fromFiles(folder)) {
      site.put(GandivaConfiguration.MODE, "place");
      write();
      rig.refreshFromFiles();
      queues.put(QUEUE + "a.capacity", "20");
      queues.put(QUEUE + "b.capacity", "80");
      queues.put(QUEUE + "b.gandiva.packing", "maybe");
      site.put(GandivaConfiguration.MODE, "full");
      write();
      assertThatThrownBy(rig::refreshFromFiles)
          .isInstanceOf(IOException.class)
          .hasMessage(
              QUEUE
                  + "b.gandiva.packing: found \"maybe\", expected true or false; what was in force"
                  + " before stays in force");
      assertThat(rig.scheduler().adoption().mode()).isEqualTo(Mode.PLACE);
      assertThat(rig.scheduler().getQueue("a").getQueueInfo(false, false).getCapacity())
          .isEqualTo(0.5f);
      // Hadoop's own refusal leaves ours as it was, too.
      queues.remove(QUEUE + "b.gandiva.packing");
      queues.put(QUEUE + "b.capacity", "70");
      write();
      assertThatThrownBy(rig::refreshFromFiles).isInstanceOf(IOException.class);
      assertThat(rig.scheduler().adoption().mode()).isEqualTo(Mode.PLACE);
    }
  }
}
