package org.gandiva.yarn.core;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Output of a process in files of bounded size: NAME, NAME.1, NAME.2 …, the last dropped. A disk
 * that is full loses output and stops nobody.
 */
public final class RotatedLog {
  private static final Logger LOG = LoggerFactory.getLogger(RotatedLog.class);
  private static final int LINE_LENGTH_MAX = 300;

  private final Path file;
  private final long bytesMax;
  private final int filesMax;
  private final StringBuilder line = new StringBuilder();
  private volatile String lastLine = "";
  private boolean hasFailed;

  /** Creates it; the file comes to be with the first output. */
  public RotatedLog(Path file, long bytesMax, int filesMax) {
    this.file = file;
    this.bytesMax = bytesMax;
    this.filesMax = filesMax;
  }

  Path file() {
    return file;
  }

  /** Returns the last line that was not blank, cut where it is long. */
  String lastLine() {
    return lastLine;
  }

  /** Copies all of a stream, until it ends. */
  void copy(InputStream in) throws IOException {
    lastLine = "";
    byte[] buffer = new byte[8192];
    for (int read = in.read(buffer); read >= 0; read = in.read(buffer)) {
      remember(new String(buffer, 0, read, StandardCharsets.UTF_8));
      write(buffer, read);
    }
    endLine();
  }

  private void remember(String text) {
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '\n') {
        endLine();
      } else if (line.length() < LINE_LENGTH_MAX) {
        line.append(Character.isISOControl(c) ? ' ' : c);
      }
    }
  }

  private void endLine() {
    String ended = line.toString().trim();
    line.setLength(0);
    if (!ended.isEmpty()) {
      lastLine = ended;
    }
  }

  private void write(byte[] buffer, int length) {
    try {
      if (Files.exists(file) && Files.size(file) + length > bytesMax) {
        rotate();
      }
      try (OutputStream out =
          Files.newOutputStream(file, StandardOpenOption.CREATE, StandardOpenOption.APPEND)) {
        out.write(buffer, 0, length);
      }
      hasFailed = false;
    } catch (IOException e) {
      if (!hasFailed) {
        LOG.warn("Output is lost: {}", e.toString());
      }
      hasFailed = true;
    }
  }

  private void rotate() throws IOException {
    for (int i = filesMax - 1; i > 0; i--) {
      Path from = i == 1 ? file : numbered(i - 1);
      if (Files.exists(from)) {
        Files.move(from, numbered(i), StandardCopyOption.REPLACE_EXISTING);
      }
    }
  }

  private Path numbered(int number) {
    return file.resolveSibling(file.getFileName() + "." + number);
  }
}
