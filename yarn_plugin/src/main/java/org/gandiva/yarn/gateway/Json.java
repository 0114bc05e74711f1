package org.gandiva.yarn.gateway;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reads requests and writes replies of the bridge. Every problem names the field it is about. */
public final class Json {
  private static final Logger LOG = LoggerFactory.getLogger(Json.class);
  private static final int SHOWN_MAX = 80;
  private static final ObjectMapper MAPPER =
      new ObjectMapper()
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .enable(DeserializationFeature.FAIL_ON_READING_DUP_TREE_KEY);

  /** A request that is answered by fields added to a reply. */
  @FunctionalInterface
  public interface Handler {
    /** Fills the reply, or throws what becomes an error reply. */
    void answer(ObjectNode reply) throws Exception;
  }

  private Json() {}

  /** Returns an empty object. */
  public static ObjectNode object() {
    return JsonNodeFactory.instance.objectNode();
  }

  /** Returns an empty list. */
  public static ArrayNode array() {
    return JsonNodeFactory.instance.arrayNode();
  }

  /** Parses a request; anything but a JSON object is refused. */
  public static ObjectNode parse(String text) throws ProtocolException {
    JsonNode node;
    try {
      node = MAPPER.readTree(text == null ? "" : text);
    } catch (JsonProcessingException e) {
      throw ProtocolException.badRequest("request is not JSON: " + cut(e.getOriginalMessage()));
    } catch (StackOverflowError e) {
      throw ProtocolException.badRequest("request is nested too deeply");
    }
    if (!(node instanceof ObjectNode)) {
      throw ProtocolException.badRequest("request is not a JSON object");
    }
    return (ObjectNode) node;
  }

  /** Writes one value as a single line. */
  public static String write(JsonNode node) {
    try {
      return MAPPER.writeValueAsString(node);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException("a tree of plain nodes must be writable", e);
    }
  }

  /** Runs a handler and returns its reply; no exception and no stack trace leaves this method. */
  public static String reply(Handler handler) {
    ObjectNode reply = object();
    reply.put("ok", true);
    try {
      handler.answer(reply);
      return write(reply);
    } catch (ProtocolException e) {
      return failure(e.kind(), e.getMessage());
    } catch (Exception e) {
      // No stack trace crosses the bridge; the whole of it is in the log.
      LOG.error("A request of the bridge failed", e);
      return failure("INTERNAL", oneLine(e));
    }
  }

  private static String failure(String kind, String message) {
    ObjectNode reply = object();
    reply.put("ok", false);
    reply.putObject("error").put("kind", kind).put("message", message);
    return write(reply);
  }

  /** Returns what went wrong as one line for people. */
  static String oneLine(Throwable problem) {
    String message = problem.getClass().getSimpleName() + ": " + problem.getMessage();
    return message.replaceAll("\\s*[\\r\\n]+\\s*", " ");
  }

  /** Returns a text field that must be there. */
  public static String text(JsonNode node, String name) throws ProtocolException {
    JsonNode value = node.get(name);
    if (value == null || !value.isTextual()) {
      throw wrong(node, name, "a text");
    }
    return value.asText();
  }

  /** Returns a text field, or the default where it is absent or null. */
  public static String text(JsonNode node, String name, String otherwise) throws ProtocolException {
    return node.hasNonNull(name) ? text(node, name) : otherwise;
  }

  /** Returns a whole number that must be there. */
  public static long whole(JsonNode node, String name) throws ProtocolException {
    JsonNode value = node.get(name);
    if (value == null || !value.isIntegralNumber() || !value.canConvertToLong()) {
      throw wrong(node, name, "a whole number");
    }
    return value.asLong();
  }

  /** Returns a whole number, or the default where it is absent or null. */
  public static long whole(JsonNode node, String name, long otherwise) throws ProtocolException {
    return node.hasNonNull(name) ? whole(node, name) : otherwise;
  }

  /** Returns a whole number of at least zero that fits an int. */
  public static int count(JsonNode node, String name) throws ProtocolException {
    long value = whole(node, name);
    if (value < 0 || value > Integer.MAX_VALUE) {
      throw wrong(node, name, "a number from 0 to " + Integer.MAX_VALUE);
    }
    return (int) value;
  }

  /** Returns a count, or the default where it is absent or null. */
  public static int count(JsonNode node, String name, int otherwise) throws ProtocolException {
    return node.hasNonNull(name) ? count(node, name) : otherwise;
  }

  /** Returns a finite number that must be there. */
  public static double number(JsonNode node, String name) throws ProtocolException {
    JsonNode value = node.get(name);
    if (value == null || !value.isNumber() || Double.isInfinite(value.asDouble())) {
      throw wrong(node, name, "a finite number");
    }
    return value.asDouble();
  }

  /** Returns the objects of a list field; an absent field is an empty list. */
  public static List<ObjectNode> objects(JsonNode node, String name) throws ProtocolException {
    List<ObjectNode> found = new ArrayList<>();
    for (JsonNode item : list(node, name)) {
      if (!(item instanceof ObjectNode)) {
        throw wrong(node, name, "a list of objects");
      }
      found.add((ObjectNode) item);
    }
    return found;
  }

  /** Returns the texts of a list field; an absent field is an empty list. */
  public static List<String> texts(JsonNode node, String name) throws ProtocolException {
    List<String> found = new ArrayList<>();
    for (JsonNode item : list(node, name)) {
      if (!item.isTextual()) {
        throw wrong(node, name, "a list of texts");
      }
      found.add(item.asText());
    }
    return found;
  }

  private static JsonNode list(JsonNode node, String name) throws ProtocolException {
    JsonNode value = node.get(name);
    if (value == null || value.isNull()) {
      return array();
    }
    if (!value.isArray()) {
      throw wrong(node, name, "a list");
    }
    return value;
  }

  private static ProtocolException wrong(JsonNode node, String name, String expected) {
    JsonNode found = node.get(name);
    String shown = found == null ? "nothing" : cut(write(found));
    return ProtocolException.badRequest(
        String.format(Locale.ROOT, "%s: found %s, expected %s", name, shown, expected));
  }

  /** Returns a text of others for a message: in quotes, on one line, cut where it is long. */
  public static String shown(String text) {
    return cut(write(JsonNodeFactory.instance.textNode(cut(text))));
  }

  private static String cut(String text) {
    return text.length() <= SHOWN_MAX ? text : text.substring(0, SHOWN_MAX) + "…";
  }
}
