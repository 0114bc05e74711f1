package org.gandiva.yarn.job;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The values of a job's keys, read one at a time and checked: a failure names the key as the user
 * wrote it. Our name of a key wins over TonY's.
 */
public final class JobSettings {
  private static final Pattern MEMORY = Pattern.compile("([0-9]{1,9})([gGmM]?)");
  private static final int MIB_PER_GIB = 1024;

  private final SortedMap<String, String> values;

  /**
   * Takes the job's keys out of a map that may have others.
   *
   * @throws BadInputException a key begins as ours do and is none
   */
  public JobSettings(Map<String, String> given) throws BadInputException {
    values = new TreeMap<>();
    for (Map.Entry<String, String> entry : given.entrySet()) {
      String key = entry.getKey();
      if (JobKey.isKnown(key)) {
        values.put(key, entry.getValue().trim());
      } else if (key.startsWith(JobKey.PREFIX)) {
        throw new BadInputException(key, "no such key", "one of docs/JOBS.md");
      }
    }
  }

  /** Returns TonY's keys among these that mean nothing here, in order. */
  public static List<String> foreign(Map<String, String> given) {
    List<String> foreign = new ArrayList<>();
    for (String key : new TreeMap<>(given).keySet()) {
      if (key.startsWith(JobKey.TONY_PREFIX) && !JobKey.isKnown(key)) {
        foreign.add(key);
      }
    }
    return foreign;
  }

  /** Returns all of them. */
  public Map<String, String> values() {
    return Collections.unmodifiableMap(values);
  }

  /** Returns names of task types that some key is about, the workers first. */
  List<String> taskTypes() {
    List<String> types = new ArrayList<>();
    types.add(TaskType.WORKER);
    for (String key : values.keySet()) {
      String type = JobKey.taskTypeOf(key);
      if (type != null && !types.contains(type)) {
        types.add(type);
      }
    }
    return types;
  }

  String text(JobKey key) {
    String value = values.get(key.key());
    if (value == null && !key.tonyKey().isEmpty()) {
      value = values.get(key.tonyKey());
    }
    return value == null || value.isEmpty() ? key.otherwise() : value;
  }

  int number(JobKey key, int least) throws BadInputException {
    return number(written(key), text(key), least);
  }

  int memoryMib(JobKey key) throws BadInputException {
    return memoryMib(written(key), text(key));
  }

  boolean flag(JobKey key) throws BadInputException {
    return choice(key, "true", "false").equals("true");
  }

  String choice(JobKey key, String... allowed) throws BadInputException {
    String value = text(key).toLowerCase(Locale.ROOT);
    if (!Arrays.asList(allowed).contains(value)) {
      throw new BadInputException(written(key), quoted(text(key)), String.join(" or ", allowed));
    }
    return value;
  }

  List<String> list(JobKey key) {
    List<String> parts = new ArrayList<>();
    for (String part : text(key).split(",", -1)) {
      if (!part.trim().isEmpty()) {
        parts.add(part.trim());
      }
    }
    return parts;
  }

  /** Returns the value of a task type's key under the name that the user wrote; null for none. */
  private String taskKey(String type, String what) {
    String own = JobKey.PREFIX + type + "." + what;
    String tony = JobKey.TONY_PREFIX + type + "." + what;
    return values.containsKey(own) || !values.containsKey(tony) ? own : tony;
  }

  String taskText(String type, String what) {
    return values.getOrDefault(taskKey(type, what), "");
  }

  int taskNumber(String type, String what, int otherwise, int least) throws BadInputException {
    String key = taskKey(type, what);
    String value = values.getOrDefault(key, "");
    return value.isEmpty() ? otherwise : number(key, value, least);
  }

  int taskMemoryMib(String type, int otherwise) throws BadInputException {
    String key = taskKey(type, "memory");
    String value = values.getOrDefault(key, "");
    return value.isEmpty() ? otherwise : memoryMib(key, value);
  }

  String written(JobKey key) {
    return values.containsKey(key.key()) || !values.containsKey(key.tonyKey())
        ? key.key()
        : key.tonyKey();
  }

  /** The same job with its workers in another shape: memory and vcores are shared out anew. */
  JobSettings inShape(Shape shape, Shape first) throws BadInputException {
    String type = TaskType.WORKER;
    SortedMap<String, String> shaped = new TreeMap<>(values);
    long memoryMib = (long) taskMemoryMib(type, TaskType.MEMORY_MIB) * first.workers();
    int vcores = taskNumber(type, "vcores", 1, 1) * first.workers();
    shaped.keySet().removeIf(key -> type.equals(JobKey.taskTypeOf(key)) && !isCommand(key));
    String prefix = JobKey.PREFIX + type + ".";
    shaped.put(prefix + "instances", Integer.toString(shape.workers()));
    shaped.put(prefix + "gpus", Integer.toString(shape.gpus()));
    shaped.put(prefix + "memory", Long.toString(memoryMib / shape.workers()));
    shaped.put(prefix + "vcores", Integer.toString(Math.max(1, vcores / shape.workers())));
    return new JobSettings(shaped);
  }

  private static boolean isCommand(String key) {
    return key.endsWith(".command");
  }

  static String quoted(String text) {
    return "\"" + text + "\"";
  }

  private static int number(String key, String value, int least) throws BadInputException {
    try {
      int number = Integer.parseInt(value);
      if (number >= least) {
        return number;
      }
    } catch (NumberFormatException e) {
      // Told below, as a number that is too small is.
    }
    throw new BadInputException(key, quoted(value), "a whole number from " + least);
  }

  private static int memoryMib(String key, String value) throws BadInputException {
    Matcher matcher = MEMORY.matcher(value);
    if (matcher.matches()) {
      boolean isGib = matcher.group(2).equalsIgnoreCase("g");
      long mib = Long.parseLong(matcher.group(1)) * (isGib ? MIB_PER_GIB : 1);
      if (mib > 0 && mib <= Integer.MAX_VALUE) {
        return (int) mib;
      }
    }
    throw new BadInputException(key, quoted(value), "memory such as 2g, 2048m or 2048 (MiB)");
  }
}
