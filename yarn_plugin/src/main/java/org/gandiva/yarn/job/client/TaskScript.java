package org.gandiva.yarn.job.client;

import java.util.Map;
import java.util.TreeMap;
import org.gandiva.yarn.job.JobKey;
import org.gandiva.yarn.job.JobNames;
import org.gandiva.yarn.job.JobSpec;
import org.gandiva.yarn.job.TaskType;

/**
 * The script that a task runs: sources, environment, and then the owner's command as it was
 * written. A file, since YARN passes no quote or dollar sign through a command line unchanged.
 */
final class TaskScript {
  private static final String PYTHONPATH = "PYTHONPATH";

  private TaskScript() {}

  static String of(JobSpec spec, TaskType type) {
    StringBuilder script = new StringBuilder("#!/bin/bash\n");
    script.append("export GANDIVA_WORK_DIR=\"$PWD\"\n");
    if (!spec.text(JobKey.SOURCE).isEmpty()) {
      script.append("cp -R \"$PWD/").append(JobNames.SOURCE_LINK).append("/.\" . || exit 1\n");
      script.append("chmod -R u+w . || exit 1\n");
    }
    if (!spec.text(JobKey.VENV).isEmpty()) {
      script.append("export PATH=\"$PWD/").append(JobNames.VENV_LINK).append("/bin:$PATH\"\n");
    }
    String python = spec.python();
    boolean isInside = python.contains("/") && !python.startsWith("/");
    script.append("export GANDIVA_PYTHON=");
    script.append(isInside ? "\"$PWD\"/" : "").append(quoted(python)).append('\n');
    for (Map.Entry<String, String> entry : new TreeMap<>(spec.environment()).entrySet()) {
      boolean isPath = entry.getKey().equals(PYTHONPATH); // The hook's folder is on it.
      script.append("export ").append(entry.getKey()).append('=');
      script.append(isPath ? "\"${PYTHONPATH:+$PYTHONPATH:}\"" : "");
      script.append(quoted(entry.getValue())).append('\n');
    }
    return script.append(type.command()).append('\n').toString();
  }

  static String quoted(String text) {
    return "'" + text.replace("'", "'\\''") + "'";
  }
}
