package org.gandiva.yarn.job.client;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.io.DataOutputBuffer;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.api.ApplicationConstants;
import org.apache.hadoop.yarn.api.ApplicationConstants.Environment;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceInformation;
import org.apache.hadoop.yarn.client.api.YarnClient;
import org.apache.hadoop.yarn.client.api.YarnClientApplication;
import org.apache.hadoop.yarn.client.util.YarnClientUtils;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.exceptions.ApplicationNotFoundException;
import org.apache.hadoop.yarn.exceptions.YarnException;
import org.gandiva.yarn.job.BadInputException;
import org.gandiva.yarn.job.JobKey;
import org.gandiva.yarn.job.JobNames;
import org.gandiva.yarn.job.JobSettings;
import org.gandiva.yarn.job.JobSpec;
import org.gandiva.yarn.job.TaskType;

/** Brings a job to the ResourceManager. */
final class Submission {
  private static final String MASTER = "org.gandiva.yarn.job.am.MasterMain";

  /** Of the master's container, what its heap may take. */
  private static final double HEAP_RATIO = 0.7;

  private final Configuration conf;
  private final YarnClient client;

  Submission(Configuration conf, YarnClient client) {
    this.conf = conf;
    this.client = client;
  }

  /**
   * Submits.
   *
   * @param jar of client and master
   * @return the application's id
   * @throws BadInputException a value that this cluster cannot serve
   */
  ApplicationId submit(JobSettings settings, File jar)
      throws YarnException, IOException, BadInputException {
    YarnClientApplication created = client.createApplication();
    Resource largest = created.getNewApplicationResponse().getMaximumResourceCapability();
    JobSpec spec = JobSpec.of(JobSpec.shaped(settings, gpus(largest)));
    checkFits(spec, largest);
    ApplicationSubmissionContext context = created.getApplicationSubmissionContext();
    ApplicationId id = context.getApplicationId();
    FileSystem files = FileSystem.get(conf);
    Staging staging = new Staging(files, spec.text(JobKey.STAGING), id.toString());
    try {
      staging.fill(spec, jar);
      describe(context, spec);
      context.setAMContainerSpec(master(spec, staging, files));
      client.submitApplication(context);
    } catch (YarnException | IOException | RuntimeException e) {
      if (!mayRun(id)) {
        delete(staging, e);
      }
      throw e;
    }
    return id;
  }

  /** Whether the ResourceManager may have taken the job although it did not say so. */
  private boolean mayRun(ApplicationId id) {
    try {
      switch (client.getApplicationReport(id).getYarnApplicationState()) {
        case FINISHED:
        case FAILED:
        case KILLED:
          return false;
        default:
          return true;
      }
    } catch (ApplicationNotFoundException e) {
      return false;
    } catch (YarnException | IOException e) {
      return true; // Nobody knows: a folder is left rather than a job without its files.
    }
  }

  private static void delete(Staging staging, Exception reason) {
    try {
      staging.delete();
    } catch (IOException e) {
      reason.addSuppressed(e);
    }
  }

  private static void describe(ApplicationSubmissionContext context, JobSpec spec) {
    context.setApplicationName(spec.text(JobKey.NAME));
    context.setApplicationType(JobNames.APPLICATION_TYPE);
    context.setQueue(spec.text(JobKey.QUEUE));
    context.setPriority(Priority.newInstance(spec.number(JobKey.PRIORITY)));
    context.setApplicationTags(spec.tags());
    context.setMaxAppAttempts(1 + spec.number(JobKey.AM_RETRIES));
    context.setKeepContainersAcrossApplicationAttempts(true);
    context.setResource(
        Resource.newInstance(spec.masterMemoryMib(), spec.number(JobKey.AM_VCORES)));
    if (!spec.text(JobKey.NODE_LABEL).isEmpty()) {
      context.setNodeLabelExpression(spec.text(JobKey.NODE_LABEL));
    }
  }

  private ContainerLaunchContext master(JobSpec spec, Staging staging, FileSystem files)
      throws IOException, YarnException {
    Map<String, String> environment = new HashMap<>();
    environment.put("CLASSPATH", classPath());
    environment.put(JobNames.STAGING_VARIABLE, staging.folder().toString());
    String command =
        String.format(
            "exec %s/bin/java -Xmx%dm %s 1>%s/stdout 2>%s/stderr",
            Environment.JAVA_HOME.$$(),
            (int) (spec.masterMemoryMib() * HEAP_RATIO),
            MASTER,
            ApplicationConstants.LOG_DIR_EXPANSION_VAR,
            ApplicationConstants.LOG_DIR_EXPANSION_VAR);
    return ContainerLaunchContext.newInstance(
        staging.ofMaster(),
        environment,
        Collections.singletonList(command),
        Collections.emptyMap(),
        tokens(files),
        Collections.emptyMap());
  }

  private String classPath() {
    List<String> entries = new ArrayList<>();
    entries.add(JobNames.JAR);
    Collections.addAll(
        entries,
        conf.getTrimmedStrings(
            YarnConfiguration.YARN_APPLICATION_CLASSPATH,
            YarnConfiguration.DEFAULT_YARN_CROSS_PLATFORM_APPLICATION_CLASSPATH));
    return String.join(ApplicationConstants.CLASS_PATH_SEPARATOR, entries);
  }

  private ByteBuffer tokens(FileSystem files) throws IOException, YarnException {
    Credentials credentials =
        new Credentials(UserGroupInformation.getCurrentUser().getCredentials());
    if (UserGroupInformation.isSecurityEnabled()) {
      files.addDelegationTokens(YarnClientUtils.getRmPrincipal(conf), credentials);
    }
    DataOutputBuffer buffer = new DataOutputBuffer();
    credentials.writeTokenStorageToStream(buffer);
    return ByteBuffer.wrap(buffer.getData(), 0, buffer.getLength());
  }

  private static void checkFits(JobSpec spec, Resource largest) throws BadInputException {
    for (TaskType type : spec.types()) {
      String prefix = JobKey.PREFIX + type.name() + ".";
      check(prefix + "gpus", type.gpus(), gpus(largest));
      check(prefix + "memory", type.memoryMib(), largest.getMemorySize());
      check(prefix + "vcores", type.vcores(), largest.getVirtualCores());
    }
  }

  private static void check(String key, long wanted, long most) throws BadInputException {
    if (wanted > most) {
      String expected = "at most " + most + ", the largest container of this cluster";
      throw new BadInputException(key, Long.toString(wanted), expected);
    }
  }

  private static long gpus(Resource resource) {
    for (ResourceInformation part : resource.getResources()) {
      if (part.getName().equals(ResourceInformation.GPU_URI)) {
        return part.getValue();
      }
    }
    return 0;
  }
}
