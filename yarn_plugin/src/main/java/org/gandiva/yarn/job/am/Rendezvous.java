package org.gandiva.yarn.job.am;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.Map;
import org.gandiva.yarn.job.TaskType;

/**
 * Where the tasks of a generation find each other: each registers an address on which it holds a
 * port, and all are told once all have. Two containers never register one address (B05).
 */
final class Rendezvous {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int PORT_MAX = 65_535;

  private final Gang gang;
  private final Map<String, String> addresses = new HashMap<>();

  /**
   * What each generation was told first: who asks late, when others have ended, is told the same.
   */
  private final Map<Integer, ObjectNode> told = new HashMap<>();

  Rendezvous(Gang gang) {
    this.gang = gang;
  }

  /**
   * A task is there.
   *
   * @return null where it was taken, else why not
   */
  String register(String containerId, String host, int port, int generation) {
    Slot slot = gang.slotOf(containerId);
    if (slot == null || !isCurrent(generation)) {
      return "container " + containerId + " of generation " + generation + " is none of this job's";
    }
    if (host.isEmpty() || port < 1 || port > PORT_MAX) {
      return "address " + host + ":" + port + " is none";
    }
    String address = host + ":" + port;
    String key = key(generation, containerId);
    for (Map.Entry<String, String> other : addresses.entrySet()) {
      if (other.getValue().equals(address)
          && !other.getKey().equals(key)
          && gang.has(containerOf(other.getKey()))) {
        return "address " + address + " is another task's: hold another port";
      }
    }
    if (!address.equals(addresses.put(key, address))) {
      told.remove(generation); // It meets anew, with another port.
    }
    return null;
  }

  /**
   * Who is where; not ready before all tasks that have not ended are.
   *
   * @return null for a generation that is over
   */
  ObjectNode answer(int generation) {
    if (!isCurrent(generation)) {
      return null;
    }
    told.keySet().removeIf(earlier -> !isCurrent(earlier));
    return told.containsKey(generation) ? told.get(generation) : current(generation);
  }

  private ObjectNode current(int generation) {
    addresses.keySet().removeIf(key -> !gang.has(containerOf(key)));
    boolean isMove = generation == gang.moves().generation();
    boolean isResize = gang.resizing().isUnderWay(generation);
    ObjectNode answer = JSON.createObjectNode().put("generation", generation);
    ObjectNode cluster = JSON.createObjectNode();
    for (Slot slot : isResize ? gang.resizing().workers() : gang.slots()) {
      if (slot.isDone) {
        continue;
      }
      Place place = isMove && slot.moveId != 0 ? slot.successor : slot.place;
      String address = place == null ? null : address(generation, isMove, place);
      if (address == null) {
        return answer.put("ready", false);
      }
      String type = slot.type().name();
      ArrayNode list = (ArrayNode) cluster.get(type);
      (list == null ? cluster.putArray(type) : list).add(address);
    }
    ArrayNode workers = cluster.withArray(TaskType.WORKER);
    answer.put("ready", workers.size() > 0).put("world_size", workers.size());
    if (workers.size() > 0) {
      if (!isResize) { // Which counts as met once it is done.
        gang.met(generation);
      }
      String master = workers.get(0).asText();
      int colon = master.lastIndexOf(':');
      answer.put("master_addr", master.substring(0, colon));
      answer.put("master_port", Integer.parseInt(master.substring(colon + 1)));
    }
    answer.set("workers", workers);
    answer.set("cluster", cluster);
    if (workers.size() > 0) {
      told.put(generation, answer);
    }
    return answer;
  }

  private static String key(int generation, String containerId) {
    return generation + "/" + containerId;
  }

  private static String containerOf(String key) {
    return key.substring(key.indexOf('/') + 1);
  }

  /** Where a task that stays while others move is, it said of the generation before. */
  private String address(int generation, boolean isMove, Place place) {
    String address = addresses.get(key(generation, place.containerId()));
    boolean mayBeOld = address == null && isMove;
    return mayBeOld ? addresses.get(key(gang.generation(), place.containerId())) : address;
  }

  private boolean isCurrent(int generation) {
    return generation > 0
        && (generation == gang.generation()
            || generation == gang.moves().generation()
            || gang.resizing().isUnderWay(generation));
  }
}
