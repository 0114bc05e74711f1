package org.gandiva.yarn;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import org.apache.hadoop.yarn.api.records.NodeId;
import org.junit.jupiter.api.Test;

/** The greatest node is known without a look at all of them, whatever came, changed and went. */
class PhysicalGpusTest {
  private final PhysicalGpus gpus = new PhysicalGpus();

  @Test
  void withoutNodesThereIsNoBound() {
    assertEquals(Long.MAX_VALUE, gpus.greatest());
    gpus.remove(node(1));
    assertEquals(Long.MAX_VALUE, gpus.greatest());
  }

  @Test
  void theGreatestLeavesOrShrinks() {
    gpus.put(node(1), 4);
    gpus.put(node(2), 8);
    gpus.put(node(3), 8);
    assertEquals(8, gpus.greatest());
    gpus.remove(node(2));
    assertEquals(8, gpus.greatest());
    gpus.put(node(3), 2);
    assertEquals(4, gpus.greatest());
    assertEquals(2, gpus.get(node(3)));
    gpus.remove(node(1));
    gpus.remove(node(3));
    assertEquals(Long.MAX_VALUE, gpus.greatest());
    assertNull(gpus.get(node(1)));
  }

  private static NodeId node(int number) {
    return NodeId.newInstance("n" + number, 1);
  }
}
