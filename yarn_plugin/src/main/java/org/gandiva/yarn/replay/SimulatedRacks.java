package org.gandiva.yarn.replay;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.net.CachedDNSToSwitchMapping;
import org.apache.hadoop.net.NetworkTopology;

/**
 * Racks of simulated hosts, without name service. Hadoop makes the instance by reflection and keeps
 * it for the life of the JVM, thus the static table.
 */
public final class SimulatedRacks extends CachedDNSToSwitchMapping {
  private static final Map<String, String> RACK_BY_HOST = new ConcurrentHashMap<>();

  /** Used by Hadoop's reflection. */
  public SimulatedRacks() {
    super(null);
  }

  static void put(String host, String rack) {
    RACK_BY_HOST.put(host, rack);
  }

  @Override
  public List<String> resolve(List<String> names) {
    List<String> racks = new ArrayList<>();
    for (String name : names) {
      racks.add(RACK_BY_HOST.getOrDefault(name, NetworkTopology.DEFAULT_RACK));
    }
    return racks;
  }

  @Override
  public boolean isSingleSwitch() {
    return false;
  }

  @Override
  public void reloadCachedMappings() {
    // The table is the truth; nothing is cached.
  }

  @Override
  public String toString() {
    return "simulated racks";
  }
}
