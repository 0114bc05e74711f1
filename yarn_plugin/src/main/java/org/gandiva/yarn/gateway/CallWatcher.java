package org.gandiva.yarn.gateway;

/** Is told of the core's calls, to notice when it makes none. */
public interface CallWatcher {
  /** A call of the valid session begins. */
  void heard();

  /** Work on an answer begins, which may take longer than a core may be silent. */
  void answerBegins();

  /** The answer is there. */
  void answerEnds();
}
