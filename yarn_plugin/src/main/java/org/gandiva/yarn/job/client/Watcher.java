package org.gandiva.yarn.job.client;

import java.io.IOException;
import java.io.PrintStream;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationReport;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.YarnApplicationState;
import org.apache.hadoop.yarn.client.api.YarnClient;
import org.apache.hadoop.yarn.exceptions.YarnException;

/** Follows a job to its end, a line a change. */
final class Watcher {
  private static final Pattern EXIT_CODE = Pattern.compile("exit code ([0-9]{1,3}):.*");
  private static final long POLL_MS = 500;
  private static final int FAILED = 1;

  private final YarnClient client;
  private final PrintStream out;
  private String last = "";

  Watcher(YarnClient client, PrintStream out) {
    this.client = client;
    this.out = out;
  }

  /** Returns the job's exit code. */
  int follow(ApplicationId id) throws YarnException, IOException, InterruptedException {
    while (true) {
      ApplicationReport report = client.getApplicationReport(id);
      say(report);
      YarnApplicationState state = report.getYarnApplicationState();
      if (state == YarnApplicationState.FINISHED
          || state == YarnApplicationState.FAILED
          || state == YarnApplicationState.KILLED) {
        return exitCode(report);
      }
      Thread.sleep(POLL_MS);
    }
  }

  private void say(ApplicationReport report) {
    String line = line(report);
    if (!line.equals(last)) {
      out.println(line);
      last = line;
    }
  }

  private static String line(ApplicationReport report) {
    String why = report.getDiagnostics() == null ? "" : report.getDiagnostics().trim();
    boolean isOver = report.getFinalApplicationStatus() != FinalApplicationStatus.UNDEFINED;
    String state =
        isOver
            ? report.getFinalApplicationStatus().name()
            : report.getYarnApplicationState().name();
    String first = why.split("\n", 2)[0];
    return report.getApplicationId() + " " + state + (first.isEmpty() ? "" : ": " + first);
  }

  static int exitCode(ApplicationReport report) {
    if (report.getFinalApplicationStatus() == FinalApplicationStatus.SUCCEEDED) {
      return 0;
    }
    String why = report.getDiagnostics() == null ? "" : report.getDiagnostics().trim();
    Matcher matcher = EXIT_CODE.matcher(why.split("\n", 2)[0]);
    int code = matcher.matches() ? Integer.parseInt(matcher.group(1)) : FAILED;
    return code == 0 ? FAILED : code;
  }
}
