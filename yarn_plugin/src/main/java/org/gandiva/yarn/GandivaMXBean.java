package org.gandiva.yarn;

import java.util.Map;

/**
 * What the ResourceManager shows of Gandiva under {@code /jmx}, as {@code
 * Hadoop:service=ResourceManager,name=Gandiva}. Counts are since the start; flags are 0 or 1, so
 * that any monitoring can alarm on them.
 */
public interface GandivaMXBean {
  /** Returns observe, place or full. */
  String getMode();

  /** Returns NEVER_SEEN, CONNECTED or SILENT. */
  String getCoreState();

  /** Returns 1 while the core calls. */
  int getCoreConnected();

  /** Returns for how long the core's state has been so; a silence begins at the last call. */
  long getCoreStateMs();

  /** Returns the number of the valid session. */
  long getCoreEpoch();

  /** Returns 1 where the core is a child of the ResourceManager. */
  int getCoreManaged();

  /** Returns how often the managed core was started again. */
  long getCoreRestarts();

  /** Returns 1 while the managed core ended too often and rests, or cannot be started at all. */
  int getCoreDownAlarm();

  /** Returns why, in one line; empty without an alarm. */
  String getCoreDownReason();

  /** Returns how often a connected core fell silent. */
  long getBreakerOpens();

  /** Returns wait or exclusive. */
  String getFallback();

  /** Returns 1 while stock code serves GPU asks because the core is silent. */
  int getFallbackEngaged();

  /** Returns how often code of the plug-in failed and was caught. */
  long getOwnErrors();

  /** Returns gangs that were committed whole. */
  long getCommitsOk();

  /** Returns effects of the core that were done, by what they do. */
  Map<String, Long> getEffectsDone();

  /** Returns effects of the core that were refused, by code. */
  Map<String, Long> getEffectsRefused();

  /** Returns whole requests that were refused, by kind. */
  Map<String, Long> getRequestsRefused();

  /** Returns requests and effects that were malformed. */
  long getGarbageRefused();

  /** Returns GPU proposals of stock code that were refused. */
  long getForeignGpusRefused();

  /** Returns containers that the preemption monitor wanted and the core was asked for instead. */
  long getPreemptionsReclaimed();

  /** Returns events that wait for the core. */
  int getEventsQueued();

  /** Returns how often the queue of events was full, and dropped for one resync. */
  long getQueueOverflows();

  /** Returns nodes with GPUs, by their height: how many containers may share one device. */
  Map<String, Long> getNodesByHeight();
}
