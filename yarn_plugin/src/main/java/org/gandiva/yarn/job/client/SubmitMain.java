package org.gandiva.yarn.job.client;

import java.io.File;
import java.io.IOException;
import java.net.ConnectException;
import java.net.URISyntaxException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.AccessControlException;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.client.api.YarnClient;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.exceptions.YarnException;
import org.gandiva.yarn.job.BadInputException;
import org.gandiva.yarn.job.JobKey;
import org.gandiva.yarn.job.JobSettings;
import org.gandiva.yarn.job.JobSpec;

/**
 * {@code yarn jar gandiva-client.jar …}: submits a job and follows it. The application's id goes to
 * standard output, progress to standard error.
 *
 * <p>Exit codes: the job's own; 2 wrong usage is told as 3 bad input is, in one line; 4 the cluster
 * is not reachable; 5 it refused.
 */
public final class SubmitMain {
  static final int BAD_INPUT = 3;
  static final int UNREACHABLE = 4;
  static final int REFUSED = 5;

  private static final int REACH_MS_MAX = 20_000;

  private SubmitMain() {}

  /** Submits a job. */
  public static void main(String[] args) {
    System.exit(run(args));
  }

  static int run(String[] args) {
    try {
      Options options = Options.of(args);
      if (options.isHelp()) {
        System.out.println(Options.USAGE);
        return 0;
      }
      return submit(options);
    } catch (BadInputException e) {
      return complain(e.getMessage(), BAD_INPUT);
    } catch (YarnException | IOException e) {
      return complain(reason(e), isUnreachable(e) ? UNREACHABLE : REFUSED);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return complain("interrupted; the job goes on", 130);
    }
  }

  private static int submit(Options options)
      throws BadInputException, YarnException, IOException, InterruptedException {
    Map<String, String> given = options.given();
    JobSettings settings = new JobSettings(given);
    for (String key : JobSettings.foreign(given)) {
      System.err.println("warning: " + key + " means nothing here (docs/JOBS.md)");
    }
    checkFiles(JobSpec.of(JobSpec.shaped(settings, Long.MAX_VALUE)));
    try (YarnClient client = YarnClient.createYarnClient()) {
      Configuration conf = configuration(given);
      client.init(conf);
      client.start();
      ApplicationId id = new Submission(conf, client).submit(settings, ownJar());
      System.out.println(id);
      return options.isDetached() ? 0 : new Watcher(client, System.err).follow(id);
    }
  }

  /** Hadoop's keys in a job's file count for its client. */
  private static Configuration configuration(Map<String, String> given) {
    Configuration conf = new YarnConfiguration();
    conf.setInt(YarnConfiguration.RESOURCEMANAGER_CONNECT_MAX_WAIT_MS, REACH_MS_MAX);
    given.forEach(
        (key, value) -> {
          if (!key.startsWith(JobKey.PREFIX) && !key.startsWith(JobKey.TONY_PREFIX)) {
            conf.set(key, value);
          }
        });
    return conf;
  }

  private static void checkFiles(JobSpec spec) throws BadInputException {
    String source = spec.text(JobKey.SOURCE);
    if (!source.isEmpty() && !new File(source).isDirectory()) {
      throw new BadInputException(JobKey.SOURCE.key(), "\"" + source + "\"", "a folder");
    }
    String venv = spec.text(JobKey.VENV);
    if (!venv.isEmpty()
        && !(new File(venv).isFile() && venv.matches(".*\\.(zip|tar|tgz|tar\\.gz)"))) {
      throw new BadInputException(
          JobKey.VENV.key(), "\"" + venv + "\"", "a .zip, .tar, .tgz or .tar.gz that is there");
    }
  }

  /** {@code yarn jar} unpacks the jar and takes classes from the folder; the jar is next to it. */
  private static File ownJar() throws IOException {
    ClassLoader loader = SubmitMain.class.getClassLoader();
    List<URL> places = new ArrayList<>();
    places.add(SubmitMain.class.getProtectionDomain().getCodeSource().getLocation());
    if (loader instanceof URLClassLoader) {
      Collections.addAll(places, ((URLClassLoader) loader).getURLs());
    }
    for (URL place : places) {
      File file = fileOf(place);
      if (file.isFile() && file.getName().endsWith(".jar")) {
        return file;
      }
    }
    throw new IOException("the client's own jar is not found: run it with `yarn jar`");
  }

  /** A folder's name may have a blank in it. */
  static File fileOf(URL place) {
    try {
      return new File(place.toURI());
    } catch (URISyntaxException | IllegalArgumentException e) {
      return new File(place.getPath()); // No file at all, or not written as an address should be.
    }
  }

  private static boolean isUnreachable(Throwable failure) {
    for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
      if (cause instanceof ConnectException || cause instanceof java.net.SocketTimeoutException) {
        return true;
      }
      if (cause instanceof AccessControlException) {
        return false;
      }
    }
    return false;
  }

  private static String reason(Throwable failure) {
    String text = failure.getMessage() == null ? failure.toString() : failure.getMessage();
    return text.split("\n", 2)[0];
  }

  private static int complain(String text, int code) {
    System.err.println("error: " + text);
    return code;
  }
}
