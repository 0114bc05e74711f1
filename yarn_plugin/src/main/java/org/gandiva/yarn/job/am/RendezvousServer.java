package org.gandiva.yarn.job.am;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the tasks of a job ask their master, over HTTP on the node's own address. Whoever does not
 * know the job's secret gets nothing but 401.
 *
 * <ul>
 *   <li>{@code POST /register {rank, host, port, container_id, generation}}
 *   <li>{@code GET /rendezvous?generation=g}
 *   <li>{@code POST /standing {container_id, can_resize, reason, generation, stage, failed}}: see
 *       {@link Resizing}
 *   <li>{@code POST /moved {container_id}}: its state lives on where it moved to
 * </ul>
 */
final class RendezvousServer implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(RendezvousServer.class);
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int BYTES_MAX = 64 * 1024;
  private static final int THREADS = 32;

  /** The JDK's own key: whoever is slower with a request, in seconds, is cut off. */
  private static final String REQUEST_S_KEY = "sun.net.httpserver.maxReqTime";

  private static final String REQUEST_S = "10";
  private static final String GENERATION = "generation=";

  private final HttpServer server;
  private final ExecutorService threads = Executors.newFixedThreadPool(THREADS);
  private final byte[] expected;
  private final Gang gang;
  private final Rendezvous rendezvous;
  private final Object lock;

  /**
   * Listens at once, on a port that was free.
   *
   * @param lock under which the gang may be looked at
   */
  RendezvousServer(String host, String token, Gang gang, Object lock) throws IOException {
    this.expected = ("Bearer " + token).getBytes(StandardCharsets.UTF_8);
    this.gang = gang;
    this.rendezvous = new Rendezvous(gang);
    this.lock = lock;
    // Both are read when the first server of a process is made; without the second an answer waits
    // 40 ms for the other side's acknowledgement.
    System.setProperty(REQUEST_S_KEY, REQUEST_S);
    System.setProperty("sun.net.httpserver.nodelay", "true");
    server = HttpServer.create(new InetSocketAddress(host, 0), 0);
    server.setExecutor(threads);
    server.createContext("/", this::handle);
    server.start();
  }

  String url() {
    InetSocketAddress address = server.getAddress();
    String host = address.getAddress().getHostAddress();
    boolean isVersion6 = host.contains(":");
    return "http://" + (isVersion6 ? "[" + host + "]" : host) + ":" + address.getPort();
  }

  @Override
  public void close() {
    server.stop(0);
    threads.shutdownNow();
  }

  private void handle(HttpExchange exchange) throws IOException {
    try {
      Reply reply = isKnown(exchange) ? answer(exchange) : Reply.of(401, "who are you?");
      byte[] body = JSON.writeValueAsBytes(reply.body);
      exchange.getResponseHeaders().set("Content-Type", "application/json");
      exchange.sendResponseHeaders(reply.status, body.length);
      try (OutputStream out = exchange.getResponseBody()) {
        out.write(body);
      }
    } catch (RuntimeException e) {
      LOG.error("A request could not be answered", e);
      exchange.sendResponseHeaders(500, -1);
    } finally {
      exchange.close();
    }
  }

  private boolean isKnown(HttpExchange exchange) {
    String given = exchange.getRequestHeaders().getFirst("Authorization");
    return given != null && MessageDigest.isEqual(expected, given.getBytes(StandardCharsets.UTF_8));
  }

  private Reply answer(HttpExchange exchange) throws IOException {
    String called = exchange.getRequestMethod() + " " + exchange.getRequestURI().getPath();
    switch (called) {
      case "POST /register":
        return register(body(exchange));
      case "POST /standing":
        return standing(body(exchange));
      case "POST /moved":
        return moved(body(exchange));
      case "GET /rendezvous":
        return rendezvous(exchange.getRequestURI().getQuery());
      default:
        return Reply.of(404, "nothing is here");
    }
  }

  private Reply register(JsonNode said) {
    if (said == null) {
      return Reply.of(400, "no JSON object");
    }
    synchronized (lock) {
      String refusal =
          rendezvous.register(
              said.path("container_id").asText(),
              said.path("host").asText(),
              said.path("port").asInt(),
              said.path("generation").asInt());
      return refusal == null ? Reply.of(200, "") : Reply.of(409, refusal);
    }
  }

  private Reply standing(JsonNode said) {
    if (said == null) {
      return Reply.of(400, "no JSON object");
    }
    synchronized (lock) {
      return new Reply(200, gang.resizing().heard(said));
    }
  }

  private Reply moved(JsonNode said) {
    if (said == null) {
      return Reply.of(400, "no JSON object");
    }
    synchronized (lock) {
      gang.movedAway(said.path("container_id").asText());
      return Reply.of(200, "");
    }
  }

  private Reply rendezvous(String query) {
    if (query == null || !query.startsWith(GENERATION)) {
      return Reply.of(400, "which generation?");
    }
    try {
      int generation = Integer.parseInt(query.substring(GENERATION.length()));
      synchronized (lock) {
        ObjectNode answer = rendezvous.answer(generation);
        return answer == null ? Reply.of(410, "that generation is over") : new Reply(200, answer);
      }
    } catch (NumberFormatException e) {
      return Reply.of(400, "which generation?");
    }
  }

  private static JsonNode body(HttpExchange exchange) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    byte[] buffer = new byte[4096];
    try (InputStream in = exchange.getRequestBody()) {
      for (int read = in.read(buffer); read >= 0; read = in.read(buffer)) {
        bytes.write(buffer, 0, read);
        if (bytes.size() > BYTES_MAX) {
          return null;
        }
      }
    }
    try {
      JsonNode node = JSON.readTree(bytes.toByteArray());
      return node != null && node.isObject() ? node : null;
    } catch (IOException e) {
      return null; // Whatever it was, it was no JSON.
    }
  }

  private static final class Reply {
    private final int status;
    private final JsonNode body;

    private Reply(int status, JsonNode body) {
      this.status = status;
      this.body = body;
    }

    private static Reply of(int status, String detail) {
      ObjectNode body = JSON.createObjectNode();
      return new Reply(status, detail.isEmpty() ? body : body.put("detail", detail));
    }
  }
}
