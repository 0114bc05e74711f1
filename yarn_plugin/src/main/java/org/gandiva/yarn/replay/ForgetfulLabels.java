package org.gandiva.yarn.replay;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.NodeLabel;
import org.apache.hadoop.yarn.nodelabels.CommonNodeLabelsManager;
import org.apache.hadoop.yarn.nodelabels.NodeLabelsStore;

/** Keeps no node label beyond the replay, for the reasons of {@link ForgetfulAttributes}. */
public final class ForgetfulLabels implements NodeLabelsStore {
  @Override
  public void init(Configuration conf, CommonNodeLabelsManager manager) {
    // Nothing to open.
  }

  @Override
  public void updateNodeToLabelsMappings(Map<NodeId, Set<String>> labels) {
    // The manager knows them.
  }

  @Override
  public void storeNewClusterNodeLabels(List<NodeLabel> labels) {
    // The manager knows them.
  }

  @Override
  public void removeClusterNodeLabels(Collection<String> labels) {
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
