package org.gandiva.yarn;

/** What became of a commit; the names are the wire's. */
public enum CommitCode {
  /** All containers exist. */
  OK,
  /** The node has too little left, or is reserved. */
  NO_ROOM,
  /** The node is not in the partition that the ask names. */
  LABEL,
  /** The master does not want this node or its rack. */
  BLACKLISTED,
  /** A queue would exceed its maximum. */
  QUEUE_LIMIT,
  /** The user has the share that the queue gives one user. */
  USER_LIMIT,
  /** The node is gone or not running. */
  NODE_STATE,
  /** The ask insists on other nodes. */
  LOCALITY,
  /** The attempt does not ask for this container, or not any more. */
  ASK_GONE,
  /** The scheduler still waits for nodes after its start. */
  NOT_READY,
  /** Not in the mode that is in force. */
  MODE,
  /** The queue or the partition was left to the stock scheduler. */
  NOT_ADOPTED
}
