package org.gandiva.yarn.gateway;

import java.io.IOException;
import java.net.InetAddress;
import py4j.GatewayServer;
import py4j.Py4JNetworkException;

/** Listens on loopback for the core process. Nothing here ever calls Python. */
public final class BridgeServer implements AutoCloseable {
  /** What one message may hold, escapes included. */
  public static final int MESSAGE_BYTES_MAX = 20 * 1024 * 1024;

  private static final int CONNECTIONS_MAX = 32;

  private final GatewayServer server;

  private BridgeServer(GatewayServer server) {
    this.server = server;
  }

  /**
   * Starts to listen.
   *
   * @param entryPoint the object whose methods the client may call
   * @param token the secret of {@link TokenFile}
   * @param port 0 for any free one
   * @param readTimeoutMs an idle connection is closed after it; 0 keeps it for ever
   * @throws IOException the port cannot be used
   */
  public static BridgeServer start(Object entryPoint, String token, int port, int readTimeoutMs)
      throws IOException {
    // The connect time-out of py4j would close the listener itself when nobody connects: none.
    GatewayServer server =
        new GatewayServer.GatewayServerBuilder(entryPoint)
            .javaAddress(InetAddress.getLoopbackAddress())
            .javaPort(port)
            .readTimeout(readTimeoutMs)
            .serverSocketFactory(new BoundedSockets(MESSAGE_BYTES_MAX, CONNECTIONS_MAX))
            .authToken(token)
            .build();
    try {
      server.start();
    } catch (Py4JNetworkException e) {
      throw new IOException("loopback port " + port + " cannot be used: " + e.getMessage(), e);
    }
    return new BridgeServer(server);
  }

  /** Returns the port in use. */
  public int port() {
    return server.getListeningPort();
  }

  @Override
  public void close() {
    server.shutdown();
  }
}
