package org.gandiva.yarn.job.am;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.CompletableFuture;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterResponse;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerExitStatus;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.client.api.AMRMClient.ContainerRequest;
import org.apache.hadoop.yarn.client.api.async.AMRMClientAsync;
import org.apache.hadoop.yarn.client.api.async.NMClientAsync;
import org.gandiva.yarn.job.JobSpec;
import org.gandiva.yarn.job.TaskType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Joins a gang with YARN: what the ResourceManager and NodeManagers say becomes calls of the gang,
 * what the gang needs becomes calls of theirs. All of it under one lock.
 */
final class Master implements Actions {
  private static final Logger LOG = LoggerFactory.getLogger(Master.class);

  /** Allocation request ids from here on are those of moves, drawn by the core. */
  static final long FIRST_MOVE_ID = 1_000_000;

  /** And from here on those of added workers. */
  static final long FIRST_RESIZE_ID = 1_000_000_000_000_000L;

  /** A resize that takes longer is off. */
  private static final long RESIZE_MS = 180_000;

  /** How long the ends of an earlier attempt's containers may take to be told. */
  private static final long MISSING_MS = 15_000;

  private final Object lock;
  private final List<TaskType> types;
  private final Gang gang;
  private final StateFile state;
  private final Asks asks;
  private final Map<String, Container> containers = new HashMap<>();
  private final CompletableFuture<Ending> ended = new CompletableFuture<>();

  /** Containers of an earlier attempt that nobody has told of yet. */
  private final Set<String> missing = new HashSet<>();

  private AMRMClientAsync<ContainerRequest> resourceManager;
  private NMClientAsync nodes;
  private Launches launches;

  Master(JobSpec spec, StateFile state, Object lock) {
    this.lock = lock;
    this.types = spec.types();
    this.state = state;
    this.asks = new Asks(spec);
    this.gang = new Gang(spec, this);
  }

  Gang gang() {
    return gang;
  }

  /** Completes when the job has ended. */
  CompletableFuture<Ending> ended() {
    return ended;
  }

  /** Registered: takes over what an earlier master left, and asks for what is missing. */
  void start(
      AMRMClientAsync<ContainerRequest> rm,
      NMClientAsync nm,
      Launches how,
      RegisterApplicationMasterResponse registered)
      throws IOException {
    synchronized (lock) {
      this.resourceManager = rm;
      this.nodes = nm;
      this.launches = how;
      JsonNode left = state.read();
      Set<String> alive = new HashSet<>();
      for (Container container : registered.getContainersFromPreviousAttempts()) {
        alive.add(container.getId().toString());
        containers.put(container.getId().toString(), container);
      }
      if (left != null) {
        StateFile.restore(gang, left);
        LOG.info("Took over generation {} with containers {}", gang.generation(), alive);
        gang.startAgainIfNotMet();
      }
      for (String container : alive) {
        if (!gang.has(container)) {
          release(container);
        }
      }
      gang.start();
      missing.addAll(gang.containers());
      missing.removeAll(alive);
      if (!missing.isEmpty()) {
        new Timer("gandiva-missing", true).schedule(givingUp(), MISSING_MS);
      }
    }
  }

  private TimerTask givingUp() {
    return new TimerTask() {
      @Override
      public void run() {
        giveUp();
      }
    };
  }

  /** They ended while no master was there, and YARN has not told how. */
  void giveUp() {
    synchronized (lock) {
      Set<String> lost = new HashSet<>(missing);
      missing.clear();
      for (String container : lost) {
        release(container); // Should it live after all, it must not train beside its successor.
        gang.completed(container, ContainerExitStatus.ABORTED);
      }
    }
  }

  /** Nodes that came back later than this attempt began, with containers of an earlier one. */
  void foundAgain(List<Container> found) {
    synchronized (lock) {
      for (Container container : found) {
        String id = container.getId().toString();
        LOG.info("Found again: {}", id);
        containers.put(id, container);
        missing.remove(id);
        if (!gang.has(id)) {
          release(id);
        }
      }
    }
  }

  // What YARN says.

