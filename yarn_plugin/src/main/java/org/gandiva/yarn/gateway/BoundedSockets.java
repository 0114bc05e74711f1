package org.gandiva.yarn.gateway;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.ServerSocketFactory;

/**
 * Server sockets that send at once and accept only so much: without TCP_NODELAY replies above 8 KiB
 * wait 40 ms, and a client that never ends its line would fill the heap.
 */
final class BoundedSockets extends ServerSocketFactory {
  private final int lineBytesMax;
  private final int connectionsMax;

  BoundedSockets(int lineBytesMax, int connectionsMax) {
    this.lineBytesMax = lineBytesMax;
    this.connectionsMax = connectionsMax;
  }

  @Override
  public ServerSocket createServerSocket() throws IOException {
    return new BoundedServerSocket(lineBytesMax, connectionsMax);
  }

  @Override
  public ServerSocket createServerSocket(int port) {
    throw new UnsupportedOperationException("the bridge binds by itself");
  }

  @Override
  public ServerSocket createServerSocket(int port, int backlog) {
    throw new UnsupportedOperationException("the bridge binds by itself");
  }

  @Override
  public ServerSocket createServerSocket(int port, int backlog, InetAddress address) {
    throw new UnsupportedOperationException("the bridge binds by itself");
  }

  private static final class BoundedServerSocket extends ServerSocket {
    private final AtomicInteger open = new AtomicInteger();
    private final int lineBytesMax;
    private final int connectionsMax;

    BoundedServerSocket(int lineBytesMax, int connectionsMax) throws IOException {
      this.lineBytesMax = lineBytesMax;
      this.connectionsMax = connectionsMax;
    }

    @Override
    public Socket accept() throws IOException {
      while (true) {
        BoundedSocket socket = new BoundedSocket(open, lineBytesMax);
        implAccept(socket);
        if (open.incrementAndGet() <= connectionsMax) {
          socket.setTcpNoDelay(true);
          return socket;
        }
        socket.close();
      }
    }
  }

  private static final class BoundedSocket extends Socket {
    private final AtomicInteger open;
    private final int lineBytesMax;
    private boolean isCounted = true;
    private InputStream bounded;

    BoundedSocket(AtomicInteger open, int lineBytesMax) {
      this.open = open;
      this.lineBytesMax = lineBytesMax;
    }

    @Override
    public synchronized InputStream getInputStream() throws IOException {
      if (bounded == null) {
        bounded = new BoundedLines(super.getInputStream(), lineBytesMax);
      }
      return bounded;
    }

    @Override
    public synchronized void close() throws IOException {
      if (isCounted) {
        isCounted = false;
        open.decrementAndGet();
      }
      super.close();
    }
  }

  /** Fails as soon as a line grows over its bound. */
  static final class BoundedLines extends FilterInputStream {
    private final int lineBytesMax;
    private int lineBytes;

    BoundedLines(InputStream in, int lineBytesMax) {
      super(in);
      this.lineBytesMax = lineBytesMax;
    }

    @Override
    public int read() throws IOException {
      int read = super.read();
      if (read >= 0) {
        count((byte) read);
      }
      return read;
    }

    @Override
    public int read(byte[] buffer, int offset, int length) throws IOException {
      int read = super.read(buffer, offset, length);
      for (int i = 0; i < read; i++) {
        count(buffer[offset + i]);
      }
      return read;
    }

    private void count(byte read) throws IOException {
      lineBytes = read == '\n' ? 0 : lineBytes + 1;
      if (lineBytes > lineBytesMax) {
        throw new IOException("a line of more than " + lineBytesMax + " bytes was sent");
      }
    }
  }
}
