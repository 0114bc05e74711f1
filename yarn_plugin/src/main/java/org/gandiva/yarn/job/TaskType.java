package org.gandiva.yarn.job;

/** Tasks of one kind: how many, how large, what they run. */
public final class TaskType {
  /** The type that trains: its number is the world size. */
  public static final String WORKER = "worker";

  /** Memory of a container where nothing is said, as TonY's. */
  static final int MEMORY_MIB = 2048;

  private final String name;
  private final int instances;
  private final int gpus;
  private final int memoryMib;
  private final int vcores;
  private final String command;
  private final boolean isTracked;

  TaskType(
      String name,
      int instances,
      int gpus,
      int memoryMib,
      int vcores,
      String command,
      boolean isTracked) {
    this.name = name;
    this.instances = instances;
    this.gpus = gpus;
    this.memoryMib = memoryMib;
    this.vcores = vcores;
    this.command = command;
    this.isTracked = isTracked;
  }

  /** Returns the name, such as worker or ps. */
  public String name() {
    return name;
  }

  /** Returns how many containers. */
  public int instances() {
    return instances;
  }

  /** Returns devices of each container. */
  public int gpus() {
    return gpus;
  }

  /** Returns memory of each container, MiB. */
  public int memoryMib() {
    return memoryMib;
  }

  /** Returns vcores of each container. */
  public int vcores() {
    return vcores;
  }

  /** Returns the shell command. */
  public String command() {
    return command;
  }

  /** Returns whether the job waits for the end of these tasks. */
  public boolean isTracked() {
    return isTracked;
  }

  /** Returns whether it is the type that trains. */
  public boolean isWorker() {
    return name.equals(WORKER);
  }
}
