package org.gandiva.yarn.job.am;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.yarn.YarnUncaughtExceptionHandler;
import org.apache.hadoop.yarn.api.ApplicationConstants.Environment;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterResponse;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.client.api.AMRMClient.ContainerRequest;
import org.apache.hadoop.yarn.client.api.async.AMRMClientAsync;
import org.apache.hadoop.yarn.client.api.async.NMClientAsync;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.exceptions.YarnException;
import org.gandiva.yarn.job.BadInputException;
import org.gandiva.yarn.job.JobNames;
import org.gandiva.yarn.job.JobSettings;
import org.gandiva.yarn.job.JobSpec;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The application master's process: started by YARN in a container, with the job's files. */
public final class MasterMain {
  private static final Logger LOG = LoggerFactory.getLogger(MasterMain.class);
  private static final int HEARTBEAT_MS = 1000;

  private MasterMain() {}

  /** Runs one attempt; another takes over where it does not end the job. */
  public static void main(String[] args) {
    int code = 1;
    // Hadoop's clients would go on saying that this attempt lives, with any thread of it gone.
    Thread.setDefaultUncaughtExceptionHandler(new YarnUncaughtExceptionHandler());
    try {
      run();
      code = 0;
    } catch (Exception e) {
      LOG.error("This attempt is over; the next one takes over", e);
    }
    System.exit(code); // Clients of Hadoop leave threads behind.
  }

  private static void run() throws Exception {
    YarnConfiguration conf = new YarnConfiguration();
    // The node of a container that is lost says nothing for minutes, while it is asked to start
    // one.
    conf.setInt(YarnConfiguration.CLIENT_NM_CONNECT_MAX_WAIT_MS, 30_000);
    JobSpec spec = readSpec();
    Path staging = new Path(System.getenv(JobNames.STAGING_VARIABLE));
    FileSystem files = staging.getFileSystem(conf);
    String host = System.getenv(Environment.NM_HOST.name());
    String application =
        ContainerId.fromString(System.getenv(Environment.CONTAINER_ID.name()))
            .getApplicationAttemptId()
            .getApplicationId()
            .toString();
    Object lock = new Object();
    Master master = new Master(spec, new StateFile(files, new Path(staging, JobNames.STATE)), lock);
    NMClientAsync nodes = NMClientAsync.createNMClientAsync(new FromNodeManagers(master));
    AMRMClientAsync<ContainerRequest> resourceManager =
        AMRMClientAsync.createAMRMClientAsync(HEARTBEAT_MS, new FromResourceManager(master));
    // Tasks outlive an attempt: only the end of the application ends them.
    nodes.getClient().cleanupRunningContainersOnStop(false);
    try (RendezvousServer server = new RendezvousServer(host, readToken(), master.gang(), lock)) {
      nodes.init(conf);
      nodes.start();
      resourceManager.init(conf);
      resourceManager.start();
      RegisterApplicationMasterResponse registered =
          resourceManager.registerApplicationMaster(host, 0, "");
      Launches launches = new Launches(spec, files, staging, application, server.url());
      master.start(resourceManager, nodes, launches, registered);
      Ending ending = master.ended().get();
      leave(resourceManager, ending);
      files.delete(staging, true);
    } catch (ExecutionException e) {
      throw new YarnException(e.getCause());
    } finally {
      resourceManager.stop();
      nodes.stop();
    }
  }

  private static void leave(AMRMClientAsync<ContainerRequest> resourceManager, Ending ending)
      throws YarnException, IOException {
    resourceManager.unregisterApplicationMaster(
        ending.isGood() ? FinalApplicationStatus.SUCCEEDED : FinalApplicationStatus.FAILED,
        ending.diagnostics(),
        "");
  }

  private static JobSpec readSpec() throws IOException, BadInputException {
    Properties properties = new Properties();
    try (InputStream in = Files.newInputStream(Paths.get(JobNames.SETTINGS))) {
      properties.load(in);
    }
    Map<String, String> values = new HashMap<>();
    properties.stringPropertyNames().forEach(key -> values.put(key, properties.getProperty(key)));
    return JobSpec.of(new JobSettings(values));
  }

  private static String readToken() throws IOException {
    byte[] bytes = Files.readAllBytes(Paths.get(JobNames.TOKEN));
    return new String(bytes, StandardCharsets.UTF_8).trim();
  }
}
