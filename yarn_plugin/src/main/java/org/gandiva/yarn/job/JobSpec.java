package org.gandiva.yarn.job;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

/** A job as its owner wants it, checked. */
public final class JobSpec {
  private static final int TASKS_MAX = 10_000;
  private static final Pattern ENVIRONMENT_NAME = Pattern.compile("[A-Za-z_][A-Za-z0-9_]*");
  private static final String NEVER = "never";
  private static final JobKey[] LIMITS = {
    JobKey.SUSPEND, JobKey.PACK, JobKey.MIGRATE, JobKey.RESIZE
  };

  private final JobSettings settings;
  private final List<TaskType> types;
  private final Map<String, String> environment;
  private final Set<String> tags;

  private JobSpec(
      JobSettings settings,
      List<TaskType> types,
      Map<String, String> environment,
      Set<String> tags) {
    this.settings = settings;
    this.types = types;
    this.environment = environment;
    this.tags = tags;
  }

  /**
   * Reads a job.
   *
   * @throws BadInputException the first value that cannot be used
   */
  public static JobSpec of(JobSettings settings) throws BadInputException {
    List<TaskType> types = readTypes(settings);
    JobSpec spec =
        new JobSpec(settings, types, readEnvironment(settings), readTags(settings, types));
    settings.choice(JobKey.FRAMEWORK, "pytorch", "tensorflow", "other");
    settings.flag(JobKey.LAUNCHER);
    settings.number(JobKey.PRIORITY, 0);
    settings.number(JobKey.RESTARTS_MAX, 0);
    settings.number(JobKey.FAILURES_MAX, 0);
    settings.number(JobKey.AM_VCORES, 1);
    spec.checkCheckpoints();
    settings.number(JobKey.AM_RETRIES, 0);
    settings.memoryMib(JobKey.AM_MEMORY);
    return spec;
  }

  private void checkCheckpoints() throws BadInputException {
    settings.number(JobKey.CHECKPOINT_EVERY, 0);
    if (!text(JobKey.CHECKPOINT_DIR).isEmpty() && !text(JobKey.CHECKPOINT_DIR).startsWith("/")) {
      throw new BadInputException(
          JobKey.CHECKPOINT_DIR.key(),
          JobSettings.quoted(text(JobKey.CHECKPOINT_DIR)),
          "the path of a folder that all nodes see, from /");
    }
    if (number(JobKey.CHECKPOINT_EVERY) == 0) {
      return;
    }
    if (text(JobKey.CHECKPOINT_DIR).isEmpty()) {
      throw new BadInputException(
          JobKey.CHECKPOINT_DIR.key(), "nothing", "a folder, for " + JobKey.CHECKPOINT_EVERY.key());
    }
    if (!framework().equals("pytorch") || !hasLauncher()) {
      throw new BadInputException(
          JobKey.CHECKPOINT_EVERY.key(),
          text(JobKey.CHECKPOINT_EVERY),
          "0, but for PyTorch under the launcher");
    }
  }

  /**
   * The same job in the first of its shapes whose workers fit.
   *
   * @param gpusMax of the largest container that the cluster makes
   * @throws BadInputException none fits, or they differ in what they come to
   */
  public static JobSettings shaped(JobSettings settings, long gpusMax) throws BadInputException {
    List<String> texts = settings.list(JobKey.SHAPE);
    if (texts.isEmpty()) {
      return settings;
    }
    String key = settings.written(JobKey.SHAPE);
    Shape first = Shape.parse(key, texts.get(0));
    for (String text : texts) {
      Shape shape = Shape.parse(key, text);
      if (shape.total() != first.total()) {
        throw new BadInputException(
            key, text, "shapes of " + first.total() + " GPUs, as the first of them");
      }
      if (shape.gpus() <= gpusMax) {
        return settings.inShape(shape, first);
      }
    }
    throw new BadInputException(
        key, String.join(",", texts), "a shape with at most " + gpusMax + " GPUs a worker");
  }

