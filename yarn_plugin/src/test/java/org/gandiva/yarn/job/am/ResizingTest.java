package org.gandiva.yarn.job.am;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.gandiva.yarn.job.JobSpec;
import org.junit.jupiter.api.Test;

/** Another number of workers at a step boundary, or as it was: SPEC G-80 to G-84. */
class ResizingTest {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final long ID = 1_000_000_000_000_001L;
  private static final int LOST = -100;

  private final GangTest.Script script = new GangTest.Script();

  /** A gang in c0, c1 …, whose workers have said that they can be resized. */
  private Gang running(int workers, String... keys) {
    JobSpec spec = GangTest.spec(keys);
    Gang gang = new Gang(spec, script);
    gang.start();
    for (int at = 0; at < workers; at++) {
      gang.allocated(spec.types().get(0), new Place("c" + at, "h"));
      say(gang, "c" + at, 0, 0);
    }
    gang.met(1);
    script.take();
    return gang;
  }

  private static ObjectNode say(Gang gang, String container, int generation, int stage) {
    return gang.resizing()
        .heard(
            JSON.createObjectNode()
                .put("container_id", container)
                .put("can_resize", true)
                .put("generation", generation)
                .put("stage", stage));
  }

  private static int passed(ObjectNode answer) {
    return answer.path("resize").path("passed").asInt(-1);
  }

  private static void allSay(Gang gang, int generation, int stage, String... containers) {
    for (String container : containers) {
      say(gang, container, generation, stage);
    }
  }

  /** From one to two, c7 being the new one's. */
  private Gang grown() {
    Gang gang = running(1);
    assertThat(gang.resizing().begin(ID, 2, "n1")).isEmpty();
    gang.resizing().allocated(ID, new Place("c7", "n1"));
    for (int stage = 0; stage <= Resizing.RESTORED; stage++) {
      allSay(gang, 2, stage, "c0", "c7");
    }
    script.take();
    return gang;
  }

  @Test
  void aGangGrowsOnceEveryStageWasPassedByAll() {
    Gang gang = running(1);
    assertThat(gang.resizing().begin(ID, 2, "n1")).isEmpty();
    assertThat(script.take()).containsExactly("ask worker 1");
    assertThat(say(gang, "c0", 0, 0)).as("nobody is there yet").isEmpty();
    gang.resizing().allocated(ID, new Place("c7", "n1"));
    assertThat(script.take()).containsExactly("launch worker 1 g2 in c7");
    assertThat(say(gang, "c0", 0, 0)).as("it has no device yet").isEmpty();
    say(gang, "c7", 2, 0);
    ObjectNode told = say(gang, "c0", 0, 0);
    assertThat(told.path("resize").path("generation").asInt()).isEqualTo(2);
    assertThat(told.path("resize").path("world_size").asInt()).isEqualTo(2);
    assertThat(told.path("resize").path("is_surplus").asBoolean()).isFalse();
    for (int stage = Resizing.WARM; stage <= Resizing.RESTORED; stage++) {
      assertThat(passed(say(gang, "c7", 2, stage))).isEqualTo(stage - 1);
      assertThat(gang.generation()).isEqualTo(1);
      assertThat(passed(say(gang, "c0", 2, stage))).isEqualTo(stage);
    }
    assertThat(gang.generation()).isEqualTo(2);
    assertThat(gang.met()).isEqualTo(2);
    assertThat(gang.containers()).containsExactly("c0", "c7");
    assertThat(passed(say(gang, "c7", 2, Resizing.RESTORED))).isEqualTo(Resizing.RESTORED);
    assertThat(script.take()).isEmpty();
  }

  @Test
  void theSurplusLeavesAndItsEndIsNoEndOfTheJob() {
    Gang gang = grown();
    say(gang, "c7", 0, 0);
    assertThat(gang.resizing().begin(ID + 1, 1, "n1")).isEmpty();
    assertThat(say(gang, "c7", 0, 0).path("resize").path("is_surplus").asBoolean()).isTrue();
    for (int stage = 0; stage <= Resizing.RESTORED; stage++) {
      allSay(gang, 3, stage, "c0", "c7");
    }
    assertThat(script.take()).containsExactly("release c7");
    gang.completed("c7", 0);
    assertThat(script.take()).isEmpty();
    assertThat(script.ending).isNull();
    gang.completed("c0", 0);
    assertThat(script.ending.isGood()).isTrue();
  }

