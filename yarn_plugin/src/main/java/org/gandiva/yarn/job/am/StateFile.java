package org.gandiva.yarn.job.am;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;

/** What one master leaves for the next: whose each container is. Written whole or not at all. */
final class StateFile {
  private static final ObjectMapper JSON = new ObjectMapper();

  private final FileSystem files;
  private final Path path;

  StateFile(FileSystem files, Path path) {
    this.files = files;
    this.path = path;
  }

  void write(Gang gang) throws IOException {
    Path part = path.suffix(".part");
    try (OutputStream out = files.create(part, true)) {
      JSON.writeValue(out, described(gang));
    }
    FileContext.getFileContext(path.toUri(), files.getConf())
        .rename(part, path, Options.Rename.OVERWRITE);
  }

  /** Returns what was written last; null for nothing. */
  JsonNode read() throws IOException {
    try (InputStream in = files.open(path)) {
      return JSON.readTree(in);
    } catch (FileNotFoundException e) {
      return null;
    }
  }

  static ObjectNode described(Gang gang) {
    ObjectNode state = JSON.createObjectNode();
    state.put("generation", gang.generation());
    state.put("met", gang.met());
    state.put("restarts", gang.restarts());
    state.put("failures", gang.failures());
    state.put("latest", gang.latest());
    state.put("moving", gang.moves().generation());
    if (gang.ending() != null) {
      state.put("exit_code", gang.ending().exitCode());
      state.put("detail", gang.ending().detail());
    }
    ArrayNode slots = state.putArray("slots");
    for (Slot slot : gang.slots()) {
      ObjectNode entry = slots.addObject();
      entry.put("is_done", slot.isDone);
      put(entry, "", slot.place);
      put(entry, "next_", slot.successor);
      entry.put("move_id", slot.moveId);
      entry.put("has_moved", slot.hasMoved);
    }
    return state;
  }

  private static void put(ObjectNode entry, String prefix, Place place) {
    if (place != null) {
      entry.put(prefix + "container_id", place.containerId());
      entry.put(prefix + "host", place.host());
    }
  }

  /** Gives a gang that has not started what was written of an earlier one. */
  static void restore(Gang gang, JsonNode state) {
    gang.restore(
        state.path("generation").asInt(1),
        state.path("met").asInt(),
        state.path("restarts").asInt(),
        state.path("failures").asInt());
    boolean isMoving = false;
    JsonNode slots = state.path("slots");
    gang.hadWorkers(slots.size());
    for (Slot slot : gang.slots()) {
      JsonNode entry = slots.path(slot.rank());
      slot.isDone = entry.path("is_done").asBoolean();
      slot.place = place(entry, "");
      slot.successor = place(entry, "next_");
      // What was only asked for was asked for by the earlier master.
      slot.moveId = slot.successor == null ? 0 : entry.path("move_id").asLong();
      slot.hasMoved = entry.path("has_moved").asBoolean();
      isMoving |= slot.successor != null || slot.hasMoved;
    }
    gang.restoreLatest(state.path("latest").asInt());
    gang.moves().restore(isMoving ? state.path("moving").asInt() : 0);
    if (state.has("exit_code")) {
      gang.restoreEnding(
          new Ending(state.path("exit_code").asInt(), state.path("detail").asText()));
    }
  }

  private static Place place(JsonNode entry, String prefix) {
    String container = entry.path(prefix + "container_id").asText("");
    return container.isEmpty()
        ? null
        : new Place(container, entry.path(prefix + "host").asText(""));
  }
}