  private static List<TaskType> readTypes(JobSettings settings) throws BadInputException {
    List<String> untracked = settings.list(JobKey.UNTRACKED);
    List<TaskType> types = new ArrayList<>();
    long tasks = 0;
    for (String name : settings.taskTypes()) {
      boolean isWorker = name.equals(TaskType.WORKER);
      int instances = settings.taskNumber(name, "instances", isWorker ? 1 : 0, isWorker ? 1 : 0);
      if (instances == 0) {
        continue;
      }
      String command = settings.taskText(name, "command");
      if (command.isEmpty()) {
        command = settings.taskText(TaskType.WORKER, "command");
      }
      if (command.isEmpty()) {
        throw new BadInputException(
            JobKey.PREFIX + name + ".command", "nothing", "a command, or the option -executes");
      }
      types.add(
          new TaskType(
              name,
              instances,
              settings.taskNumber(name, "gpus", isWorker ? 1 : 0, 0),
              settings.taskMemoryMib(name, TaskType.MEMORY_MIB),
              settings.taskNumber(name, "vcores", 1, 1),
              command,
              isWorker || !untracked.contains(name)));
      tasks += instances;
    }
    if (tasks > TASKS_MAX) {
      throw new BadInputException(
          JobKey.PREFIX + "*.instances", tasks + " tasks", "at most " + TASKS_MAX);
    }
    return types;
  }

  private static Map<String, String> readEnvironment(JobSettings settings)
      throws BadInputException {
    Map<String, String> environment = new LinkedHashMap<>();
    String key = settings.written(JobKey.ENVIRONMENT);
    for (String pair : settings.list(JobKey.ENVIRONMENT)) {
      int equals = pair.indexOf('=');
      String name = equals < 0 ? pair : pair.substring(0, equals);
      if (equals < 0 || !ENVIRONMENT_NAME.matcher(name).matches()) {
        throw new BadInputException(key, JobSettings.quoted(pair), "NAME=VALUE");
      }
      if (JobNames.isOwn(name)) {
        throw new BadInputException(key, name, "a variable that Gandiva does not set itself");
      }
      environment.put(name, pair.substring(equals + 1));
    }
    return environment;
  }

  private static Set<String> readTags(JobSettings settings, List<TaskType> types)
      throws BadInputException {
    Set<String> tags = new LinkedHashSet<>();
    int gang = 0;
    for (TaskType type : types) {
      gang += type.gpus() > 0 ? type.instances() : 0;
    }
    if (gang > 0) {
      tags.add("gandiva.gang=" + gang);
    }
    for (JobKey limit : LIMITS) {
      if (settings.choice(limit, "allow", NEVER).equals(NEVER)) {
        tags.add("gandiva." + limit.key().substring(JobKey.PREFIX.length()) + "=" + NEVER);
      }
    }
    if (settings.flag(JobKey.GROWSHRINK)) {
      tags.add("gandiva.growshrink=true");
    }
    tags.addAll(settings.list(JobKey.TAGS));
    return tags;
  }

  /** Returns the keys it was read from. */
  public Map<String, String> values() {
    return settings.values();
  }

  /** Returns a key's text, its default where none is given. */
  public String text(JobKey key) {
    return settings.text(key);
  }

  /** Returns a key's number, which was checked. */
  public int number(JobKey key) {
    return Integer.parseInt(settings.text(key));
  }

  /** Returns the master's memory, MiB. */
  public int masterMemoryMib() {
    try {
      return settings.memoryMib(JobKey.AM_MEMORY);
    } catch (BadInputException e) {
      throw new IllegalStateException(e); // It was checked.
    }
  }

  /** Returns whether tasks run under the launcher. */
  public boolean hasLauncher() {
    return settings.text(JobKey.LAUNCHER).equalsIgnoreCase("true");
  }

  /** Returns whether the number of its workers may change while it runs. */
  public boolean mayResize() {
    boolean isForbidden = settings.text(JobKey.RESIZE).equalsIgnoreCase(NEVER);
    return !isForbidden && hasLauncher() && types.size() == 1 && types.get(0).gpus() > 0;
  }

  /** Returns what the rendezvous is for. */
  public String framework() {
    return settings.text(JobKey.FRAMEWORK).toLowerCase(Locale.ROOT);
  }

  /** Returns its kinds of tasks, the workers first. */
  public List<TaskType> types() {
    return Collections.unmodifiableList(types);
  }

  /** Returns the environment of every task. */
  public Map<String, String> environment() {
    return Collections.unmodifiableMap(new HashMap<>(environment));
  }

  /** Returns the application's tags, its gang and its owner's limits among them. */
  public Set<String> tags() {
    return Collections.unmodifiableSet(tags);
  }

  /** Returns the interpreter as a task's script calls it. */
  public String python() {
    String named = settings.text(JobKey.PYTHON);
    boolean hasVenv = !settings.text(JobKey.VENV).isEmpty();
    if (hasVenv && !named.startsWith("/")) {
      return JobNames.VENV_LINK + "/" + (named.isEmpty() ? "bin/python" : named);
    }
    return named.isEmpty() ? "python3" : named;
  }
}
