package org.gandiva.yarn.node;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.exceptions.YarnRuntimeException;
import org.apache.hadoop.yarn.server.api.ApplicationInitializationContext;
import org.apache.hadoop.yarn.server.api.ApplicationTerminationContext;
import org.apache.hadoop.yarn.server.api.AuxiliaryService;
import org.gandiva.yarn.GandivaConfiguration;
import org.gandiva.yarn.core.ChildEnvironment;
import org.gandiva.yarn.core.ChildProcess;
import org.gandiva.yarn.core.RotatedLog;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps a GPU node's agent running, as a child of the NodeManager: started and stopped with it,
 * started again with a growing pause where it ends. Jobs are left alone by all of it: an agent that
 * comes back finds them. Nothing here can keep a NodeManager from starting but a port that may
 * change, since the node's name has it.
 *
 * <p>Configured as {@code yarn.nodemanager.aux-services=gandiva_agent}.
 */
public final class AgentService extends AuxiliaryService {
  /** The service's name, as {@code yarn.nodemanager.aux-services} says it. */
  public static final String NAME = "gandiva_agent";

  private static final Logger LOG = LoggerFactory.getLogger(AgentService.class);
  private static final long OUTPUT_BYTES_MAX = 10L * 1024 * 1024;
  private static final int OUTPUT_FILES_MAX = 5;

  private AgentCommand command;
  private RotatedLog output;
  private ChildProcess child;

  /** Made by the NodeManager. */
  public AgentService() {
    super(NAME);
  }

  @Override
  protected void serviceInit(Configuration conf) throws Exception {
    GandivaConfiguration settings = new GandivaConfiguration(conf);
    String confDir = ChildEnvironment.confDir(conf, System.getenv());
    Path folder = folder(settings.agentLogDir());
    command = new AgentCommand(settings.agentPython(), nodeOf(conf), confDir, folder);
    output = new RotatedLog(folder.resolve("agent.log"), OUTPUT_BYTES_MAX, OUTPUT_FILES_MAX);
    super.serviceInit(conf);
  }

  @Override
  protected void serviceStart() throws Exception {
    try {
      EarlierAgent.end(command.mark());
    } catch (IOException e) {
      LOG.warn("Whether an earlier agent runs is not known: {}", e.toString());
    }
    child = new ChildProcess(command, output, () -> 0);
    child.start();
    super.serviceStart();
  }

  @Override
  protected void serviceStop() throws Exception {
    if (child != null) {
      child.close();
    }
    super.serviceStop();
  }

  /**
   * The NodeManager's id, as it will call itself.
   *
   * @throws YarnRuntimeException a port that is chosen at each start
   */
  static String nodeOf(Configuration conf) {
    InetSocketAddress address =
        conf.getSocketAddr(
            YarnConfiguration.NM_ADDRESS,
            YarnConfiguration.DEFAULT_NM_ADDRESS,
            YarnConfiguration.DEFAULT_NM_PORT);
    if (address.getPort() == 0) {
      throw new YarnRuntimeException(
          YarnConfiguration.NM_ADDRESS + ": found port 0, expected one that stays the same");
    }
    try {
      InetAddress host = address.getAddress();
      boolean isAny = host == null || host.isAnyLocalAddress();
      InetAddress own = isAny ? InetAddress.getLocalHost() : host;
      return own.getCanonicalHostName() + ":" + address.getPort();
    } catch (IOException e) {
      throw new YarnRuntimeException(e);
    }
  }

  private static Path folder(String named) throws IOException {
    String logs = System.getProperty("hadoop.log.dir", System.getProperty("java.io.tmpdir"));
    Path folder = named == null ? Paths.get(logs, "gandiva") : Paths.get(named);
    return Files.createDirectories(folder.toAbsolutePath());
  }

  @Override
  public void initializeApplication(ApplicationInitializationContext context) {
    // The agent learns of containers from their launchers.
  }

  @Override
  public void stopApplication(ApplicationTerminationContext context) {
    // As above.
  }

  /** Nothing that a master has to know. */
  @Override
  public ByteBuffer getMetaData() {
    return ByteBuffer.allocate(0);
  }
}
