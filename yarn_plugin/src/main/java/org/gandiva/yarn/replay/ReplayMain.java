package org.gandiva.yarn.replay;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import org.gandiva.yarn.gateway.BridgeServer;
import org.gandiva.yarn.gateway.TokenFile;

/**
 * The JVM of a replay. It writes its port to a file, serves one driver, and ends when its standard
 * input closes: no JVM outlives the process that started it.
 */
public final class ReplayMain {
  private static final int USAGE = 2;
  private static final int BAD_INPUT = 3;

  private ReplayMain() {}

  /** Arguments: --token-file FILE --port-file FILE. */
  public static void main(String[] args) throws IOException {
    Path tokenFile = null;
    Path portFile = null;
    for (int i = 0; i + 1 < args.length; i += 2) {
      if (args[i].equals("--token-file")) {
        tokenFile = Paths.get(args[i + 1]);
      } else if (args[i].equals("--port-file")) {
        portFile = Paths.get(args[i + 1]);
      }
    }
    if (tokenFile == null || portFile == null || args.length != 4) {
      end(USAGE, "usage: ReplayMain --token-file FILE --port-file FILE");
      return;
    }
    String token;
    try {
      token = TokenFile.read(tokenFile);
    } catch (IOException e) {
      end(BAD_INPUT, e.getMessage());
      return;
    }
    serve(token, portFile);
  }

  private static void serve(String token, Path portFile) throws IOException {
    try (BridgeServer server = BridgeServer.start(new ReplayEntryPoint(), token, 0, 0)) {
      writePort(server.port(), portFile);
      byte[] ignored = new byte[256];
      while (System.in.read(ignored) >= 0) {
        // Whatever is written to it: only its end matters.
      }
    }
    // The ResourceManager's own threads may still run; nothing of theirs is worth waiting for.
    Runtime.getRuntime().halt(0);
  }

  private static void writePort(int port, Path portFile) throws IOException {
    Path partial = portFile.resolveSibling(portFile.getFileName() + ".partial");
    Files.write(partial, (port + "\n").getBytes(StandardCharsets.UTF_8));
    Files.move(
        partial, portFile, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
  }

  private static void end(int code, String line) {
    System.err.println(line);
    System.exit(code);
  }
}
