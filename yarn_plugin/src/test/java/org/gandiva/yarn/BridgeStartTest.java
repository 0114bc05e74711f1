package org.gandiva.yarn;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.gandiva.yarn.replay.Rig;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The bridge of a ResourceManager that opens it itself, as a live one does. */
class BridgeStartTest {
  private static final String TOKEN = "a-token-of-the-test-0123456789";

  @TempDir Path folder;

  private Rig rig(String rights) throws IOException {
    Path file = folder.resolve("token");
    Files.write(file, (TOKEN + "\n").getBytes(StandardCharsets.UTF_8));
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(rights));
    return Rig.gandiva(4).with(GandivaConfiguration.TOKEN_FILE, file.toString());
  }

  private static String say(int port, String... lines) throws IOException {
    try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
      socket.setSoTimeout(5000);
      OutputStream out = socket.getOutputStream();
      out.write((String.join("\n", lines) + "\n").getBytes(StandardCharsets.UTF_8));
      out.flush();
      BufferedReader in =
          new BufferedReader(
              new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
      String answer = in.readLine();
      return lines[0].equals("A") && answer != null ? in.readLine() : answer;
    }
  }

  @Test
  void aClientWithTheTokenIsServed() throws IOException {
    try (Rig rig = rig("rw-------").start()) {
      int port = rig.scheduler().bridgePort();
      assertThat(port).isPositive();
      String hello = "s{\"client\":\"test\",\"protocol\":1}";
      assertThat(say(port, "A", TOKEN, "c", "t", "hello", hello, "e"))
          .startsWith("!ys")
          .contains("epoch")
          .contains(GandivaScheduler.class.getName());
    }
  }

  @Test
  void aClientWithoutItIsNot() throws IOException {
    try (Rig rig = rig("rw-------").start()) {
      int port = rig.scheduler().bridgePort();
      String answer;
      try {
        answer = say(port, "c", "t", "hello", "s{\"client\":\"x\",\"protocol\":1}", "e");
      } catch (IOException e) {
        answer = null; // Cut off, which is as good.
      }
      assertThat(String.valueOf(answer)).doesNotContain("epoch");
      assertThat(rig.hello()).isEqualTo(2);
    }
  }

  @Test
  void aTokenFileThatOthersMayReadStopsTheStartWithOneLine() throws IOException {
    Rig rig = rig("rw-r--r--");
    assertThatThrownBy(rig::start)
        .hasMessageContaining(GandivaConfiguration.TOKEN_FILE)
        .hasMessageContaining("rw-r--r--, expected rw------- (0600)");
  }

  @Test
  void aHeightThatIsNoNumberNamesItsKey() {
    Rig rig = Rig.gandiva(4).with(GandivaConfiguration.HEIGHT_MAX, "tall");
    assertThatThrownBy(rig::start)
        .hasMessageContaining("yarn.scheduler.gandiva.height.max: found \\\"tall\\\"");
  }
}
