package org.gandiva.yarn.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TokenFileTest {
  private static final String TOKEN = "0123456789abcdef";

  @TempDir Path folder;

  private Path file(String content, String rights) throws IOException {
    Path file = folder.resolve("token");
    Files.write(file, content.getBytes(StandardCharsets.UTF_8));
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(rights));
    return file;
  }

  @Test
  void oneTrailingNewlineIsNoPartOfTheToken() throws IOException {
    assertThat(TokenFile.read(file(TOKEN + "\n", "rw-------"))).isEqualTo(TOKEN);
    assertThat(TokenFile.read(file(TOKEN, "r--------"))).isEqualTo(TOKEN);
  }

  @Test
  void aFileThatOthersMayReadIsRefused() throws IOException {
    Path file = file(TOKEN, "rw-r-----");
    assertThatThrownBy(() -> TokenFile.read(file))
        .hasMessageContaining("rw-r-----")
        .hasMessageContaining("0600");
  }

  /** Case C05: a token with a newline is told, and not tried. */
  @Test
  void aNewlineInsideIsRefused() throws IOException {
    for (String content : new String[] {TOKEN + "\n" + TOKEN, TOKEN + "\n\n", TOKEN + "\r\n"}) {
      Path file = file(content, "rw-------");
      assertThatThrownBy(() -> TokenFile.read(file)).hasMessageContaining("newline");
    }
  }

  @Test
  void shortBlankOrAbsentTokensAreRefused() throws IOException {
    Path file = file("short", "rw-------");
    assertThatThrownBy(() -> TokenFile.read(file)).hasMessageContaining("at least 16");
    assertThatThrownBy(() -> TokenFile.read(folder.resolve("none")))
        .hasMessageContaining("not there");
  }
}
