package org.gandiva.yarn.job.client;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.security.SecureRandom;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.yarn.api.records.LocalResource;
import org.apache.hadoop.yarn.api.records.LocalResourceType;
import org.apache.hadoop.yarn.api.records.LocalResourceVisibility;
import org.apache.hadoop.yarn.api.records.URL;
import org.gandiva.yarn.job.JobKey;
import org.gandiva.yarn.job.JobNames;
import org.gandiva.yarn.job.JobSpec;
import org.gandiva.yarn.job.TaskType;

/** A job's folder in the default file system: its owner's alone, gone when the job has ended. */
final class Staging {
  private static final FsPermission FOLDER = new FsPermission((short) 0700);
  private static final FsPermission FILE = new FsPermission((short) 0600);
  private static final int SECRET_BYTES = 32;
  private static final String HOME_FOLDER = ".gandiva-staging";

  private final FileSystem files;
  private final org.apache.hadoop.fs.Path folder;

  Staging(FileSystem files, String configured, String application) {
    this.files = files;
    org.apache.hadoop.fs.Path base =
        configured.isEmpty()
            ? new org.apache.hadoop.fs.Path(files.getHomeDirectory(), HOME_FOLDER)
            : new org.apache.hadoop.fs.Path(configured);
    folder = files.makeQualified(new org.apache.hadoop.fs.Path(base, application));
  }

  org.apache.hadoop.fs.Path folder() {
    return folder;
  }

  /** Puts all there that master and tasks need. */
  void fill(JobSpec spec, File jar) throws IOException {
    if (!FileSystem.mkdirs(files, folder, FOLDER)) {
      throw new IOException("could not make " + folder);
    }
    copy(jar.toPath(), JobNames.JAR);
    write(JobNames.TOKEN, secret());
    write(JobNames.SETTINGS, properties(spec.values()));
    for (TaskType type : spec.types()) {
      byte[] script = TaskScript.of(spec, type).getBytes(StandardCharsets.UTF_8);
      write(JobNames.script(type.name()), script);
    }
    if (!spec.text(JobKey.SOURCE).isEmpty()) {
      try (OutputStream out = create(JobNames.SOURCE_LINK + ".zip")) {
        zip(Paths.get(spec.text(JobKey.SOURCE)), out);
      }
    }
    if (!spec.text(JobKey.VENV).isEmpty()) {
      Path venv = Paths.get(spec.text(JobKey.VENV));
      copy(venv, venv.getFileName().toString());
    }
  }

  /** What the master's container needs of it. */
  Map<String, LocalResource> ofMaster() throws IOException {
    Map<String, LocalResource> resources = new HashMap<>();
    for (String name : new String[] {JobNames.JAR, JobNames.TOKEN, JobNames.SETTINGS}) {
      FileStatus status = files.getFileStatus(new org.apache.hadoop.fs.Path(folder, name));
      resources.put(
          name,
          LocalResource.newInstance(
              URL.fromPath(status.getPath()),
              LocalResourceType.FILE,
              LocalResourceVisibility.APPLICATION,
              status.getLen(),
              status.getModificationTime()));
    }
    return resources;
  }

  void delete() throws IOException {
    files.delete(folder, true);
  }

  private void copy(Path from, String name) throws IOException {
    try (OutputStream out = create(name)) {
      Files.copy(from, out);
    }
  }

  private void write(String name, byte[] bytes) throws IOException {
    try (OutputStream out = create(name)) {
      out.write(bytes);
    }
  }

  private OutputStream create(String name) throws IOException {
    return FileSystem.create(files, new org.apache.hadoop.fs.Path(folder, name), FILE);
  }

  private static byte[] secret() {
    byte[] bytes = new byte[SECRET_BYTES];
    new SecureRandom().nextBytes(bytes);
    StringBuilder text = new StringBuilder();
    for (byte b : bytes) {
      text.append(String.format("%02x", b));
    }
    return text.toString().getBytes(StandardCharsets.US_ASCII);
  }

  private static byte[] properties(Map<String, String> values) throws IOException {
    Properties properties = new Properties();
    properties.putAll(values);
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    properties.store(out, "the job's keys");
    return out.toByteArray();
  }

  /**
   * Links to files are followed; a folder behind a link, which may be a whole data set, is left
   * out.
   */
  static void zip(Path folder, OutputStream out) throws IOException {
    try (ZipOutputStream zip = new ZipOutputStream(out);
        Stream<Path> all = Files.walk(folder)) {
      List<Path> sorted = all.filter(Files::isRegularFile).sorted().collect(Collectors.toList());
      for (Path file : sorted) {
        zip.putNextEntry(new ZipEntry(folder.relativize(file).toString()));
        Files.copy(file, zip);
        zip.closeEntry();
      }
    } catch (UncheckedIOException e) {
      throw e.getCause(); // Of the walk: a folder that may not be read.
    }
  }
}
