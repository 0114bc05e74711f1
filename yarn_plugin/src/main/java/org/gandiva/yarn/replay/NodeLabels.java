package org.gandiva.yarn.replay;

import java.io.IOException;
import java.util.Collections;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.NodeLabel;
import org.apache.hadoop.yarn.nodelabels.CommonNodeLabelsManager;
import org.apache.hadoop.yarn.server.resourcemanager.RMContext;

/** Puts simulated nodes into partitions, through the ResourceManager's label manager. */
final class NodeLabels {
  private NodeLabels() {}

  static void assign(RMContext context, NodeId node, String label) throws IOException {
    if (label.equals(CommonNodeLabelsManager.NO_LABEL)) {
      return;
    }
    CommonNodeLabelsManager manager = context.getNodeLabelManager();
    if (!manager.getClusterNodeLabelNames().contains(label)) {
      manager.addToCluserNodeLabels(Collections.singletonList(NodeLabel.newInstance(label)));
    }
    manager.replaceLabelsOnNode(
        Collections.singletonMap(
            NodeId.newInstance(node.getHost(), 0), Collections.singleton(label)));
  }
}
