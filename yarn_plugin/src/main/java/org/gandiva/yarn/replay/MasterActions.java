package org.gandiva.yarn.replay;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.TreeSet;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.gateway.ProtocolException;

/** Does the actions of application masters. */
final class MasterActions {
  private static final int CRASHED = 1;

  private final ReplaySession session;

  MasterActions(ReplaySession session) {
    this.session = session;
  }

  /** Does one action; returns whether it was one of a master. */
  boolean perform(String verb, ObjectNode action) throws Exception {
    switch (verb) {
      case "ask":
      case "ask_constrained":
      case "update":
      case "blacklist":
        ask(verb, action);
        return true;
      case "release":
        release(action);
        return true;
      case "finish":
        finish(action);
        return true;
      case "crash":
        crash(action);
        return true;
      default:
        return false;
    }
  }

  /** New wishes of a master; they are sent at once where it runs, else when it registers. */
  private void ask(String verb, ObjectNode action) throws Exception {
    SimulatedMaster master = master(Json.text(action, "key"));
    switch (verb) {
      case "ask":
        master.ask(MasterAsks.resourceRequests(action));
        break;
      case "ask_constrained":
        master.askConstrained(MasterAsks.schedulingRequests(action));
        break;
      case "update":
        master.update(MasterAsks.updates(action, master));
        break;
      default:
        master.blacklist(Json.texts(action, "add"), Json.texts(action, "remove"));
        break;
    }
    if (master.phase() == SimulatedMaster.Phase.RUNNING) {
      session.beat(master);
    }
  }

  private void release(ObjectNode action) throws Exception {
    SimulatedMaster master = running(Json.text(action, "key"));
    List<ContainerId> containers = new ArrayList<>();
    for (String text : Json.texts(action, "containers")) {
      containers.add(MasterAsks.container(text));
    }
    session.hear(master, master.beat(containers));
    session.beatUnheard();
  }

  private void finish(ObjectNode action) throws Exception {
    SimulatedMaster master = running(Json.text(action, "key"));
    String name = Json.text(action, "status", "SUCCEEDED");
    FinalApplicationStatus status;
    try {
      status = FinalApplicationStatus.valueOf(name.toUpperCase(Locale.ROOT));
    } catch (IllegalArgumentException e) {
      throw ProtocolException.badRequest("status: found \"" + name + "\", expected SUCCEEDED …");
    }
    int exit = status == FinalApplicationStatus.SUCCEEDED ? 0 : 1;
    complete(new ArrayList<>(master.live().values()), exit);
    session.beatUnheard();
    master.unregister(status);
    session.drain();
    complete(Collections.singletonList(master.container()), exit);
  }

  /** The master's own process ends without a word; its workers go on. */
  private void crash(ObjectNode action) throws Exception {
    SimulatedMaster master = running(Json.text(action, "key"));
    complete(Collections.singletonList(master.container()), CRASHED);
    session.drain();
  }

  /** The processes of these containers end; their nodes say so, in host order. */
  private void complete(List<Container> containers, int exit) throws Exception {
    TreeSet<String> hosts = new TreeSet<>();
    for (Container container : containers) {
      SimulatedNode node = session.nodeOf(container.getNodeId().toString());
      if (node != null) {
        node.complete(container.getId(), exit);
        hosts.add(node.id().getHost());
      }
    }
    for (String host : hosts) {
      session.heartbeat(session.nodes().get(host));
    }
  }

  SimulatedMaster master(String key) throws ProtocolException {
    SimulatedMaster master = session.mastersByKey().get(key);
    if (master == null) {
      throw ProtocolException.badRequest("key: \"" + key + "\" was never submitted");
    }
    return master;
  }

  SimulatedMaster running(String key) throws ProtocolException {
    SimulatedMaster master = master(key);
    if (master.phase() != SimulatedMaster.Phase.RUNNING) {
      throw new ProtocolException(
          "NOT_RUNNING", "key: the master of \"" + key + "\" is " + master.phase());
    }
    return master;
  }
}