  @Test
  void whatFailsAtAnyStageLeavesTheJobAsItWas() {
    for (int stage = 0; stage < Resizing.RESTORED; stage++) {
      Gang gang = running(1);
      gang.resizing().begin(ID, 2, "n1");
      gang.resizing().allocated(ID, new Place("c7", "n1"));
      for (int at = 0; at <= stage; at++) {
        allSay(gang, 2, at, "c0", "c7");
      }
      script.take();
      gang.resizing()
          .heard(
              JSON.createObjectNode()
                  .put("container_id", "c7")
                  .put("generation", 2)
                  .put("failed", "no room"));
      assertThat(script.take()).containsExactly("release c7");
      assertThat(say(gang, "c0", 2, stage).path("resize").path("off").asText())
          .isEqualTo("c7: no room");
      gang.completed("c7", LOST);
      assertThat(script.take()).as("nothing starts again").isEmpty();
      assertThat(gang.generation()).isEqualTo(1);
      assertThat(gang.containers()).containsExactly("c0");
      assertThat(gang.resizing().begin(ID + 1, 2, "n1")).as("another may follow").isEmpty();
    }
  }

  @Test
  void anAskThatIsNotServedInTimeIsTakenBack() {
    Gang gang = running(1);
    gang.resizing().begin(ID, 2, "n1");
    gang.resizing().timeUp(ID - 1);
    assertThat(gang.resizing().isUnderWay()).isTrue();
    gang.resizing().timeUp(ID);
    assertThat(gang.resizing().isUnderWay()).isFalse();
    script.take();
    gang.resizing().allocated(ID, new Place("c7", "n1"));
    assertThat(script.take()).as("it came too late").containsExactly("release c7");
  }

  @Test
  void aWorkerThatIsLostMeanwhileCallsItOffAndStartsTheGangAgainAtItsOwnSize() {
    Gang gang = grown();
    allSay(gang, 0, 0, "c0", "c7");
    gang.resizing().begin(ID + 1, 4, "n1");
    script.take();
    gang.completed("c7", LOST);
    assertThat(gang.resizing().isUnderWay()).isFalse();
    assertThat(script.take()).containsExactly("release c0", "ask worker 0");
    assertThat(gang.slots()).hasSize(1);
  }

  @Test
  void whatCannotBeResizedIsRefusedWithTheReason() {
    Gang gang = running(2, "gandiva.job.worker.instances", "2");
    assertThat(gang.resizing().begin(ID, 1, "n1")).contains("asked for 2");
    assertThat(gang.resizing().begin(ID, 2, "n1")).contains("it has 2");
    gang.resizing()
        .heard(
            JSON.createObjectNode()
                .put("container_id", "c1")
                .put("can_resize", false)
                .put("reason", "sharded"));
    assertThat(gang.resizing().begin(ID, 4, "n1")).isEqualTo("worker 1: sharded");
    Gang never = running(1, "gandiva.job.resize", "never");
    assertThat(never.resizing().begin(ID, 2, "n1")).contains("owner");
    assertThat(script.take()).isEmpty();
  }

  @Test
  void theNextMasterKnowsHowManyThereAre() {
    ObjectNode left = StateFile.described(grown());
    Gang next = new Gang(GangTest.spec(), script);
    StateFile.restore(next, left);
    assertThat(next.containers()).containsExactly("c0", "c7");
    assertThat(next.generation()).isEqualTo(2);
    next.startAgainIfNotMet();
    next.start();
    assertThat(script.take()).isEmpty();
    assertThat(passed(say(next, "c0", 2, Resizing.RESTORED))).isEqualTo(Resizing.RESTORED);
    assertThat(say(next, "c0", 9, 1).path("resize").path("off").asText()).isNotEmpty();
  }
}
