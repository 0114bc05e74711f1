package org.gandiva.yarn.core;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.util.Collections;

/** A fresh secret for a bridge that only the managed core uses: a 0600 file in a 0700 folder. */
final class OwnToken implements AutoCloseable {
  private static final String PREFIX = "bridge-";
  private static final String FILE = "token";
  private static final int BITS = 256;

  private final Path file;

  private OwnToken(Path file) {
    this.file = file;
  }

  static OwnToken create(Path parent) throws IOException {
    deleteOld(parent);
    Path folder =
        Files.createTempDirectory(
            parent,
            PREFIX + ownProcess() + "-",
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    Path file = folder.resolve(FILE);
    String token = String.format("%064x", new BigInteger(BITS, new SecureRandom()));
    Files.createFile(
        file, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
    Files.write(
        file,
        Collections.singleton(token),
        StandardCharsets.US_ASCII,
        StandardOpenOption.TRUNCATE_EXISTING);
    return new OwnToken(file);
  }

  /** A process that was killed has left its own. */
  private static void deleteOld(Path parent) throws IOException {
    try (DirectoryStream<Path> folders = Files.newDirectoryStream(parent, PREFIX + "*-*")) {
      for (Path folder : folders) {
        String name = folder.getFileName().toString();
        String process = name.substring(PREFIX.length(), name.lastIndexOf('-'));
        if (process.equals(ownProcess()) || !isRunning(process)) {
          delete(folder.resolve(FILE));
        }
      }
    }
  }

  /** One that has ended, and whose parent has not looked yet, has no command line any more. */
  private static boolean isRunning(String process) {
    try {
      return Files.readAllBytes(Paths.get("/proc", process, "cmdline")).length > 0;
    } catch (IOException e) {
      return false;
    }
  }

  /** Before Java 9 only its own name tells a JVM its number. */
  private static String ownProcess() {
    String name = ManagementFactory.getRuntimeMXBean().getName();
    return name.substring(0, Math.max(0, name.indexOf('@')));
  }

  private static void delete(Path file) throws IOException {
    Files.deleteIfExists(file);
    Files.deleteIfExists(file.getParent());
  }

  Path file() {
    return file;
  }

  @Override
  public void close() throws IOException {
    delete(file);
  }
}
