package org.gandiva.yarn.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

class BoundedSocketsTest {
  private static InputStream lines(String text, int max) {
    return new BoundedSockets.BoundedLines(
        new ByteArrayInputStream(text.getBytes(StandardCharsets.US_ASCII)), max);
  }

  @Test
  void manyShortLinesPassAndALongOneDoesNot() throws IOException {
    assertThat(lines("abcd\nefgh\n", 4).read(new byte[64])).isEqualTo(10);
    InputStream tooLong = lines("abcd\nefghi\n", 4);
    assertThatThrownBy(() -> tooLong.read(new byte[64])).hasMessageContaining("more than 4 bytes");
  }

  @Test
  void socketsSendAtOnceAndAreLimitedInNumber() throws IOException {
    try (ServerSocket server = new BoundedSockets(1024, 1).createServerSocket()) {
      server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
      try (Socket first = new Socket(InetAddress.getLoopbackAddress(), server.getLocalPort())) {
        try (Socket accepted = server.accept();
            Socket second = new Socket(InetAddress.getLoopbackAddress(), server.getLocalPort())) {
          assertThat(accepted.getTcpNoDelay()).isTrue();
          server.setSoTimeout(200);
          assertThatThrownBy(server::accept).hasMessageContaining("timed out");
          assertThat(second.getInputStream().read()).isEqualTo(-1);
        }
        assertThat(first.getInputStream().read()).isEqualTo(-1);
      }
    }
  }
}
