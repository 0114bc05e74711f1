package org.gandiva.yarn.job.am;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.gandiva.yarn.job.JobSettings;
import org.gandiva.yarn.job.JobSpec;
import org.gandiva.yarn.job.TaskType;
import org.junit.jupiter.api.Test;

/** What ends and losses of containers mean for a job: B03 and B08 of the cases. */
class GangTest {
  private static final int LOST = -100;
  private static final int RELEASED = -105;

  /** Writes down what a gang needs done. */
  static final class Script implements Actions {
    final List<String> done = new ArrayList<>();
    Ending ending;

    @Override
    public void ask(Slot slot) {
      done.add("ask " + slot);
    }

    @Override
    public void withdraw(Slot slot) {
      // Follows every container that comes.
    }

    @Override
    public void launch(Slot slot, Place place, int generation, String from) {
      String moved = from.isEmpty() ? "" : " from " + from;
      done.add("launch " + slot + " g" + generation + " in " + place.containerId() + moved);
    }

    @Override
    public void release(String containerId) {
      done.add("release " + containerId);
    }

    @Override
    public void save() {
      // Its content is the state file's test.
    }

    @Override
    public void finish(Ending found) {
      ending = found;
    }

    List<String> take() {
      List<String> taken = new ArrayList<>(done);
      done.clear();
      return taken;
    }
  }

  private final Script script = new Script();

  static JobSpec spec(String... pairs) {
    Map<String, String> values = new HashMap<>();
    values.put("gandiva.job.worker.command", "true");
    for (int at = 0; at < pairs.length; at += 2) {
      values.put(pairs[at], pairs[at + 1]);
    }
    try {
      return JobSpec.of(new JobSettings(values));
    } catch (org.gandiva.yarn.job.BadInputException e) {
      throw new IllegalArgumentException(e);
    }
  }

  /** A gang whose tasks run in containers c0, c1 … in their order. */
  private Gang running(JobSpec spec) {
    Gang gang = new Gang(spec, script);
    gang.start();
    int at = 0;
    for (TaskType type : spec.types()) {
      for (int index = 0; index < type.instances(); index++) {
        gang.allocated(type, new Place("c" + at, "host" + at));
        at++;
      }
    }
    script.take();
    return gang;
  }

  @Test
  void allAreAskedForAtOnceAndStartAsTheyCome() {
    JobSpec spec = spec("gandiva.job.worker.instances", "2");
    Gang gang = new Gang(spec, script);
    gang.start();
    assertThat(script.take()).containsExactly("ask worker 0", "ask worker 1");
    gang.allocated(spec.types().get(0), new Place("c7", "h"));
    gang.allocated(spec.types().get(0), new Place("c8", "h"));
    gang.allocated(spec.types().get(0), new Place("c9", "h"));
    assertThat(script.take())
        .containsExactly("launch worker 0 g1 in c7", "launch worker 1 g1 in c8", "release c9");
  }

  @Test
  void theJobEndsWellWithItsLastTrackedTask() {
    Gang gang = running(spec("gandiva.job.worker.instances", "2", "gandiva.job.ps.instances", "1"));
    gang.completed("c0", 0);
    assertThat(script.ending).isNull();
    gang.completed("c1", 0);
    assertThat(script.ending.isGood()).isTrue();
  }

  @Test
  void aLostWorkerStartsTheWholeGangAgain() {
    Gang gang = running(spec("gandiva.job.worker.instances", "3"));
    gang.completed("c2", 0);
    gang.completed("c1", LOST);
    assertThat(script.take())
        .containsExactly("release c0", "ask worker 0", "ask worker 1", "ask worker 2");
    assertThat(gang.generation()).isEqualTo(2);
    gang.completed("c0", RELEASED);
    assertThat(script.take()).as("it is nobody's any more").isEmpty();
    assertThat(script.ending).isNull();
  }

  @Test
  void restartsAreBounded() {
    JobSpec spec = spec("gandiva.job.restarts.max", "1");
    Gang gang = running(spec);
    gang.completed("c0", LOST);
    gang.allocated(spec.types().get(0), new Place("d0", "h"));
    gang.completed("d0", 137);
    assertThat(script.ending.exitCode()).isEqualTo(137);
    assertThat(script.ending.diagnostics()).contains("gandiva.job.restarts.max is 1");
  }

