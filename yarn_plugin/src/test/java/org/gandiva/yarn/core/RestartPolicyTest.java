package org.gandiva.yarn.core;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** DESIGN §4: back-off from 1 s, down after five ends within ten minutes. */
class RestartPolicyTest {
  private final RestartPolicy policy = new RestartPolicy();

  @Test
  void thePauseDoublesUntilItIsDown() {
    assertThat(policy.onEnd(0)).isEqualTo(1000);
    assertThat(policy.onEnd(1000)).isEqualTo(2000);
    assertThat(policy.onEnd(3000)).isEqualTo(4000);
    assertThat(policy.onEnd(7000)).isEqualTo(8000);
    assertThat(policy.isDown()).isFalse();
    assertThat(policy.onEnd(15_000)).isEqualTo(600_000);
    assertThat(policy.isDown()).isTrue();
  }

  @Test
  void onceDownItIsTriedEveryTenMinutesUntilOneHasLivedForAMinute() {
    for (int i = 0; i < 5; i++) {
      policy.onEnd(i);
    }
    assertThat(policy.onEnd(700_000)).as("one try, and rest again").isEqualTo(600_000);
    policy.onAlive(59_999);
    assertThat(policy.isDown()).isTrue();
    policy.onAlive(60_000);
    assertThat(policy.isDown()).isFalse();
    assertThat(policy.onEnd(2_000_000)).isEqualTo(1000);
  }

  @Test
  void endsThatAreFarApartAreForgotten() {
    for (int i = 0; i < 20; i++) {
      assertThat(policy.onEnd(i * 200_000L)).isLessThanOrEqualTo(4000);
    }
    assertThat(policy.isDown()).isFalse();
  }
}
