package org.gandiva.yarn.core;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.exceptions.YarnRuntimeException;
import org.gandiva.yarn.GandivaConfiguration;
import org.gandiva.yarn.gateway.BridgeServer;
import org.gandiva.yarn.gateway.GandivaGateway;
import org.gandiva.yarn.gateway.ProtocolException;
import org.gandiva.yarn.gateway.TokenFile;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * All that stands between the scheduler and the core: the bridge, the watch over silence, and the
 * child process where the core is one. Begins and ends with the scheduler; a standby
 * ResourceManager starts no scheduler, and so has none of it.
 */
public final class CoreService {
  private static final Logger LOG = LoggerFactory.getLogger(CoreService.class);
  private static final long OUTPUT_BYTES_MAX = 10L * 1024 * 1024;
  private static final int OUTPUT_FILES_MAX = 5;

  private final GandivaGateway gateway;
  private final CoreWatch watch;
  private boolean isManaged;
  private BridgeServer bridge;
  private OwnToken ownToken;
  private volatile ChildProcess child;
  private volatile String problem = "";

  /** Creates the service of a scheduler; nothing runs yet. */
  public CoreService(GandivaGateway gateway, Fallback fallback) {
    this.gateway = gateway;
    this.watch = new CoreWatch(fallback);
  }

  /**
   * Opens the bridge, begins to watch, and starts the core where it is managed.
   *
   * @throws YarnRuntimeException a token file that cannot be trusted, or no port for another's core
   */
  public void start(Configuration conf) {
    GandivaConfiguration settings = new GandivaConfiguration(conf);
    isManaged = settings.isCoreManaged();
    watch.start();
    if (isManaged) {
      startManaged(settings, conf);
    } else if (settings.tokenFile() != null) {
      try {
        openBridge(settings, Paths.get(settings.tokenFile()));
      } catch (IOException e) {
        throw new YarnRuntimeException(e.getMessage(), e);
      }
    }
  }

  /** A folder or a port that cannot be used is no reason for the ResourceManager not to start. */
  private void startManaged(GandivaConfiguration settings, Configuration conf) {
    try {
      Path folder = folder(settings.coreLogDir());
      Path tokenFile;
      if (settings.tokenFile() == null) {
        ownToken = newToken(folder);
        tokenFile = ownToken.file();
      } else {
        tokenFile = Paths.get(settings.tokenFile());
      }
      openBridge(settings, tokenFile);
      String confDir = ChildEnvironment.confDir(conf, System.getenv());
      CoreCommand command =
          new CoreCommand(settings.corePython(), bridge.port(), tokenFile, folder, confDir);
      RotatedLog output =
          new RotatedLog(folder.resolve("core.log"), OUTPUT_BYTES_MAX, OUTPUT_FILES_MAX);
      child = new ChildProcess(command, output, watch::silentMs);
      child.start();
    } catch (IOException e) {
      problem = e.getMessage();
      LOG.error("Gandiva's core cannot be started, GPU asks are left to the fallback: {}", problem);
    }
  }

  private static Path folder(String named) throws IOException {
    String logs = System.getProperty("hadoop.log.dir", System.getProperty("java.io.tmpdir"));
    Path folder = named == null ? Paths.get(logs, "gandiva") : Paths.get(named);
    try {
      Path there =
          Files.createDirectories(
              folder.toAbsolutePath(),
              PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwxr-x---")));
      if (Files.isWritable(there)) {
        return there;
      }
    } catch (IOException e) {
      throw new IOException(GandivaConfiguration.CORE_LOG_DIR + ": " + e, e);
    }
    throw new IOException(GandivaConfiguration.CORE_LOG_DIR + ": " + folder + " is not writable");
  }

  private static OwnToken newToken(Path folder) throws IOException {
    try {
      return OwnToken.create(folder);
    } catch (IOException e) {
      throw new IOException(GandivaConfiguration.CORE_LOG_DIR + ": " + e, e);
    }
  }

  private void openBridge(GandivaConfiguration settings, Path tokenFile) throws IOException {
    String token;
    try {
      token = TokenFile.read(tokenFile);
    } catch (IOException e) {
      throw new YarnRuntimeException(GandivaConfiguration.TOKEN_FILE + ": " + e.getMessage());
    }
    try {
      bridge = BridgeServer.start(gateway, token, settings.port(), settings.readTimeoutMs());
    } catch (IOException e) {
      throw new IOException(GandivaConfiguration.PORT + ": " + e.getMessage(), e);
    }
    LOG.info("Gandiva's bridge listens on loopback port {}", bridge.port());
  }

  /** Ends all of it, without waiting for the child. */
  public void stop() {
    watch.close();
    if (child != null) {
      child.close();
    }
    if (bridge != null) {
      bridge.close();
    }
    if (ownToken != null) {
      try {
        ownToken.close();
      } catch (IOException e) {
        LOG.warn("The token of Gandiva's bridge was not deleted: {}", e.toString());
      }
    }
  }

  /**
   * Lets a core open a session, or not: a managed core is the only one, and of several that were
   * started one after the other the youngest.
   *
   * @param id what its hello says; empty where it was not started by us
   */
  public void admit(String id) throws ProtocolException {
    ChildProcess managed = child;
    if (managed != null && !managed.id().equals(id)) {
      throw new ProtocolException(
          "MANAGED",
          "the core of this ResourceManager is its own child; "
              + GandivaConfiguration.CORE_MANAGED
              + "=false lets another decide");
    }
  }

  /** Returns the watch over silence. */
  public CoreWatch watch() {
    return watch;
  }

  /** Returns the port that the bridge listens on; 0 while it is closed. */
  public int bridgePort() {
    return bridge == null ? 0 : bridge.port();
  }

  /** Returns whether the core is a child of this process. */
  public boolean isManaged() {
    return isManaged;
  }

  /** Returns how often the managed core was started again. */
  public long restarts() {
    ChildProcess managed = child;
    return managed == null ? 0 : managed.restarts();
  }

  /** Returns why the managed core is down for longer, in one line; empty where it is not. */
  public String alarm() {
    ChildProcess managed = child;
    return managed != null && managed.isDown() ? managed.lastEnd() : problem;
  }
}
