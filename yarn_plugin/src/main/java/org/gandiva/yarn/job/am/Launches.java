package org.gandiva.yarn.job.am;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.DataOutputBuffer;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.api.ApplicationConstants;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.LocalResource;
import org.apache.hadoop.yarn.api.records.LocalResourceType;
import org.apache.hadoop.yarn.api.records.LocalResourceVisibility;
import org.apache.hadoop.yarn.api.records.URL;
import org.apache.hadoop.yarn.security.AMRMTokenIdentifier;
import org.gandiva.yarn.job.JobKey;
import org.gandiva.yarn.job.JobNames;
import org.gandiva.yarn.job.JobSpec;
import org.gandiva.yarn.job.TaskType;

/** How a task is started: files, environment, command. */
final class Launches {
  private final JobSpec spec;
  private final int tasks;
  private final Map<String, LocalResource> shared = new HashMap<>();
  private final Map<String, LocalResource> scripts = new HashMap<>();
  private final ByteBuffer tokens;
  private final String application;
  private final String url;

  /**
   * Looks at the job's files.
   *
   * @param staging the job's folder
   * @param url where tasks find the master
   */
  Launches(JobSpec spec, FileSystem files, Path staging, String application, String url)
      throws IOException {
    this.spec = spec;
    this.tasks = spec.types().stream().mapToInt(TaskType::instances).sum();
    this.application = application;
    this.url = url;
    this.tokens = tokens();
    share(files, staging, JobNames.JAR, JobNames.CLIENT_LINK, LocalResourceType.ARCHIVE);
    share(files, staging, JobNames.TOKEN, JobNames.TOKEN, LocalResourceType.FILE);
    if (!spec.text(JobKey.SOURCE).isEmpty()) {
      String archive = JobNames.SOURCE_LINK + ".zip";
      share(files, staging, archive, JobNames.SOURCE_LINK, LocalResourceType.ARCHIVE);
    }
    if (!spec.text(JobKey.VENV).isEmpty()) {
      String archive = new Path(spec.text(JobKey.VENV)).getName();
      share(files, staging, archive, JobNames.VENV_LINK, LocalResourceType.ARCHIVE);
    }
    for (TaskType type : spec.types()) {
      Path script = new Path(staging, JobNames.script(type.name()));
      scripts.put(type.name(), resource(files, script, LocalResourceType.FILE));
    }
  }

  private void share(
      FileSystem files, Path staging, String name, String link, LocalResourceType type)
      throws IOException {
    shared.put(link, resource(files, new Path(staging, name), type));
  }

  private static LocalResource resource(FileSystem files, Path path, LocalResourceType type)
      throws IOException {
    FileStatus status = files.getFileStatus(path);
    return LocalResource.newInstance(
        URL.fromPath(status.getPath()),
        type,
        LocalResourceVisibility.APPLICATION,
        status.getLen(),
        status.getModificationTime());
  }

  /** The master's own token is no task's. */
  private static ByteBuffer tokens() throws IOException {
    Credentials credentials =
        new Credentials(UserGroupInformation.getCurrentUser().getCredentials());
    Credentials kept = new Credentials();
    credentials.getAllTokens().stream()
        .filter(token -> !token.getKind().equals(AMRMTokenIdentifier.KIND_NAME))
        .forEach(token -> kept.addToken(token.getService(), token));
    DataOutputBuffer buffer = new DataOutputBuffer();
    kept.writeTokenStorageToStream(buffer);
    return ByteBuffer.wrap(buffer.getData(), 0, buffer.getLength());
  }

  ContainerLaunchContext context(Slot slot, int generation, String from) {
    Map<String, LocalResource> resources = new HashMap<>(shared);
    String type = slot.type().name();
    resources.put(JobNames.script(type), scripts.get(type));
    return ContainerLaunchContext.newInstance(
        resources,
        environment(slot, generation, from),
        Collections.singletonList(command(slot.type())),
        Collections.emptyMap(),
        tokens.duplicate(),
        Collections.emptyMap());
  }

  Map<String, String> environment(Slot slot, int generation, String from) {
    Map<String, String> environment = new HashMap<>();
    environment.put("PYTHONPATH", "$PWD/" + JobNames.CLIENT_LINK + "/" + JobNames.PYTHON_FOLDER);
    environment.put("GANDIVA_JOB_ID", application);
    environment.put("GANDIVA_JOB_TYPE", spec.framework());
    environment.put("GANDIVA_TASK_TYPE", slot.type().name());
    environment.put("GANDIVA_TASK_INDEX", Integer.toString(slot.index()));
    environment.put("GANDIVA_RANK", Integer.toString(slot.rank()));
    environment.put("GANDIVA_WORLD_SIZE", Integer.toString(spec.types().get(0).instances()));
    environment.put("GANDIVA_TASKS", Integer.toString(tasks));
    environment.put("GANDIVA_GPUS", Integer.toString(slot.type().gpus()));
    environment.put("GANDIVA_GENERATION", Integer.toString(generation));
    environment.put("GANDIVA_AM_URL", url);
    if (!from.isEmpty()) {
      environment.put("GANDIVA_MOVE_FROM", from);
    }
    if (spec.mayResize()) {
      environment.put("GANDIVA_RESIZE", "allow");
    }
    if (slot.joins > 0) {
      environment.put("GANDIVA_JOINS", "true");
      environment.put("GANDIVA_WORLD_SIZE", Integer.toString(slot.joins));
      environment.put("GANDIVA_TASKS", Integer.toString(slot.joins));
    }
    if (!spec.text(JobKey.CHECKPOINT_DIR).isEmpty()) {
      String folder = new Path(spec.text(JobKey.CHECKPOINT_DIR), application).toString();
      environment.put("GANDIVA_CHECKPOINT_DIR", folder);
      environment.put("GANDIVA_CHECKPOINT_EVERY", spec.text(JobKey.CHECKPOINT_EVERY));
    }
    return environment;
  }

  private String command(TaskType type) {
    String launcher =
        spec.hasLauncher() ? spec.python() + " -m nodemanager_agent.client.launch -- " : "";
    return String.join(
        " ",
        Arrays.asList(
            "exec",
            launcher + "/bin/bash ./" + JobNames.script(type.name()),
            "1>" + ApplicationConstants.LOG_DIR_EXPANSION_VAR + "/stdout",
            "2>" + ApplicationConstants.LOG_DIR_EXPANSION_VAR + "/stderr"));
  }
}
