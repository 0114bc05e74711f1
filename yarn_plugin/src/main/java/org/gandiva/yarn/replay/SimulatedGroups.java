package org.gandiva.yarn.replay;

import java.util.Collections;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.security.GroupMappingServiceProvider;

/** Every user of a replay is alone in a group of the same name: no look-up on the host. */
public final class SimulatedGroups implements GroupMappingServiceProvider {
  @Override
  public List<String> getGroups(String user) {
    return Collections.singletonList(user);
  }

  @Override
  public Set<String> getGroupsSet(String user) {
    return Collections.singleton(user);
  }

  @Override
  public void cacheGroupsRefresh() {
    // Nothing is cached.
  }

  @Override
  public void cacheGroupsAdd(List<String> groups) {
    // Nothing is cached.
  }
}
