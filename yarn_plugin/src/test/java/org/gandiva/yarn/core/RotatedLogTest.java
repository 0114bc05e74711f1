package org.gandiva.yarn.core;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RotatedLogTest {
  @TempDir Path folder;

  private static InputStream stream(String text) {
    return new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8));
  }

  private static String read(Path file) throws IOException {
    return new String(Files.readAllBytes(file), StandardCharsets.UTF_8);
  }

  @Test
  void filesAreBoundedAndTheOldestGoes() throws IOException {
    RotatedLog log = new RotatedLog(folder.resolve("core.log"), 10, 3);
    for (String text : new String[] {"one-1111\n", "two-2222\n", "three-33\n", "four-444\n"}) {
      log.copy(stream(text));
    }
    assertThat(read(folder.resolve("core.log"))).isEqualTo("four-444\n");
    assertThat(read(folder.resolve("core.log.1"))).isEqualTo("three-33\n");
    assertThat(read(folder.resolve("core.log.2"))).isEqualTo("two-2222\n");
    assertThat(folder.resolve("core.log.3")).doesNotExist();
  }

  @Test
  void theLastLineIsOneLineOfPlainText() throws IOException {
    RotatedLog log = new RotatedLog(folder.resolve("core.log"), 1000, 2);
    log.copy(stream("first\nforged\u001b[2J line\r\n\n  \n"));
    assertThat(log.lastLine()).isEqualTo("forged [2J line");
    log.copy(stream("no newline"));
    assertThat(log.lastLine()).isEqualTo("no newline");
  }

  @Test
  void aFolderThatIsGoneStopsNobody() throws IOException {
    RotatedLog log = new RotatedLog(folder.resolve("gone").resolve("core.log"), 1000, 2);
    log.copy(stream("lost\n"));
    assertThat(log.lastLine()).isEqualTo("lost");
  }
}
