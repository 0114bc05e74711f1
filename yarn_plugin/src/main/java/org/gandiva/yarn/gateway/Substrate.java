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

  /** A call of the valid session begins. */
  void heard();

  /** Work on an answer begins, which may take longer than a core may be silent. */
  void answerBegins();

  /** The answer is there. */
  void answerEnds();

  /** Applies one effect; returns its result with "id" and "code". */
  ObjectNode apply(ObjectNode effect) throws ProtocolException;
}
