package org.gandiva.yarn;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceInformation;
import org.apache.hadoop.yarn.util.resource.ResourceUtils;

/** Memory, vcores and GPUs of a YARN resource, and how they are written on the wire. */
public final class ResourceVector {
  private ResourceVector() {}

  /** Returns the GPUs of a resource; 0 where the type is not declared. */
  public static long gpus(Resource resource) {
    // Not getResourceValue: it throws where the type is not declared, on every heartbeat.
    Integer index = ResourceUtils.getResourceTypeIndex().get(ResourceInformation.GPU_URI);
    ResourceInformation[] amounts = resource.getResources();
    return index == null || index >= amounts.length ? 0 : amounts[index].getValue();
  }

  /** Returns a resource; GPUs are set only where there are some. */
  public static Resource of(long memoryMib, int vcores, long gpus) {
    Resource resource = Resource.newInstance(memoryMib, vcores);
    if (gpus > 0) {
      resource.setResourceValue(ResourceInformation.GPU_URI, gpus);
    }
    return resource;
  }

  /** Returns a copy with another number of GPUs. */
  public static Resource withGpus(Resource resource, long gpus) {
    Resource copy = Resource.newInstance(resource);
    copy.setResourceValue(ResourceInformation.GPU_URI, gpus);
    return copy;
  }

  /** Writes memory_mib, vcores and gpus. */
  public static ObjectNode write(ObjectNode node, Resource resource) {
    node.put("memory_mib", resource.getMemorySize());
    node.put("vcores", resource.getVirtualCores());
    node.put("gpus", gpus(resource));
    return node;
  }
}
