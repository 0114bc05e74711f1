package org.gandiva.yarn;

import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;

/**
 * Queue capacities that are amounts of GPUs, as in {@code [memory=8192,vcores=8,yarn.io/gpu=4]}.
 * They mean physical GPUs. The scheduler counts slots where nodes are over-subscribed, so it is
 * given the amounts times the height there.
 */
final class AbsoluteGpus {
  private static final Pattern ENTRY =
      Pattern.compile("(?<=[\\[,])(\\s*yarn\\.io/gpu\\s*=\\s*)(\\d+)(?=\\s*[,\\]])");
  private static final Pattern KEY =
      Pattern.compile(
          "yarn\\.scheduler\\.capacity\\.(.+?)"
              + "(?:\\.accessible-node-labels\\.([^.]+))?\\.(?:maximum-)?capacity");

  private AbsoluteGpus() {}

  /** Returns the amount in a capacity's text; null where its GPUs are no amount. */
  static Long of(String capacity) {
    Matcher entry = ENTRY.matcher(capacity == null ? "" : capacity);
    return entry.find() ? Long.valueOf(entry.group(2)) : null;
  }

  /** Returns by how much amounts of this queue in this partition are scaled. */
  static int scale(Adoption adoption, int heightMax, String queuePath, String partition) {
    return adoption.overSubscribes(partition) && adoption.touchesQueue(queuePath) ? heightMax : 1;
  }

  /** Returns the entries of a configuration that are to be overridden, by key; mostly none. */
  static Map<String, String> scaled(Configuration conf, Adoption adoption, int heightMax) {
    Map<String, String> overrides = new TreeMap<>();
    for (Map.Entry<String, String> entry : conf) {
      Matcher key = KEY.matcher(entry.getKey());
      if (key.matches()) {
        String partition = key.group(2) == null ? "" : key.group(2);
        int scale = scale(adoption, heightMax, key.group(1), partition);
        String text = conf.get(entry.getKey());
        Long gpus = of(text);
        if (scale > 1 && gpus != null) {
          overrides.put(entry.getKey(), ENTRY.matcher(text).replaceFirst("$1" + gpus * scale));
        }
      }
    }
    return overrides;
  }
}
