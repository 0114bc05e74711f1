package org.gandiva.yarn.replay;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.lang.reflect.UndeclaredThrowableException;
import java.security.PrivilegedExceptionAction;
import java.util.Collections;
import java.util.HashSet;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.api.protocolrecords.GetNewApplicationRequest;
import org.apache.hadoop.yarn.api.protocolrecords.KillApplicationRequest;
import org.apache.hadoop.yarn.api.protocolrecords.SubmitApplicationRequest;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.ApplicationTimeoutType;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.ReservationId;
import org.apache.hadoop.yarn.exceptions.YarnException;
import org.apache.hadoop.yarn.server.resourcemanager.ClientRMService;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNodeEvent;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNodeEventType;
import org.apache.hadoop.yarn.util.Records;
import org.gandiva.yarn.ResourceVector;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.gateway.ProtocolException;

/** Does the actions of a step: what nodes, users and masters do at one instant. */
final class ReplayActions {
  private static final int ROUNDS_MAX = 1000;

  private final ReplaySession session;
  private final MasterActions masters;
  private final PreemptionDriver preemption;

  ReplayActions(ReplaySession session) {
    this.session = session;
    this.masters = new MasterActions(session);
    this.preemption = new PreemptionDriver(session);
  }

  /** Does one action; returns whether something happened that scheduling may answer. */
  boolean perform(ObjectNode action) throws Exception {
    String verb = Json.text(action, "do");
    switch (verb) {
      case "beat":
        session.beat(masters.running(Json.text(action, "key")));
        return false;
      case "beat_all":
        for (String key : Json.texts(action, "keys")) {
          session.beat(masters.running(key));
        }
        return false;
      case "beat_nodes":
        session.beatNext(Json.count(action, "count"));
        return false;
      case "settle":
        session.beatRounds(Json.count(action, "rounds", ROUNDS_MAX), false);
        return false;
      default:
        change(verb, action);
        return true;
    }
  }

  private void change(String verb, ObjectNode action) throws Exception {
    if (masters.perform(verb, action)) {
      return;
    }
    switch (verb) {
      case "add_node":
        addNode(action);
        break;
      case "remove_node":
        removeNode(Json.text(action, "host"));
        break;
      case "submit":
        submit(action);
        break;
      case "kill":
        kill(masters.master(Json.text(action, "key")));
        break;
      case "edit_schedule":
        preemption.editSchedule();
        break;
      default:
        throw ProtocolException.badRequest("do: found \"" + verb + "\", expected a known action");
    }
  }

  private void addNode(ObjectNode action) throws Exception {
    String host = Json.text(action, "host");
    if (session.nodes().containsKey(host)) {
      throw ProtocolException.badRequest("host: " + host + " is already a node");
    }
    SimulatedRacks.put(host, Json.text(action, "rack", "/default-rack"));
    NodeId id = NodeId.newInstance(host, Json.count(action, "port", 1));
    NodeLabels.assign(session.resourceManager().getRMContext(), id, Json.text(action, "label", ""));
    SimulatedNode node =
        new SimulatedNode(
            id,
            ResourceVector.of(
                Json.whole(action, "memory_mib"),
                Json.count(action, "vcores"),
                Json.count(action, "gpus", 0)),
            session.resourceManager().getResourceTrackerService());
    node.register();
    session.nodes().put(host, node);
    session.drain();
    session.heartbeat(node);
  }

  private void removeNode(String host) throws Exception {
    SimulatedNode node = session.nodes().remove(host);
    if (node == null) {
      throw ProtocolException.badRequest("host: " + host + " is not a node");
    }
    session.distrustOutstanding();
    session
        .resourceManager()
        .getRMContext()
        .getDispatcher()
        .getEventHandler()
        .handle(new RMNodeEvent(node.id(), RMNodeEventType.EXPIRE));
    session.beatUnheard();
  }

  private void submit(ObjectNode action) throws Exception {
    String key = Json.text(action, "key");
    if (session.mastersByKey().containsKey(key)) {
      throw ProtocolException.badRequest("key: " + key + " was already submitted");
    }
    String user = Json.text(action, "user", "user");
    UserGroupInformation identity = UserGroupInformation.createRemoteUser(user);
    ClientRMService client = session.resourceManager().getClientRMService();
    ApplicationId app =
        client
            .getNewApplication(Records.newRecord(GetNewApplicationRequest.class))
            .getApplicationId();
    SimulatedMaster master =
        new SimulatedMaster(
            key, app, user, session.resourceManager().getApplicationMasterService());
    session.add(master);
    SubmitApplicationRequest request =
        SubmitApplicationRequest.newInstance(submission(action, app));
    try {
      identity.doAs((PrivilegedExceptionAction<Object>) () -> client.submitApplication(request));
    } catch (UndeclaredThrowableException e) {
      if (!(e.getCause() instanceof YarnException)) {
        throw e;
      }
      session.events().rejected(master, e.getCause().getMessage());
    }
    session.drain();
  }

  private static ApplicationSubmissionContext submission(ObjectNode action, ApplicationId app)
      throws ProtocolException, IOException {
    ApplicationSubmissionContext context = Records.newRecord(ApplicationSubmissionContext.class);
    context.setApplicationId(app);
    context.setApplicationName(Json.text(action, "name", Json.text(action, "key")));
    context.setApplicationType(Json.text(action, "type", "GANDIVA-REPLAY"));
    context.setQueue(Json.text(action, "queue", "default"));
    context.setPriority(Priority.newInstance(Json.count(action, "priority", 0)));
    context.setMaxAppAttempts(Json.count(action, "max_attempts", 2));
    context.setResource(
        ResourceVector.of(
            Json.whole(action, "am_memory_mib"),
            Json.count(action, "am_vcores"),
            Json.count(action, "am_gpus", 0)));
    context.setNodeLabelExpression(Json.text(action, "label", null));
    context.setKeepContainersAcrossApplicationAttempts(
        action.path("keep_containers").asBoolean(false));
    if (action.has("lifetime_s")) {
      context.setApplicationTimeouts(
          Collections.singletonMap(
              ApplicationTimeoutType.LIFETIME, Json.whole(action, "lifetime_s")));
    }
    if (action.has("reservation")) {
      context.setReservationID(ReservationId.parseReservationId(Json.text(action, "reservation")));
    }
    context.setApplicationTags(new HashSet<>(Json.texts(action, "tags")));
    context.setAMContainerSpec(
        ContainerLaunchContext.newInstance(
            Collections.emptyMap(),
            Collections.emptyMap(),
            Collections.emptyList(),
            Collections.emptyMap(),
            null,
            Collections.emptyMap()));
    return context;
  }

  private void kill(SimulatedMaster master) throws Exception {
    ClientRMService client = session.resourceManager().getClientRMService();
    KillApplicationRequest request = KillApplicationRequest.newInstance(master.app());
    UserGroupInformation.createRemoteUser(master.user())
        .doAs((PrivilegedExceptionAction<Object>) () -> client.forceKillApplication(request));
    session.beatUnheard();
  }
}