  @Test
  void aCommandThatFailsByItselfEndsTheJobUnlessItsOwnerAllowsMore() {
    Gang gang = running(spec());
    gang.completed("c0", 7);
    assertThat(script.ending.exitCode()).isEqualTo(7);

    JobSpec spec = spec("gandiva.job.failures.max", "1");
    Script again = new Script();
    Gang patient = new Gang(spec, again);
    patient.start();
    patient.allocated(spec.types().get(0), new Place("c0", "h"));
    patient.completed("c0", 7);
    assertThat(again.ending).isNull();
    assertThat(patient.generation()).isEqualTo(2);
    patient.allocated(spec.types().get(0), new Place("c1", "h"));
    patient.completed("c1", 7);
    assertThat(again.ending.exitCode()).isEqualTo(7);
  }

  @Test
  void memoryBeyondItsSizeIsItsOwnFailure() {
    Gang gang = running(spec());
    gang.completed("c0", -104);
    assertThat(script.ending.exitCode()).isEqualTo(1);
    assertThat(script.ending.diagnostics()).contains("more memory than it asked for");
  }

  @Test
  void anUntrackedTaskThatFailsEndsTheJobWithItsCode() {
    Gang gang = running(spec("gandiva.job.ps.instances", "1"));
    gang.completed("c1", 9);
    assertThat(script.ending.exitCode()).isEqualTo(9);
    assertThat(script.ending.diagnostics()).contains("ps 0");
  }

  @Test
  void anUntrackedTaskThatIsDoneOrWasShrunkAwayEndsNothing() {
    Gang gang = running(spec("gandiva.job.ps.instances", "2"));
    gang.completed("c1", 0);
    gang.letGo("c2");
    gang.completed("c2", RELEASED);
    assertThat(script.take()).containsExactly("release c2");
    assertThat(script.ending).isNull();
    gang.completed("c0", 0);
    assertThat(script.ending.isGood()).isTrue();
  }

  @Test
  void aMoveEndsInItsNewContainerAndTheOldOnesEndIsNoFailure() {
    Gang gang = running(spec("gandiva.job.worker.instances", "2"));
    assertThat(gang.moves().begin("c0", 1_000_001)).isNotNull();
    gang.moves().allocated(1_000_001, new Place("m0", "h"));
    assertThat(gang.moves().begin("c0", 1_000_002)).as("it moves already").isNull();
    assertThat(script.take()).containsExactly("launch worker 0 g2 in m0 from c0");
    gang.completed("c0", 0);
    assertThat(script.ending).as("whose end that was is to be told").isNull();
    gang.letGo("c0");
    assertThat(gang.slots().get(0).holds("m0")).isTrue();
    assertThat(gang.generation()).isEqualTo(2);
    assertThat(gang.moves().generation()).isEqualTo(0);
    gang.completed("m0", 0);
    gang.completed("c1", 0);
    assertThat(script.ending.isGood()).isTrue();
  }

  @Test
  void aTaskThatEndedWhileItMovedHasEndedOnceTheMoveIsOff() {
    Gang gang = running(spec());
    gang.moves().begin("c0", 1_000_001);
    gang.moves().allocated(1_000_001, new Place("m0", "h"));
    gang.completed("c0", 0);
    gang.letGo("m0");
    assertThat(script.ending.isGood()).isTrue();
  }

  @Test
  void aMoveWhoseDestinationIsLostChangesNothing() {
    Gang gang = running(spec());
    gang.moves().begin("c0", 1_000_001);
    gang.moves().allocated(1_000_001, new Place("m0", "h"));
    script.take();
    gang.completed("m0", LOST);
    assertThat(script.take()).isEmpty();
    assertThat(gang.slots().get(0).holds("c0")).isTrue();
    assertThat(gang.generation()).isEqualTo(1);
    assertThat(gang.moves().begin("c0", 1_000_002)).as("it can move anew").isNotNull();
  }

  @Test
  void theLauncherCanTellThatItsStateLivesOnElsewhere() {
    Gang gang = running(spec());
    gang.moves().begin("c0", 1_000_001);
    gang.moves().allocated(1_000_001, new Place("m0", "h"));
    gang.movedAway("c0");
    gang.completed("c0", 0);
    assertThat(script.ending).isNull();
    assertThat(gang.slots().get(0).holds("m0")).isTrue();
  }

  @Test
  void aContainerForAMoveThatIsOffIsGivenBack() {
    Gang gang = running(spec());
    gang.moves().allocated(1_000_009, new Place("m9", "h"));
    assertThat(script.take()).containsExactly("release m9");
  }

  @Test
  void theNextMasterKnowsWhoseEachContainerIs() {
    JobSpec spec = spec("gandiva.job.worker.instances", "3");
    Gang gang = running(spec);
    gang.completed("c2", 0);
    gang.moves().begin("c1", 1_000_001);
    gang.moves().allocated(1_000_001, new Place("m1", "h1"));
    Gang next = new Gang(spec, script);
    StateFile.restore(next, StateFile.described(gang));
    script.take();
    next.start();
    assertThat(script.take()).as("nothing is missing").isEmpty();
    assertThat(next.containers()).containsExactly("c0", "c1", "m1");
    next.letGo("c1");
    assertThat(next.containers()).containsExactly("c0", "m1");
    next.completed("c0", 0);
    next.completed("m1", 0);
    assertThat(script.ending.isGood()).isTrue();
  }

