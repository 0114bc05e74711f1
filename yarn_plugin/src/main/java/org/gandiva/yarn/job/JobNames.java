package org.gandiva.yarn.job;

/** Names of files and variables that client, master and workers share. */
public final class JobNames {
  /** The application type, as lists of applications show it. */
  public static final String APPLICATION_TYPE = "GANDIVA";

  /** The jar of client and master, with the in-job client's Python in it. */
  public static final String JAR = "gandiva-client.jar";

  /** Where a task finds the jar unpacked. */
  public static final String CLIENT_LINK = "gandiva";

  /** Folder in the jar whose packages a task imports. */
  public static final String PYTHON_FOLDER = "python";

  /** Where a task finds the virtual environment. */
  public static final String VENV_LINK = "venv";

  /** Where a task finds the owner's sources, which it starts in a copy of. */
  public static final String SOURCE_LINK = "gandiva-src";

  /** The job's keys, as the master reads them. */
  public static final String SETTINGS = "gandiva-job.properties";

  /** The secret between master and tasks. */
  public static final String TOKEN = "gandiva-am.token";

  /** What one master leaves for the next. */
  public static final String STATE = "state.json";

  /** The job's folder in the file system, for the master. */
  public static final String STAGING_VARIABLE = "GANDIVA_STAGING";

  private JobNames() {}

  /** Returns the script of a task type. */
  public static String script(String type) {
    return "gandiva-" + type + ".sh";
  }

  /** Returns whether a variable is ours to set. */
  static boolean isOwn(String name) {
    return name.startsWith("GANDIVA_")
        || name.equals("CUDA_VISIBLE_DEVICES")
        || name.equals("CONTAINER_ID")
        || name.equals("RANK")
        || name.equals("WORLD_SIZE")
        || name.equals("MASTER_ADDR")
        || name.equals("MASTER_PORT");
  }
}
