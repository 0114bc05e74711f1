package org.gandiva.yarn.job.am;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceInformation;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.client.api.AMRMClient.ContainerRequest;
import org.gandiva.yarn.job.JobKey;
import org.gandiva.yarn.job.JobSpec;
import org.gandiva.yarn.job.TaskType;

/**
 * Requests for containers. All of a gang have one priority; the allocation request id tells types
 * apart, and stays the same when the gang is asked for again: so the scheduler knows it.
 */
final class Asks {
  static final int PRIORITY = 1;

  private final List<TaskType> types;
  private final String label;
  private final Map<Slot, ContainerRequest> waiting = new HashMap<>();
  private final Map<Long, ContainerRequest> moving = new HashMap<>();

  Asks(JobSpec spec) {
    this.types = spec.types();
    this.label = spec.text(JobKey.NODE_LABEL);
  }

  ContainerRequest of(Slot slot) {
    boolean isAdded = slot.askId != 0;
    ContainerRequest request =
        ContainerRequest.newBuilder()
            .capability(capability(slot.type()))
            .priority(Priority.newInstance(PRIORITY))
            .allocationRequestId(isAdded ? slot.askId : types.indexOf(slot.type()))
            .nodes(slot.host.isEmpty() ? null : new String[] {slot.host})
            .relaxLocality(slot.host.isEmpty())
            .nodeLabelsExpression(label.isEmpty() || isAdded ? null : label)
            .build();
    waiting.put(slot, request);
    return request;
  }

  ContainerRequest take(Slot slot) {
    return waiting.remove(slot);
  }

  /** Exactly what the scheduler asked to be asked. */
  ContainerRequest move(ResourceRequest there) {
    ContainerRequest request =
        ContainerRequest.newBuilder()
            .capability(there.getCapability())
            .priority(there.getPriority())
            .allocationRequestId(there.getAllocationRequestId())
            .nodes(new String[] {there.getResourceName()})
            .relaxLocality(false)
            .nodeLabelsExpression(null)
            .build();
    moving.put(there.getAllocationRequestId(), request);
    return request;
  }

  /** Returns the request of a move, which is served; null where it is none of this master's. */
  ContainerRequest moved(long moveId) {
    return moving.remove(moveId);
  }

  static Resource capability(TaskType type) {
    Resource resource = Resource.newInstance(type.memoryMib(), type.vcores());
    if (type.gpus() > 0) {
      resource.setResourceValue(ResourceInformation.GPU_URI, type.gpus());
    }
    return resource;
  }
}
