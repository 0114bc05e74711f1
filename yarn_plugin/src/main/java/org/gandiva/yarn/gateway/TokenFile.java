package org.gandiva.yarn.gateway;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.EnumSet;
import java.util.Set;

/**
 * The secret that both ends of the bridge know. It lives in a file that only its owner may read,
 * and never on a command line or in a configuration value.
 */
public final class TokenFile {
  private static final int LENGTH_MIN = 16;
  private static final int LENGTH_MAX = 1024;
  private static final Set<PosixFilePermission> OWNER_ONLY =
      EnumSet.of(PosixFilePermission.OWNER_READ, PosixFilePermission.OWNER_WRITE);

  private TokenFile() {}

  /**
   * Reads the token.
   *
   * @throws IOException with one line for people when the file cannot be trusted
   */
  public static String read(Path file) throws IOException {
    if (!Files.isRegularFile(file)) {
      throw new IOException("token file " + file + ": not there, expected a file of mode 0600");
    }
    Set<PosixFilePermission> rights = Files.getPosixFilePermissions(file);
    if (!OWNER_ONLY.containsAll(rights)) {
      throw new IOException(
          "token file "
              + file
              + ": rights are "
              + PosixFilePermissions.toString(rights)
              + ", expected rw------- (0600)");
    }
    if (Files.size(file) > LENGTH_MAX) {
      throw new IOException("token file " + file + ": longer than " + LENGTH_MAX + " bytes");
    }
    String text = new String(Files.readAllBytes(file), StandardCharsets.UTF_8);
    return check(text.endsWith("\n") ? text.substring(0, text.length() - 1) : text, file);
  }

  private static String check(String token, Path file) throws IOException {
    if (token.indexOf('\n') >= 0 || token.indexOf('\r') >= 0) {
      throw new IOException("token file " + file + ": newline in the token, expected one line");
    }
    if (token.length() < LENGTH_MIN || !token.chars().allMatch(c -> c > ' ' && c < 127)) {
      throw new IOException(
          "token file " + file + ": expected at least " + LENGTH_MIN + " printable characters");
    }
    return token;
  }
}
