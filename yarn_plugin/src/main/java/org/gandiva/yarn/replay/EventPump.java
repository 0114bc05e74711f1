package org.gandiva.yarn.replay;

import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.hadoop.service.AbstractService;
import org.apache.hadoop.yarn.event.Dispatcher;
import org.apache.hadoop.yarn.event.Event;
import org.apache.hadoop.yarn.event.EventHandler;

/**
 * The ResourceManager's dispatcher without a thread: events are queued, and handled when the driver
 * pumps. "Settled" means that the queue is empty.
 */
final class EventPump extends AbstractService implements Dispatcher {

  /** Sees every event right before it is handled. */
  interface Observer {
    void handling(Event<?> event);
  }

  private final Queue<Event<?>> queue = new ConcurrentLinkedQueue<>();
  private final Map<Class<?>, EventHandler<Event<?>>> handlers = new ConcurrentHashMap<>();
  private final EventHandler<Event<?>> enqueue = queue::add;
  private Observer observer = event -> {};
  private long handledCount;

  EventPump() {
    super("event pump"); // Hadoop casts its dispatcher to a service.
  }

  void observe(Observer newObserver) {
    this.observer = newObserver;
  }

  @Override
  @SuppressWarnings({"rawtypes", "unchecked"})
  public EventHandler<Event> getEventHandler() {
    return (EventHandler) enqueue;
  }

  @Override
  @SuppressWarnings({"rawtypes", "unchecked"})
  public void register(Class<? extends Enum> type, EventHandler handler) {
    EventHandler<Event<?>> added = (EventHandler<Event<?>>) handler;
    handlers.merge(
        type,
        added,
        (first, second) ->
            event -> {
              first.handle(event);
              second.handle(event);
            });
  }

  /** Handles events until none is left. An exception of a handler stops the replay. */
  void drain() {
    for (Event<?> event = queue.poll(); event != null; event = queue.poll()) {
      handledCount++;
      observer.handling(event);
      EventHandler<Event<?>> handler = handlers.get(event.getType().getDeclaringClass());
      if (handler == null) {
        throw new IllegalStateException("no handler for " + event.getType());
      }
      handler.handle(event);
    }
  }

  long handledCount() {
    return handledCount;
  }
}
