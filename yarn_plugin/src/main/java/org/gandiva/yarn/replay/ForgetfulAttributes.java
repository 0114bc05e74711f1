package org.gandiva.yarn.replay;

import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.nodelabels.NodeAttributeStore;
import org.apache.hadoop.yarn.nodelabels.NodeAttributesManager;
import org.apache.hadoop.yarn.server.api.protocolrecords.NodeToAttributes;

/**
 * Keeps no node attribute beyond the replay. Hadoop's own store writes to one folder a user: two
 * replays at once would break each other, and a site's store may lie on a file system far away.
 */
public final class ForgetfulAttributes implements NodeAttributeStore {
  @Override
  public void init(Configuration conf, NodeAttributesManager manager) {
    // Nothing to open.
  }

  @Override
  public void replaceNodeAttributes(List<NodeToAttributes> attributes) {
    // The manager knows them.
  }

  @Override
  public void addNodeAttributes(List<NodeToAttributes> attributes) {
    // The manager knows them.
  }

  @Override
  public void removeNodeAttributes(List<NodeToAttributes> attributes) {
    // The manager knows them.
  }

  @Override
  public void recover() {
    // A replay begins with none.
  }

  @Override
  public void close() {
    // Nothing is open.
  }
}
