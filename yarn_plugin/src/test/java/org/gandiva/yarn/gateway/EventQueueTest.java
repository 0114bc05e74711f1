package org.gandiva.yarn.gateway;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

class EventQueueTest {
  private static final int MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

  private static ObjectNode wideAsk() {
    ObjectNode event = Json.object().put("kind", "asks");
    ArrayNode asks = event.putArray("asks");
    for (int i = 0; i < 2_000; i++) {
      asks.addObject()
          .put("resource_name", "gpu-server-with-a-long-name-in-a-large-data-centre-" + i)
          .put("allocation_request_id", -1L)
          .put("memory_mib", 65_536L)
          .put("label", "a100")
          .put("execution_type", "GUARANTEED");
    }
    return event;
  }

  /** DESIGN §4: texts below 16 MiB, however wide the tables of the masters are. */
  @Test
  void aBatchStaysBelowAMessageAndNothingIsLost() throws InterruptedException {
    EventQueue queue = new EventQueue(1_000);
    queue.take(1, 0, Collections::emptyList);
    for (int i = 0; i < 60; i++) {
      queue.offer(wideAsk());
    }
    long next = 0;
    int batches = 0;
    while (queue.hasMore()) {
      List<ObjectNode> taken = queue.take(10_000, 0, Collections::emptyList);
      assertThat(taken).isNotEmpty();
      assertThat(taken.stream().mapToInt(event -> Json.write(event).length()).sum())
          .isLessThan(MESSAGE_BYTES_MAX);
      for (ObjectNode event : taken) {
        assertThat(event.get("seq").asLong()).isEqualTo(next++);
      }
      batches++;
    }
    assertThat(next).isEqualTo(60);
    assertThat(batches).isBetween(2, 10);
  }
}
