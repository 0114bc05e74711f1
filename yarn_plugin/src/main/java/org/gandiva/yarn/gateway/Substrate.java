package org.gandiva.yarn.gateway;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/** What the gateway needs of the scheduler behind it. */
public interface Substrate {
  /** Returns the class name of the scheduler. */
  String schedulerClass();

  /** Returns the parts of a whole snapshot, each with kind "resync", "part" and "parts". */
  List<ObjectNode> snapshot();

  /** Applies one effect; returns its result with "id" and "code". */
  ObjectNode apply(ObjectNode effect) throws ProtocolException;
}