  void allocated(List<Container> given) {
    synchronized (lock) {
      for (Container container : given) {
        String id = container.getId().toString();
        containers.put(id, container);
        Place place = new Place(id, container.getNodeId().getHost());
        long ask = container.getAllocationRequestId();
        LOG.info("Given {} for ask {}", place, ask);
        if (ask >= FIRST_RESIZE_ID) {
          gang.resizing().allocated(ask, place);
        } else if (ask >= FIRST_MOVE_ID) {
          ContainerRequest request = asks.moved(ask);
          if (request != null) {
            resourceManager.removeContainerRequest(request);
          }
          gang.moves().allocated(ask, place);
        } else if (ask >= 0 && ask < types.size()) {
          gang.allocated(types.get((int) ask), place);
        } else {
          release(id);
        }
      }
    }
  }

  void completed(List<ContainerStatus> statuses) {
    synchronized (lock) {
      for (ContainerStatus status : statuses) {
        LOG.info("Ended: {}", status);
        String id = status.getContainerId().toString();
        gang.completed(id, status.getExitStatus());
        containers.remove(id);
      }
    }
  }

  void failedToStart(ContainerId container, Throwable reason) {
    LOG.warn("{} did not start", container, reason);
    synchronized (lock) {
      if (gang.has(container.toString())) {
        release(container.toString());
        gang.completed(container.toString(), ContainerExitStatus.ABORTED);
      }
    }
  }

  /** Containers that the scheduler wants back for good. */
  void letGo(List<String> wanted) {
    synchronized (lock) {
      LOG.info("To be let go: {}", wanted);
      wanted.forEach(gang::letGo);
    }
  }

  /** A container that the scheduler wants elsewhere: a warm one is asked for there. */
  void move(String container, ResourceRequest there) {
    synchronized (lock) {
      Slot moving = gang.slotOf(container);
      ContainerRequest earlier = moving == null ? null : asks.moved(moving.moveId);
      if (earlier != null) {
        resourceManager.removeContainerRequest(earlier);
      }
      Slot slot = gang.moves().begin(container, there.getAllocationRequestId());
      LOG.info("{} shall move to {}: {}", container, there.getResourceName(), slot);
      if (slot != null) {
        resourceManager.addContainerRequest(asks.move(there));
      }
    }
  }

  /** Another number of workers is wanted; the added ones on a host. */
  void resize(ResourceRequest wanted) {
    synchronized (lock) {
      long id = wanted.getAllocationRequestId();
      int workers = wanted.getNumContainers();
      String refusal = gang.resizing().begin(id, workers, wanted.getResourceName());
      LOG.info(
          "Shall have {} workers: {}", workers, refusal.isEmpty() ? "agreed" : "no, " + refusal);
      if (refusal.isEmpty()) {
        new Timer("gandiva-resize", true).schedule(endResize(id), RESIZE_MS);
      }
    }
  }

  private TimerTask endResize(long id) {
    return new TimerTask() {
      @Override
      public void run() {
        synchronized (lock) {
          gang.resizing().timeUp(id);
        }
      }
    };
  }

  // What the gang needs.

  @Override
  public void ask(Slot slot) {
    resourceManager.addContainerRequest(asks.of(slot));
  }

  @Override
  public void withdraw(Slot slot) {
    resourceManager.removeContainerRequest(asks.take(slot));
  }

  @Override
  public void launch(Slot slot, Place place, int generation, String from) {
    LOG.info("{} of generation {} in {}", slot, generation, place);
    Container container = containers.get(place.containerId());
    nodes.startContainerAsync(container, launches.context(slot, generation, from));
  }

  @Override
  public void release(String containerId) {
    resourceManager.releaseAssignedContainer(ContainerId.fromString(containerId));
  }

  @Override
  public void save() {
    try {
      state.write(gang);
    } catch (IOException e) {
      LOG.error("The next master will not know what this one did", e);
    }
  }

  @Override
  public void finish(Ending ending) {
    LOG.info("The job has ended: {}", ending.diagnostics());
    ended.complete(ending);
  }
}
