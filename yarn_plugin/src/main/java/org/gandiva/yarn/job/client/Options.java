package org.gandiva.yarn.job.client;

import java.io.File;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.gandiva.yarn.job.BadInputException;
import org.gandiva.yarn.job.JobKey;
import org.gandiva.yarn.job.TaskType;

/**
 * The command line, named as TonY names it: each option with one dash or two. What comes later
 * wins, and {@code -conf} wins over {@code -conf_file}.
 */
final class Options {
  static final String USAGE =
      "yarn jar gandiva-client.jar [-conf_file JOB.xml] [-conf KEY=VALUE]..."
          + " [-executes COMMAND] [-task_params ARGUMENTS] [-src_dir FOLDER]"
          + " [-python_venv ARCHIVE] [-python_binary_path PATH] [-detach]";

  private final Map<String, String> fromFile = new TreeMap<>();
  private final Map<String, String> fromLine = new TreeMap<>();
  private final Map<String, String> words = new HashMap<>();
  private boolean isDetached;
  private boolean isHelp;

  private Options() {}

  /** Reads the command line. */
  static Options of(String[] args) throws BadInputException {
    Options options = new Options();
    for (int at = 0; at < args.length; at++) {
      String name = args[at].replaceFirst("^--?", "");
      if (name.equals(args[at])) {
        throw new BadInputException("command line", "\"" + args[at] + "\"", "an option: " + USAGE);
      }
      if (name.equals("detach")) {
        options.isDetached = true;
      } else if (name.equals("help") || name.equals("h")) {
        options.isHelp = true;
      } else {
        if (at + 1 == args.length) {
          throw new BadInputException(args[at], "nothing after it", "a value");
        }
        options.take(args[at], name, args[++at]);
      }
    }
    return options;
  }

  private void take(String option, String name, String value) throws BadInputException {
    switch (name) {
      case "conf_file":
        readFile(value);
        return;
      case "conf":
        int equals = value.indexOf('=');
        if (equals < 1) {
          throw new BadInputException("-conf", "\"" + value + "\"", "KEY=VALUE");
        }
        fromLine.put(value.substring(0, equals), value.substring(equals + 1));
        return;
      case "executes":
      case "task_params":
        words.put(name, value);
        return;
      case "src_dir":
        fromLine.put(JobKey.SOURCE.key(), value);
        return;
      case "python_venv":
        fromLine.put(JobKey.VENV.key(), value);
        return;
      case "python_binary_path":
        fromLine.put(JobKey.PYTHON.key(), value);
        return;
      case "appname":
        fromLine.put(JobKey.NAME.key(), value);
        return;
      default:
        throw new BadInputException("command line", "\"" + option + "\"", USAGE);
    }
  }

  private void readFile(String file) throws BadInputException {
    if (!new File(file).isFile()) {
      throw new BadInputException("-conf_file", "\"" + file + "\"", "a file that is there");
    }
    Configuration read = new Configuration(false);
    read.addResource(new Path(new File(file).toURI()));
    try {
      for (Map.Entry<String, String> entry : read) {
        fromFile.put(entry.getKey(), read.get(entry.getKey()));
      }
    } catch (RuntimeException e) {
      throw new BadInputException(file, e.getMessage(), "a Hadoop configuration file");
    }
  }

  boolean isDetached() {
    return isDetached;
  }

  boolean isHelp() {
    return isHelp;
  }

  /** Returns all keys given, of Hadoop too. */
  Map<String, String> given() {
    Map<String, String> given = new TreeMap<>(fromFile);
    given.putAll(fromLine);
    String executes = words.get("executes");
    if (executes != null) {
      String python = fromLine.containsKey(JobKey.PYTHON.key()) ? "\"$GANDIVA_PYTHON\" " : "";
      String rest = words.containsKey("task_params") ? " " + words.get("task_params") : "";
      given.put(JobKey.PREFIX + TaskType.WORKER + ".command", python + executes + rest);
    }
    return given;
  }
}
