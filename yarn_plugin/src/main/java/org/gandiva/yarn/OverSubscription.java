package org.gandiva.yarn;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.stream.Collectors;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.NodeState;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceOption;
import org.apache.hadoop.yarn.server.resourcemanager.ResourceManager;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeResourceUpdateSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.SchedulerEvent;
import org.apache.hadoop.yarn.util.resource.Resources;
import org.gandiva.yarn.gateway.Json;
import org.gandiva.yarn.gateway.ProtocolException;

/**
 * Makes the scheduler see physical GPUs times the height, so that several jobs can hold containers
 * on one device. The ResourceManager's node keeps the physical count; memory and vcores are never
 * inflated. A height is 1 except in mode full, where the core asked for more or the site trusts
 * every node. What a node's containers hold above its height is seen until they end, and offered to
 * nobody.
 */
final class OverSubscription {
  private static final int NO_TIMEOUT = -1;

  /** An update of ours: its amount is worked out when it is handled, not when it is sent. */
  private static final class Refit extends NodeResourceUpdateSchedulerEvent {
    Refit(RMNode node) {
      super(node, ResourceOption.newInstance(node.getTotalCapability(), NO_TIMEOUT));
    }
  }

  private final GandivaScheduler scheduler;
  private final Veto veto;
  private final int heightMax;
  private final int heightUnasked;
  private final long schedulingWaitMs;
  private final PhysicalGpus physicalByNode = new PhysicalGpus();
  private final ConcurrentMap<String, Long> physicalByPartition = new ConcurrentHashMap<>();
  private final ConcurrentMap<NodeId, Integer> askedHeights = new ConcurrentHashMap<>();
  private final Set<NodeId> aboveHeight = ConcurrentHashMap.newKeySet();
  private volatile boolean isSuspended;

  OverSubscription(GandivaScheduler scheduler, Veto veto, GandivaConfiguration settings) {
    this.scheduler = scheduler;
    this.veto = veto;
    this.heightMax = settings.heightMax();
    this.heightUnasked = settings.oversubscribesWithoutAgent() ? heightMax : 1;
    this.schedulingWaitMs = settings.schedulingWaitMs();
  }

  int heightMax() {
    return heightMax;
  }

  void onArrival(RMNode node) {
    setPhysical(node, node.getTotalCapability());
  }

  void onDeparture(RMNode node) {
    physicalByNode.remove(node.getNodeID());
    physicalByPartition.clear();
    askedHeights.remove(node.getNodeID());
    aboveHeight.remove(node.getNodeID());
  }

  /**
   * The update as the scheduler shall see it. A decommissioning node shrinks to what it runs, and
   * must not be inflated again.
   */
  NodeResourceUpdateSchedulerEvent onUpdate(NodeResourceUpdateSchedulerEvent event) {
    RMNode node = event.getRMNode();
    if (node.getState() == NodeState.DECOMMISSIONING) {
      return event;
    }
    boolean isOurs = event instanceof Refit;
    ResourceOption told = event.getResourceOption();
    Resource physical = isOurs ? node.getTotalCapability() : told.getResource();
    SchedulerNode known = scheduler.getNode(node.getNodeID());
    long held = known != null && (isOurs || isInflated(known)) ? held(known) : 0;
    if (!isOurs) {
      setPhysical(node, physical);
    }
    Resource schedulable = schedulable(node.getNodeID(), physical, held);
    return schedulable.equals(told.getResource())
        ? event
        : new NodeResourceUpdateSchedulerEvent(
            node, ResourceOption.newInstance(schedulable, told.getOverCommitTimeout()));
  }

  /** The update that brings a node to its height; null where it has it. */
  private NodeResourceUpdateSchedulerEvent refit(NodeId id) {
    FiCaSchedulerNode node = scheduler.getNode(id);
    if (node == null || node.getRMNode().getState() == NodeState.DECOMMISSIONING) {
      return null;
    }
    RMNode known = node.getRMNode();
    Resource due = schedulable(id, known.getTotalCapability(), held(node));
    return ResourceVector.gpus(due) == ResourceVector.gpus(node.getTotalResource())
        ? null
        : new Refit(known);
  }

  /** The updates, as the scheduler shall see them, that bring these nodes to their heights. */
  List<SchedulerEvent> refits(Collection<NodeId> nodes) {
    return nodes.stream()
        .map(this::refit)
        .filter(Objects::nonNull)
        .map(this::onUpdate)
        .collect(Collectors.toList());
  }

  /** A node reported; of one that is seen above its height containers may have ended. */
  void onHeartbeat(NodeId id) {
    if (!aboveHeight.isEmpty() && aboveHeight.contains(id)) {
      refitNow(id);
    }
  }

  /** Brings every node to its height. Never called with a lock of the scheduler held. */
  void refitAll() {
    for (FiCaSchedulerNode node : scheduler.getAllNodes()) {
      refitNow(node.getNodeID());
    }
  }