  @Test
  void theNextMasterEndsAMoveInTheSameGeneration() {
    JobSpec spec = spec("gandiva.job.worker.instances", "2");
    Gang gang = running(spec);
    gang.met(1);
    gang.moves().begin("c1", 1_000_001);
    gang.moves().allocated(1_000_001, new Place("m1", "h1"));
    Gang next = new Gang(spec, script);
    StateFile.restore(next, StateFile.described(gang));
    assertThat(next.moves().generation()).isEqualTo(2);
    next.met(2);
    next.movedAway("c1");
    assertThat(next.generation()).as("what its tasks were started with").isEqualTo(2);
    Gang third = new Gang(spec, script);
    StateFile.restore(third, StateFile.described(next));
    script.take();
    third.startAgainIfNotMet();
    assertThat(script.take()).as("they have met").isEmpty();
  }

  @Test
  void aJobThatHasEndedEndsUnderTheNextMasterToo() {
    JobSpec spec = spec("gandiva.job.worker.instances", "2");
    Gang failing = running(spec);
    failing.completed("c0", 3);
    Gang gang = new Gang(spec, script);
    StateFile.restore(gang, StateFile.described(failing));
    script.take();
    script.ending = null;
    gang.start();
    gang.completed("c1", LOST);
    assertThat(script.take()).as("nothing is run again").isEmpty();
    assertThat(script.ending.exitCode()).isEqualTo(3);
  }

  @Test
  void allDoneIsAnEndWhoeverSeesIt() {
    JobSpec spec = spec();
    Gang gang = running(spec);
    gang.slots().get(0).isDone = true;
    gang.slots().get(0).place = null;
    Gang next = new Gang(spec, script);
    StateFile.restore(next, StateFile.described(gang));
    next.start();
    assertThat(script.ending.isGood()).isTrue();
  }

  @Test
  void aMoveWhoseContainerNeverCameIsNoObstacleToTheNext() {
    Gang gang = running(spec("gandiva.job.worker.instances", "2"));
    gang.moves().begin("c0", 1_000_001);
    gang.moves().begin("c1", 1_000_002);
    assertThat(gang.moves().begin("c1", 1_000_003))
        .as("the core called the first one off")
        .isNotNull();
    script.take();
    gang.moves().allocated(1_000_002, new Place("old", "h"));
    assertThat(script.take()).containsExactly("release old");
    assertThat(gang.moves().begin("c1", 1_000_001)).as("a core that counts anew").isNotNull();
    gang.moves().allocated(1_000_001, new Place("m1", "h"));
    assertThat(gang.moves().begin("c1", 1_000_004)).as("this one is under way").isNull();
    gang.letGo("c1");
    assertThat(gang.generation()).as("nobody moves any more").isEqualTo(2);
    assertThat(gang.moves().generation()).isZero();
    assertThat(gang.moves().begin("c0", 1_000_005)).isNotNull();
    assertThat(gang.moves().areUnderWay()).as("its container has not come").isFalse();
    gang.moves().allocated(1_000_005, new Place("late", "h"));
    assertThat(script.take()).endsWith("release late");
  }

  @Test
  void aGangThatHadNotMetStartsAgainUnderTheNextMaster() {
    JobSpec spec = spec("gandiva.job.worker.instances", "2");
    Gang gang = running(spec);
    Gang next = new Gang(spec, script);
    StateFile.restore(next, StateFile.described(gang));
    next.startAgainIfNotMet();
    assertThat(script.take())
        .containsExactly("release c0", "release c1", "ask worker 0", "ask worker 1");
    assertThat(next.generation()).isEqualTo(2);
    assertThat(next.restarts()).as("nothing was lost").isEqualTo(0);

    gang.met(1);
    Gang late = new Gang(spec, script);
    StateFile.restore(late, StateFile.described(gang));
    late.startAgainIfNotMet();
    assertThat(script.take()).isEmpty();
  }

  @Test
  void whoHasNobodyToMeetIsLeftAlone() {
    for (JobSpec spec :
        new JobSpec[] {
          spec(), spec("gandiva.job.worker.instances", "2", "gandiva.job.launcher", "false")
        }) {
      Gang gang = running(spec);
      Gang next = new Gang(spec, script);
      StateFile.restore(next, StateFile.described(gang));
      next.startAgainIfNotMet();
      assertThat(script.take()).isEmpty();
    }
  }
}
