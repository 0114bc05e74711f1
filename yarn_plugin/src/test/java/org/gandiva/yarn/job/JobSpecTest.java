package org.gandiva.yarn.job;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Keys of a job (docs/JOBS.md), ours and TonY's. */
class JobSpecTest {
  private static Map<String, String> values(String... pairs) {
    Map<String, String> values = new HashMap<>();
    for (int at = 0; at < pairs.length; at += 2) {
      values.put(pairs[at], pairs[at + 1]);
    }
    values.putIfAbsent("gandiva.job.worker.command", "true");
    return values;
  }

  private static JobSpec spec(String... pairs) throws BadInputException {
    return JobSpec.of(new JobSettings(values(pairs)));
  }

  @Test
  void aJobOfNothingButACommandIsOneWorkerOnOneDevice() throws Exception {
    JobSpec spec = spec();
    assertThat(spec.types()).hasSize(1);
    TaskType worker = spec.types().get(0);
    assertThat(worker.instances()).isEqualTo(1);
    assertThat(worker.gpus()).isEqualTo(1);
    assertThat(worker.memoryMib()).isEqualTo(2048);
    assertThat(spec.tags()).containsExactly("gandiva.gang=1");
    assertThat(spec.hasLauncher()).isTrue();
    assertThat(spec.python()).isEqualTo("python3");
  }

  @Test
  void tonysKeysMeanTheSame() throws Exception {
    JobSpec spec =
        spec(
            "tony.application.name", "mnist",
            "tony.application.framework", "TensorFlow",
            "tony.worker.instances", "4",
            "tony.worker.gpus", "2",
            "tony.worker.memory", "3g",
            "tony.ps.instances", "1",
            "tony.ps.memory", "512m",
            "tony.ps.vcores", "2",
            "tony.containers.envs", "A=1,B=x=y");
    assertThat(spec.text(JobKey.NAME)).isEqualTo("mnist");
    assertThat(spec.framework()).isEqualTo("tensorflow");
    assertThat(spec.types()).extracting(TaskType::name).containsExactly("worker", "ps");
    assertThat(spec.types()).extracting(TaskType::memoryMib).containsExactly(3072, 512);
    assertThat(spec.types()).extracting(TaskType::isTracked).containsExactly(true, false);
    assertThat(spec.tags()).as("a ps has no GPU").containsExactly("gandiva.gang=4");
    assertThat(spec.environment()).containsEntry("A", "1").containsEntry("B", "x=y");
  }

  @Test
  void ourNameOfAKeyWins() throws Exception {
    JobSpec spec = spec("tony.worker.instances", "4", "gandiva.job.worker.instances", "2");
    assertThat(spec.types().get(0).instances()).isEqualTo(2);
  }

  @Test
  void whatItsOwnerForbidsBecomesTags() throws Exception {
    JobSpec spec =
        spec(
            "gandiva.job.suspend", "never",
            "gandiva.job.pack", "allow",
            "gandiva.job.migrate", "NEVER",
            "gandiva.job.growshrink", "true",
            "gandiva.job.tags", "team=vision, nightly");
    assertThat(spec.tags())
        .containsExactlyInAnyOrder(
            "gandiva.gang=1",
            "gandiva.suspend=never",
            "gandiva.migrate=never",
            "gandiva.growshrink=true",
            "team=vision",
            "nightly");
  }

  @ParameterizedTest
  @CsvSource({"8,1,4", "4,1,4", "3,2,2", "2,2,2", "1,4,1"})
  void theFirstShapeThatFitsIsTakenAndADeviceKeepsItsMemory(int gpusMax, int workers, int gpus)
      throws Exception {
    JobSettings settings =
        new JobSettings(
            values(
                "gandiva.job.shape", "1x4,2x2,4x1",
                "tony.worker.memory", "4g",
                "gandiva.job.worker.vcores", "8"));
    JobSpec spec = JobSpec.of(JobSpec.shaped(settings, gpusMax));
    TaskType worker = spec.types().get(0);
    assertThat(worker.instances()).isEqualTo(workers);
    assertThat(worker.gpus()).isEqualTo(gpus);
    assertThat(worker.memoryMib()).isEqualTo(1024 * gpus);
    assertThat(worker.vcores()).isEqualTo(2 * gpus);
    assertThat(spec.tags()).containsExactly("gandiva.gang=" + workers);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "gandiva.job.worker.instances|two|gandiva.job.worker.instances: found \"two\"",
        "tony.worker.instances|0|tony.worker.instances: found \"0\", expected a whole number from 1",
        "tony.ps.instances|-1|tony.ps.instances: found \"-1\"",
        "gandiva.job.worker.memory|much|gandiva.job.worker.memory: found \"much\", expected memory",
        "gandiva.job.worker.memory|0|gandiva.job.worker.memory: found \"0\"",
        "gandiva.job.suspend|no|gandiva.job.suspend: found \"no\", expected allow or never",
        "gandiva.job.growshrink|yes|gandiva.job.growshrink: found \"yes\"",
        "gandiva.job.framework|jax|gandiva.job.framework: found \"jax\", expected pytorch or",
        "gandiva.job.worker.gpu|1|gandiva.job.worker.gpu: found no such key",
        "gandiva.job.checkpoint.every|50|gandiva.job.checkpoint.dir: found nothing, expected a folder",
        "gandiva.job.checkpoint.every|x|gandiva.job.checkpoint.every: found \"x\"",
        "gandiva.job.checkpoint.dir|c|gandiva.job.checkpoint.dir: found \"c\", expected the path",
        "gandiva.job.env|PATH|gandiva.job.env: found \"PATH\", expected NAME=VALUE",
        "gandiva.job.env|RANK=1|gandiva.job.env: found RANK, expected a variable that Gandiva",
        "gandiva.job.worker.instances|99999|gandiva.job.*.instances: found 10000",
      })
  void whatCannotBeUsedIsNamedAsItWasWritten(String key, String value, String said) {
    if (value.equals("99999")) {
      assertThatThrownBy(() -> spec(key, value, "tony.ps.instances", "1"))
          .isInstanceOf(BadInputException.class)
          .hasMessageStartingWith(said);
    } else {
      assertThatThrownBy(() -> spec(key, value))
          .isInstanceOf(BadInputException.class)
          .hasMessageStartingWith(said)
          .hasMessageNotContaining("\n");
    }
  }

  @Test
  void shapesOfDifferentSizesAreRefusedAndSoAreTheTooLarge() throws Exception {
    JobSettings large = new JobSettings(values("gandiva.job.shape", "8x1,4x2"));
    assertThatThrownBy(() -> JobSpec.shaped(large, 0)).hasMessageContaining("at most 0 GPUs");
    JobSettings other = new JobSettings(values("gandiva.job.shape", "1x8,2x2"));
    assertThatThrownBy(() -> JobSpec.shaped(other, 4)).hasMessageContaining("shapes of 8 GPUs");
    JobSettings text = new JobSettings(values("gandiva.job.shape", "four"));
    assertThatThrownBy(() -> JobSpec.shaped(text, 4)).hasMessageContaining("4x1,2x2,1x4");
  }

  @Test
  void aJobWithoutACommandSaysHowToGiveOne() {
    Map<String, String> none = new HashMap<>();
    assertThatThrownBy(() -> JobSpec.of(new JobSettings(none)))
        .hasMessage(
            "gandiva.job.worker.command: found nothing, expected a command, or the option -executes");
  }

  @Test
  void tonysOtherKeysAreTold() {
    assertThat(JobSettings.foreign(values("tony.history.host", "h", "tony.worker.gpus", "1")))
        .containsExactly("tony.history.host");
  }
}