  private void refitNow(NodeId id) {
    NodeResourceUpdateSchedulerEvent refit = refit(id);
    if (refit != null) {
      scheduler.handle(refit);
    }
  }

  /** Sets all nodes to physical, whatever was asked; what runs goes on. */
  void toPhysical() {
    isSuspended = true;
    refitAll();
  }

  /** Takes {@link #toPhysical} back. */
  void restore() {
    isSuspended = false;
    refitAll();
  }

  /** Does the effect set_height; when it is answered, the node has the height. */
  ObjectNode setHeight(ObjectNode effect) throws ProtocolException {
    ObjectNode result = Json.object().put("id", Json.text(effect, "id"));
    String text = Json.text(effect, "node");
    int height = Json.count(effect, "height");
    if (height < 1 || height > heightMax) {
      throw ProtocolException.badRequest(
          "height: found " + height + ", expected a number from 1 to " + heightMax);
    }
    try {
      setHeight(GangPlan.node(scheduler, text), height);
      return result.put("code", CommitCode.OK.name());
    } catch (CommitRefusal refusal) {
      return result.put("code", refusal.code().name()).put("detail", refusal.getMessage());
    }
  }

  private void setHeight(FiCaSchedulerNode node, int height) throws CommitRefusal {
    Mode mode = veto.adoption().mode();
    if (height > 1 && mode != Mode.FULL) {
      throw new CommitRefusal(CommitCode.MODE, "the mode is " + mode.word() + ", not full");
    }
    if (height > 1 && !veto.adoption().overSubscribes(node.getPartition())) {
      throw new CommitRefusal(
          CommitCode.NOT_ADOPTED, "the node is in \"" + node.getPartition() + "\"");
    }
    askedHeights.put(node.getNodeID(), height);
    refitNow(node.getNodeID());
  }

  /** Whether the scheduler may see more GPUs on this node than there are. */
  boolean isInflated(SchedulerNode node) {
    return ResourceVector.gpus(node.getTotalResource()) > physical(node);
  }

  /** GPUs of a node that no container holds, over-subscribed ones counted; may be negative. */
  long physicalFree(SchedulerNode node) {
    return physical(node) - held(node);
  }

  /** What the core may fill of a node: never more GPUs than its height, whatever is seen of it. */
  Resource fillable(SchedulerNode node) {
    Resource left = Resources.clone(node.getUnallocatedResource());
    long slots = physical(node) * height(node.getNodeID()) - held(node);
    return slots < ResourceVector.gpus(left) ? ResourceVector.withGpus(left, slots) : left;
  }

  private static long held(SchedulerNode node) {
    return ResourceVector.gpus(node.getAllocatedResource());
  }

  /** Physical GPUs of a partition's nodes. */
  long physicalIn(String partition) {
    return physicalByPartition.computeIfAbsent(
        partition,
        name ->
            scheduler.getAllNodes().stream()
                .filter(node -> node.getPartition().equals(name))
                .mapToLong(this::physical)
                .sum());
  }

  /** Nodes got other labels. */
  void onLabels() {
    physicalByPartition.clear();
  }

  private void setPhysical(RMNode node, Resource physical) {
    physicalByNode.put(node.getNodeID(), ResourceVector.gpus(physical));
    physicalByPartition.clear();
  }

  private long physical(SchedulerNode node) {
    Long known = physicalByNode.get(node.getNodeID());
    return known == null ? ResourceVector.gpus(node.getRMNode().getTotalCapability()) : known;
  }

  /** The greatest container that the scheduler may promise: of physical GPUs, never of slots. */
  Resource capPhysical(Resource maximum) {
    if (System.currentTimeMillis() - ResourceManager.getClusterTimeStamp() <= schedulingWaitMs) {
      // As Hadoop does it: masters ask again after a restart, before all nodes are back.
      return maximum;
    }
    long physical = physicalByNode.greatest();
    long told = ResourceVector.gpus(maximum);
    return told <= physical ? maximum : ResourceVector.withGpus(maximum, physical);
  }

  /**
   * What the scheduler shall see of a node: at least what its containers hold. Of a node that owes
   * GPUs Hadoop gives away nothing at all, not even memory.
   */
  private Resource schedulable(NodeId id, Resource physical, long held) {
    long gpus = ResourceVector.gpus(physical);
    long slots = gpus * height(id);
    if (held > slots) {
      aboveHeight.add(id);
    } else {
      aboveHeight.remove(id);
    }
    long seen = Math.max(slots, held);
    return gpus == 0 || seen == gpus ? physical : ResourceVector.withGpus(physical, seen);
  }

  private int height(NodeId id) {
    SchedulerNode node = scheduler.getNode(id);
    boolean mayShare =
        node != null && !isSuspended && veto.adoption().overSubscribes(node.getPartition());
    return mayShare ? askedHeights.getOrDefault(id, heightUnasked) : 1;
  }
}
