package org.gandiva.yarn.replay;

import org.apache.hadoop.yarn.event.EventHandler;
import org.apache.hadoop.yarn.server.resourcemanager.recovery.NullRMStateStore;

/** Stores nothing and answers at once: the stock null store answers from a thread of its own. */
final class InlineStateStore extends NullRMStateStore {
  @Override
  @SuppressWarnings("rawtypes")
  protected EventHandler getRMStateStoreEventHandler() {
    return rmStateStoreEventHandler;
  }
}
