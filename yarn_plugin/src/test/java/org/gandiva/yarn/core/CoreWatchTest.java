package org.gandiva.yarn.core;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.gandiva.yarn.core.CoreWatch.State;
import org.junit.jupiter.api.Test;

/** DESIGN §4, "core silent", on a clock of the test. */
class CoreWatchTest {
  private static final long MS = 1_000_000;

  private final List<String> done = new ArrayList<>();
  private boolean isExclusive = true;
  private long nowNs = 17;

  private final CoreWatch watch =
      new CoreWatch(
          new Fallback() {
            @Override
            public boolean isExclusive() {
              return isExclusive;
            }

            @Override
            public void engage() {
              done.add("engage");
            }

            @Override
            public void lift() {
              done.add("lift");
            }
          },
          () -> nowNs);

  private void pass(int ms) {
    for (int passed = 0; passed < ms; passed += 50) {
      nowNs += 50 * MS;
      watch.step();
    }
  }

  @Test
  void aSecondWithoutACallIsSilenceAndTheNextCallEndsIt() {
    watch.heard();
    assertThat(watch.state()).isEqualTo(State.CONNECTED);
    pass(950);
    assertThat(done).isEmpty();
    pass(50);
    assertThat(watch.state()).isEqualTo(State.SILENT);
    assertThat(watch.isEngaged()).isTrue();
    assertThat(watch.stateMs()).isEqualTo(1000);
    pass(5000);
    assertThat(done).as("engaged once").containsExactly("engage");
    watch.heard();
    assertThat(done).containsExactly("engage", "lift");
    assertThat(watch.state()).isEqualTo(State.CONNECTED);
    assertThat(watch.isEngaged()).isFalse();
    assertThat(watch.opens()).isEqualTo(1);
  }

  @Test
  void callsBetweenKeepItConnected() {
    for (int i = 0; i < 10; i++) {
      watch.heard();
      pass(900);
    }
    assertThat(watch.state()).isEqualTo(State.CONNECTED);
    assertThat(watch.opens()).isZero();
  }

  /** A large gang, or the snapshot of a large cluster, may take longer than a second. */
  @Test
  void aCallThatTakesLongToAnswerIsNoSilenceOfTheCore() {
    watch.heard();
    watch.answerBegins();
    pass(5000);
    assertThat(watch.state()).isEqualTo(State.CONNECTED);
    watch.answerEnds();
    pass(950);
    assertThat(watch.state()).isEqualTo(State.CONNECTED);
    pass(50);
    assertThat(watch.state()).isEqualTo(State.SILENT);
  }

  @Test
  void aCoreThatNeverCameLeavesItsPartToTheFallbackToo() {
    pass(1000);
    assertThat(watch.state()).isEqualTo(State.NEVER_SEEN);
    assertThat(done).containsExactly("engage");
    assertThat(watch.opens()).as("nothing was open that could fall silent").isZero();
    watch.heard();
    assertThat(done).containsExactly("engage", "lift");
  }

  @Test
  void underWaitNothingIsLetThrough() {
    isExclusive = false;
    watch.heard();
    pass(60_000);
    assertThat(watch.state()).isEqualTo(State.SILENT);
    assertThat(done).isEmpty();
    watch.heard();
    assertThat(done).isEmpty();
    assertThat(watch.opens()).isEqualTo(1);
  }

  @Test
  void aFallbackThatIsChangedMeanwhileIsFollowed() {
    isExclusive = false;
    pass(2000);
    isExclusive = true;
    pass(50);
    assertThat(done).containsExactly("engage");
    isExclusive = false;
    pass(50);
    assertThat(done).containsExactly("engage", "lift");
  }

  /** A long collection of garbage stops the core's calls from being served, not the core. */
  @Test
  void aPauseOfTheJvmIsNobodysSilence() {
    watch.heard();
    pass(500);
    nowNs += 30_000 * MS;
    watch.step();
    assertThat(watch.state()).isEqualTo(State.CONNECTED);
    pass(250);
    assertThat(watch.state()).isEqualTo(State.CONNECTED);
    pass(50);
    assertThat(watch.state()).isEqualTo(State.SILENT);
  }
}
