package org.gandiva.yarn;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.exceptions.YarnRuntimeException;

/**
 * The queues there are, from a configuration and from the tree that lives, found by their names.
 */
final class QueueNames {
  /** Prefix of Hadoop's keys of a queue. */
  static final String PREFIX = "yarn.scheduler.capacity.";

  /** Children of a queue with one of these come and go with their applications. */
  private static final String[] GROWING = {
    "auto-create-child-queue.enabled", "auto-queue-creation-v2.enabled", "reservable"
  };

  private final Configuration conf;
  private final TreeSet<String> paths = new TreeSet<>();

  /**
   * Reads the queue tree.
   *
   * @param live paths of queues that exist, made by hand or by themselves
   */
  QueueNames(Configuration conf, Collection<String> live) {
    this.conf = conf;
    paths.addAll(live);
    addWithChildren("root");
  }

  private void addWithChildren(String path) {
    paths.add(path);
    for (String child : conf.getTrimmedStrings(PREFIX + path + ".queues")) {
      addWithChildren(path + "." + child);
    }
  }

  /**
   * Returns the path of a queue.
   *
   * @param key the key that names it, for the error
   * @throws YarnRuntimeException for a name of no queue, or of several
   */
  String resolve(String name, String key) {
    if (isKnown(name)) {
      return name;
    }
    List<String> found = new ArrayList<>();
    for (String path : paths) {
      if (path.endsWith("." + name)) {
        found.add(path);
      }
    }
    if (found.size() == 1) {
      return found.get(0);
    }
    throw new YarnRuntimeException(
        found.isEmpty()
            ? key + ": found \"" + name + "\", expected a queue: the nearest is " + nearest(name)
            : key
                + ": found \""
                + name
                + "\", expected one queue, not "
                + String.join(", ", found));
  }

  /** Whether this is the path of a queue, or of one that may come. */
  boolean isKnown(String path) {
    if (paths.contains(path)) {
      return true;
    }
    for (int dot = path.lastIndexOf('.'); dot > 0; dot = path.lastIndexOf('.', dot - 1)) {
      String parent = path.substring(0, dot);
      if (paths.contains(parent)) {
        return isGrowing(parent);
      }
    }
    return false;
  }

  private boolean isGrowing(String path) {
    for (String word : GROWING) {
      if (conf.getBoolean(PREFIX + path + "." + word, false)) {
        return true;
      }
    }
    return false;
  }

  /** Returns the queue whose name is most like this one. */
  String nearest(String name) {
    String best = "root";
    int least = Integer.MAX_VALUE;
    for (String path : paths) {
      int dot = path.lastIndexOf('.');
      int distance = Math.min(distance(name, path), distance(name, path.substring(dot + 1)));
      if (distance < least) {
        least = distance;
        best = path;
      }
    }
    return best;
  }

  /** Levenshtein's: how many characters to put in, take out or change. */
  private static int distance(String a, String b) {
    int[] row = new int[b.length() + 1];
    for (int j = 0; j <= b.length(); j++) {
      row[j] = j;
    }
    for (int i = 1; i <= a.length(); i++) {
      int diagonal = row[0];
      row[0] = i;
      for (int j = 1; j <= b.length(); j++) {
        int change = diagonal + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
        diagonal = row[j];
        row[j] = Math.min(change, 1 + Math.min(row[j], row[j - 1]));
      }
    }
    return row[b.length()];
  }
}
