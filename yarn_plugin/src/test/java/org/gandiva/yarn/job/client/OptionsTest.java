package org.gandiva.yarn.job.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.entry;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;
import org.gandiva.yarn.job.BadInputException;
import org.gandiva.yarn.job.JobSettings;
import org.gandiva.yarn.job.JobSpec;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The command line of the client, and the script that a task runs. */
class OptionsTest {
  @TempDir Path folder;

  private String file(String text) throws IOException {
    Path file = folder.resolve("job.xml");
    Files.write(file, text.getBytes(StandardCharsets.UTF_8));
    return file.toString();
  }

  @Test
  void theLineWinsOverTheFile() throws Exception {
    String file =
        file(
            "<configuration><property><name>tony.worker.gpus</name><value>1</value></property>"
                + "<property><name>a</name><value>b</value></property></configuration>");
    Options options =
        Options.of(
            new String[] {
              "-conf",
              "tony.worker.gpus=2",
              "-conf_file",
              file,
              "--executes",
              "train.py",
              "-task_params",
              "--epochs 3",
              "-detach"
            });
    assertThat(options.given())
        .containsEntry("tony.worker.gpus", "2")
        .containsEntry("a", "b")
        .containsEntry("gandiva.job.worker.command", "train.py --epochs 3");
    assertThat(options.isDetached()).isTrue();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "train.py||command line: found \"train.py\"",
        "-conf|novalue|-conf: found \"novalue\", expected KEY=VALUE",
        "-conf||-conf: found nothing after it",
        "-conf_file|/none|-conf_file: found \"/none\", expected a file that is there",
        "-nodes|3|command line: found \"-nodes\"",
      })
  void whatIsNoOptionIsOneLine(String first, String second, String said) {
    String[] args = second == null ? new String[] {first} : new String[] {first, second};
    assertThatThrownBy(() -> Options.of(args))
        .isInstanceOf(BadInputException.class)
        .hasMessageStartingWith(said);
  }

  @Test
  void aFileThatIsNoConfigurationIsOneLine() throws Exception {
    String file = file("<configuration><property>");
    assertThatThrownBy(() -> Options.of(new String[] {"-conf_file", file}))
        .isInstanceOf(BadInputException.class)
        .hasMessageStartingWith(file + ": found ")
        .hasMessageNotContaining("\n");
  }

  @Test
  void theScriptGivesTheCommandWhatItsOwnerWrote() throws Exception {
    Map<String, String> values = new HashMap<>();
    values.put("gandiva.job.worker.command", "printf '%s|' \"$A\" \"$PYTHONPATH\" \"a b\"; exit 3");
    values.put("gandiva.job.env", "A=it's $HOME \"x\",PYTHONPATH=/mine");
    JobSpec spec = JobSpec.of(new JobSettings(values));
    Path script = folder.resolve("s.sh");
    Files.write(script, TaskScript.of(spec, spec.types().get(0)).getBytes(StandardCharsets.UTF_8));
    ProcessBuilder builder = new ProcessBuilder("/bin/bash", script.toString());
    builder.environment().put("PYTHONPATH", "/hook");
    Process process = builder.start();
    byte[] out = new byte[4096];
    int read = process.getInputStream().read(out);
    assertThat(process.waitFor(10, TimeUnit.SECONDS)).isTrue();
    assertThat(process.exitValue()).isEqualTo(3);
    assertThat(new String(out, 0, read, StandardCharsets.UTF_8))
        .isEqualTo("it's $HOME \"x\"|/hook:/mine|a b|");
  }

  @Test
  void sourcesAreZippedWithTheirFolders() throws Exception {
    Files.createDirectories(folder.resolve("src/models"));
    Files.write(folder.resolve("src/models/net.py"), new byte[] {1, 2});
    Files.createDirectories(folder.resolve("data"));
    Files.write(folder.resolve("data/large"), new byte[] {3});
    Files.createSymbolicLink(folder.resolve("src/data"), folder.resolve("data"));
    Files.createSymbolicLink(folder.resolve("src/one"), folder.resolve("data/large"));
    Map<String, Integer> found = new HashMap<>();
    ByteArrayOutputStream zipped = new ByteArrayOutputStream();
    Staging.zip(folder.resolve("src"), zipped);
    try (ZipInputStream in = new ZipInputStream(new ByteArrayInputStream(zipped.toByteArray()))) {
      for (ZipEntry entry = in.getNextEntry(); entry != null; entry = in.getNextEntry()) {
        found.put(entry.getName(), in.read(new byte[10]));
      }
    }
    assertThat(found).containsOnly(entry("models/net.py", 2), entry("one", 1));
  }

  @Test
  void aJarInAFolderWithABlankIsFound() throws Exception {
    Path jar = folder.resolve("a folder").resolve("x.jar");
    assertThat(SubmitMain.fileOf(jar.toUri().toURL())).isEqualTo(jar.toFile());
  }
}
