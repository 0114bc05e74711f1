package org.gandiva.yarn;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Consumer;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerApp;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.placement.AppPlacementAllocator;
import org.apache.hadoop.yarn.server.scheduler.SchedulerRequestKey;
import org.gandiva.yarn.gateway.Json;

/**
 * Tells the core what attempts ask for: the whole table of GPU asks, whenever it differs from what
 * was told before, and once more that it did not change on the next heartbeat.
 */
final class AskLedger {
  private static final Comparator<ResourceRequest> ORDER =
      Comparator.<ResourceRequest>comparingInt(ask -> ask.getPriority().getPriority())
          .thenComparingLong(ResourceRequest::getAllocationRequestId)
          .thenComparing(ResourceRequest::getResourceName);

  /** What was told about one attempt. */
  private static final class Told {
    private ObjectNode table = Json.object();
    private long heartbeats;
    private boolean mustRepeat;
  }

  private final ConcurrentMap<ApplicationAttemptId, Told> told = new ConcurrentHashMap<>();
  private final Consumer<ObjectNode> events;

  AskLedger(Consumer<ObjectNode> events) {
    this.events = events;
  }

  /** The attempt's master sent a heartbeat. */
  void onHeartbeat(FiCaSchedulerApp app) {
    tell(app, true);
  }

  /** The attempt's table may have changed by itself, as when a container was lost unseen. */
  void onChange(FiCaSchedulerApp app) {
    tell(app, false);
  }

  /**
   * The core's own commit changed the table: it knows, and is not told again. Called with the
   * attempt's gate held, so that no change of the master gets lost in between.
   */
  void onCommit(FiCaSchedulerApp app) {
    Told last = told.get(app.getApplicationAttemptId());
    if (last != null) {
      synchronized (last) {
        last.table = table(app);
        last.mustRepeat = false;
      }
    }
  }

  void forget(ApplicationAttemptId attempt) {
    told.remove(attempt);
  }

  private void tell(FiCaSchedulerApp app, boolean isHeartbeat) {
    ApplicationAttemptId attempt = app.getApplicationAttemptId();
    List<ResourceRequest> asks = gpuAsks(app);
    Told last = told.get(attempt);
    if (last == null) {
      if (asks.isEmpty()) {
        return; // Most masters never ask for a GPU: their heartbeats cost no more than a look.
      }
      last = told.computeIfAbsent(attempt, ignored -> new Told());
    }
    ObjectNode table = table(app, asks);
    synchronized (last) {
      last.heartbeats += isHeartbeat ? 1 : 0;
      if (!table.equals(last.table)) {
        last.table = table;
        last.mustRepeat = !asks.isEmpty();
        ObjectNode event = event("asks", app);
        event.setAll(table.deepCopy());
        event.put("heartbeat", last.heartbeats);
        events.accept(event);
      } else if (isHeartbeat && last.mustRepeat) {
        last.mustRepeat = false;
        events.accept(event("asks_unchanged", app));
      }
    }
  }

  private static ObjectNode event(String kind, FiCaSchedulerApp app) {
    return Json.object()
        .put("kind", kind)
        .put("app", app.getApplicationId().toString())
        .put("attempt", app.getApplicationAttemptId().toString());
  }

  /** Returns the fields "asks", "blacklist" and "app_priority" of an attempt. */
  static ObjectNode table(FiCaSchedulerApp app) {
    return table(app, gpuAsks(app));
  }

  private static ObjectNode table(FiCaSchedulerApp app, List<ResourceRequest> gpuAsks) {
    // A new priority is told as a changed table: Hadoop's method for it has another signature in
    // each release.
    Priority priority = app.getPriority();
    ObjectNode table = Json.object();
    table.put("app_priority", priority == null ? 0 : priority.getPriority());
    ArrayNode asks = table.putArray("asks");
    for (ResourceRequest ask : gpuAsks) {
      ObjectNode entry = asks.addObject();
      entry.put("priority", ask.getPriority().getPriority());
      entry.put("allocation_request_id", ask.getAllocationRequestId());
      entry.put("resource_name", ask.getResourceName());
      entry.put("relax_locality", ask.getRelaxLocality());
      entry.put("count", ask.getNumContainers());
      ResourceVector.write(entry, ask.getCapability());
      String label = ask.getNodeLabelExpression();
      entry.put("label", label == null ? "" : label);
      entry.put("is_master", app.isWaitingForAMContainer());
      entry.put("execution_type", ask.getExecutionTypeRequest().getExecutionType().name());
    }
    ArrayNode blacklist = table.putArray("blacklist");
    if (asks.size() > 0) {
      new TreeSet<>(app.getAppSchedulingInfo().getBlackListCopy()).forEach(blacklist::add);
    }
    return table;
  }

  private static List<ResourceRequest> gpuAsks(FiCaSchedulerApp app) {
    List<ResourceRequest> found = new ArrayList<>();
    for (SchedulerRequestKey key : app.getSchedulerKeys()) {
      AppPlacementAllocator<FiCaSchedulerNode> allocator = app.getAppPlacementAllocator(key);
      if (allocator == null || key.getContainerToUpdate() != null) {
        continue;
      }
      Map<String, ResourceRequest> requests = allocator.getResourceRequests();
      ResourceRequest any = requests.get(ResourceRequest.ANY);
      if (any != null && ResourceVector.gpus(any.getCapability()) == 0) {
        continue; // All entries of a key have one size, and there may be thousands.
      }
      for (ResourceRequest ask : requests.values()) {
        if (ResourceVector.gpus(ask.getCapability()) > 0 && ask.getNumContainers() > 0) {
          found.add(ask);
        }
      }
    }
    found.sort(ORDER);
    return found;
  }
}
