package org.gandiva.yarn.job.am;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.Socket;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.gandiva.yarn.job.JobSpec;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Where tasks meet: who may, and when they are told of each other (B05). */
class RendezvousServerTest {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int WORKERS = 50;

  private final JobSpec spec = GangTest.spec("gandiva.job.worker.instances", "" + WORKERS);
  private final Gang gang = new Gang(spec, new GangTest.Script());
  private RendezvousServer server;
  private int status;

  @BeforeEach
  void start() throws IOException {
    gang.start();
    for (int at = 0; at < WORKERS; at++) {
      gang.allocated(spec.types().get(0), new Place("c" + at, "h"));
    }
    server = new RendezvousServer("127.0.0.1", "secret", gang, new Object());
  }

  @AfterEach
  void stop() {
    server.close();
  }

  private JsonNode call(String method, String path, String body, String token) throws IOException {
    HttpURLConnection call = (HttpURLConnection) new URL(server.url() + path).openConnection();
    call.setRequestMethod(method);
    if (token != null) {
      call.setRequestProperty("Authorization", "Bearer " + token);
    }
    if (body != null) {
      call.setDoOutput(true);
      call.getOutputStream().write(body.getBytes(StandardCharsets.UTF_8));
    }
    status = call.getResponseCode();
    try (InputStream in = status < 400 ? call.getInputStream() : call.getErrorStream()) {
      return JSON.readTree(in);
    }
  }

  private int register(int worker, int port, int generation) throws IOException {
    String body =
        String.format(
            "{\"rank\":%d,\"host\":\"10.0.0.1\",\"port\":%d,\"container_id\":\"c%d\","
                + "\"generation\":%d}",
            worker, port, worker, generation);
    call("POST", "/register", body, "secret");
    return status;
  }

  @Test
  void fiftyMeetOnceAllAreThere() throws IOException {
    for (int at = 0; at < WORKERS; at++) {
      assertThat(call("GET", "/rendezvous?generation=1", null, "secret").path("ready").asBoolean())
          .isFalse();
      assertThat(register(at, 20_000 + at, 1)).isEqualTo(200);
    }
    JsonNode answer = call("GET", "/rendezvous?generation=1", null, "secret");
    assertThat(answer.path("ready").asBoolean()).isTrue();
    assertThat(answer.path("world_size").asInt()).isEqualTo(WORKERS);
    assertThat(answer.path("master_addr").asText()).isEqualTo("10.0.0.1");
    assertThat(answer.path("master_port").asInt()).isEqualTo(20_000);
    assertThat(answer.path("workers").get(49).asText()).isEqualTo("10.0.0.1:20049");
    assertThat(answer.path("cluster").path("worker")).hasSize(WORKERS);
  }

  /** A command that ends at once must not make the gang look smaller to whoever asks next. */
  @Test
  void whoAsksLateIsToldTheSameAsTheFirst() throws IOException {
    for (int at = 0; at < WORKERS; at++) {
      register(at, 20_000 + at, 1);
    }
    JsonNode first = call("GET", "/rendezvous?generation=1", null, "secret");
    gang.completed("c0", 0);
    assertThat(call("GET", "/rendezvous?generation=1", null, "secret")).isEqualTo(first);
    gang.completed("c1", -100);
    call("GET", "/rendezvous?generation=1", null, "secret");
    assertThat(status).as("another generation").isEqualTo(410);
    assertThat(call("GET", "/rendezvous?generation=2", null, "secret").path("ready").asBoolean())
        .isFalse();
  }

  @Test
  void anAddressIsOneTasks() throws IOException {
    assertThat(register(0, 20_000, 1)).isEqualTo(200);
    assertThat(register(0, 20_000, 1)).as("the same again").isEqualTo(200);
    assertThat(register(1, 20_000, 1)).isEqualTo(409);
    assertThat(register(1, 70_000, 1)).isEqualTo(409);
  }

  @Test
  void strangersAndThoseOfAnEarlierGenerationAreRefused() throws IOException {
    assertThat(register(WORKERS, 20_000, 1)).as("no container of this job").isEqualTo(409);
    gang.completed("c3", -100);
    assertThat(register(4, 20_000, 1)).isEqualTo(409);
    call("GET", "/rendezvous?generation=1", null, "secret");
    assertThat(status).isEqualTo(410);
  }

  @Test
  void whoDoesNotKnowTheSecretLearnsNothing() throws IOException {
    String[][] all = {
      {"GET", "/rendezvous?generation=1"},
      {"POST", "/register"},
      {"POST", "/moved"},
      {"GET", "/"},
      {"DELETE", "/register"}
    };
    for (String[] each : all) {
      for (String token : new String[] {null, "", "guess", "secretsecret"}) {
        call(each[0], each[1], each[0].equals("POST") ? "{}" : null, token);
        assertThat(status).isEqualTo(401);
      }
    }
    assertThat(gang.generation()).isEqualTo(1);
  }

  @Test
  void nonsenseIsRefusedAndServingGoesOn() throws IOException {
    String[] bodies = {"", "nonsense", "[]", "{", "\"text\""};
    for (String body : bodies) {
      call("POST", "/register", body, "secret");
      assertThat(status).isEqualTo(400);
    }
    StringBuilder longText = new StringBuilder("{\"host\":\"");
    for (int at = 0; at < 100_000; at++) {
      longText.append('x');
    }
    call("POST", "/register", longText.append("\"}").toString(), "secret");
    assertThat(status).isEqualTo(400);
    call("GET", "/rendezvous?generation=x", null, "secret");
    assertThat(status).isEqualTo(400);
    call("GET", "/other", null, "secret");
    assertThat(status).isEqualTo(404);
    assertThat(register(0, 20_000, 1)).isEqualTo(200);
  }

  @Test
  void whoIsSlowKeepsNobodyWaiting() throws Exception {
    List<Socket> slow = new ArrayList<>();
    URL url = new URL(server.url());
    try {
      for (int at = 0; at < 20; at++) {
        Socket each = new Socket(url.getHost(), url.getPort());
        each.getOutputStream().write("POST /reg".getBytes(StandardCharsets.US_ASCII));
        slow.add(each);
      }
      assertThat(register(0, 20_000, 1)).isEqualTo(200);
    } finally {
      for (Socket each : slow) {
        each.close();
      }
    }
  }

  @Test
  void thoseThatMoveMeetAnewAndTheOthersAreStillKnown() throws IOException {
    for (int at = 0; at < WORKERS; at++) {
      register(at, 20_000 + at, 1);
    }
    gang.moves().begin("c0", 1_000_001);
    gang.moves().allocated(1_000_001, new Place("m0", "h2"));
    assertThat(call("GET", "/rendezvous?generation=2", null, "secret").path("ready").asBoolean())
        .isFalse();
    String body =
        "{\"rank\":0,\"host\":\"10.0.0.2\",\"port\":9,\"container_id\":\"m0\",\"generation\":2}";
    call("POST", "/register", body, "secret");
    JsonNode answer = call("GET", "/rendezvous?generation=2", null, "secret");
    assertThat(answer.path("master_addr").asText()).isEqualTo("10.0.0.2");
    assertThat(answer.path("workers").get(1).asText()).isEqualTo("10.0.0.1:20001");
    assertThat(call("GET", "/rendezvous?generation=1", null, "secret").path("master_addr").asText())
        .as("it still runs where it was")
        .isEqualTo("10.0.0.1");
  }
}
