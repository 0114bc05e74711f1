package org.gandiva.yarn.gateway;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/** What the gateway needs of the scheduler behind it. */
public interface Substrate {
  /** Returns the class name of the scheduler. */
  String schedulerClass();

  /** Returns the parts of a whole snapshot, each with kind "resync", "part" and "parts". */
  List<ObjectNode> snapshot();

  /** Lets a core open a session, or refuses it; the text is the "managed" of its hello. */
  void admit(String managed) throws ProtocolException;

  /** Returns who is told of the core's calls. */
  CallWatcher callWatcher();

  /** Applies one effect; returns its result with "id" and "code". */
  ObjectNode apply(ObjectNode effect) throws ProtocolException;
}
