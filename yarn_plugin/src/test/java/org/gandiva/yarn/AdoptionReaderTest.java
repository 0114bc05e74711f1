package org.gandiva.yarn;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Collections;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;

class AdoptionReaderTest {
  private static Configuration tree() {
    Configuration conf = new Configuration(false);
    conf.set("yarn.scheduler.capacity.root.queues", "prod, dev, users");
    conf.set("yarn.scheduler.capacity.root.prod.queues", "vision,speech");
    conf.set("yarn.scheduler.capacity.root.dev.queues", "vision,small");
    conf.set("yarn.scheduler.capacity.root.users.auto-create-child-queue.enabled", "true");
    conf.set(GandivaConfiguration.MODE, "full");
    return conf;
  }

  private static Adoption read(Configuration conf) {
    return AdoptionReader.read(conf, Collections.emptyList());
  }

  @Test
  void nothingIsAdoptedUntilTheModeSaysSo() {
    Configuration conf = tree();
    conf.unset(GandivaConfiguration.MODE);
    assertThat(read(conf).mode()).isEqualTo(Mode.OBSERVE);
    assertThat(read(conf).adopts("root.prod.vision", "")).isFalse();
    assertThat(read(tree()).adopts("root.prod.vision", "any")).isTrue();
  }

  @Test
  void childrenOfANamedQueueAreAdoptedAndALeafsShortNameWillDo() {
    Configuration conf = tree();
    conf.set(GandivaConfiguration.QUEUES, "root.prod, small");
    Adoption adoption = read(conf);
    assertThat(adoption.adopts("root.prod.speech", "")).isTrue();
    assertThat(adoption.adopts("root.dev.small", "")).isTrue();
    assertThat(adoption.adopts("root.dev.vision", "")).isFalse();
    assertThat(adoption.adopts("root.production", "")).isFalse();
    assertThat(adoption.touchesQueue("root.dev")).isTrue();
    assertThat(adoption.hasQueue("root.dev")).isFalse();
  }

  @Test
  void anUnknownQueueIsAnErrorThatNamesTheNearest() {
    Configuration conf = tree();
    conf.set(GandivaConfiguration.QUEUES, "root.prod.visoin");
    assertThatThrownBy(() -> read(conf))
        .hasMessage(
            "yarn.scheduler.gandiva.queues: found \"root.prod.visoin\", expected a queue: the"
                + " nearest is root.prod.vision");
    conf.set(GandivaConfiguration.QUEUES, "vision");
    assertThatThrownBy(() -> read(conf))
        .hasMessageContaining("expected one queue, not root.dev.vision, root.prod.vision");
  }

  @Test
  void queuesThatComeByThemselvesMayBeNamedBeforehand() {
    Configuration conf = tree();
    conf.set(GandivaConfiguration.QUEUES, "root.users.ann");
    assertThat(read(conf).adopts("root.users.ann", "")).isTrue();
    conf.set(GandivaConfiguration.QUEUES, "root.guests.ann");
    assertThat(
            AdoptionReader.read(conf, Collections.singleton("root.guests.ann"))
                .adopts("root.guests.ann", ""))
        .isTrue();
  }

  @Test
  void partitionsAreNamedAndTheDefaultOneHasTwoNames() {
    Configuration conf = tree();
    conf.set(GandivaConfiguration.PARTITIONS, "gpu,DEFAULT");
    assertThat(read(conf).adopts("root.prod.vision", "")).isTrue();
    assertThat(read(conf).adopts("root.prod.vision", "gpu")).isTrue();
    assertThat(read(conf).adopts("root.prod.vision", "other")).isFalse();
    conf.set(GandivaConfiguration.PARTITIONS, "gpu");
    assertThat(read(conf).adopts("root.prod.vision", "")).isFalse();
    conf.set(GandivaConfiguration.PARTITIONS, "");
    assertThat(read(conf).adopts("root.prod.vision", "")).isTrue();
    assertThat(read(conf).adopts("root.prod.vision", "gpu")).isFalse();
  }

  @Test
  void aQueuesSwitchesHoldBelowIt() {
    Configuration conf = tree();
    conf.set("yarn.scheduler.capacity.root.prod.gandiva.slicing", "false");
    conf.set("yarn.scheduler.capacity.root.prod.vision.gandiva.slicing", "TRUE");
    conf.set("yarn.scheduler.capacity.root.gandiva.migration", "false");
    Adoption adoption = read(conf);
    assertThat(adoption.mechanismsOff("root.prod.speech")).containsExactly("slicing", "migration");
    assertThat(adoption.mechanismsOff("root.prod.vision")).containsExactly("migration");
    conf.set(GandivaConfiguration.QUEUES, "root.prod");
    assertThat(read(conf).mechanismsOff("root.dev.small")).isEqualTo(Adoption.MECHANISMS);
  }

  @Test
  void badSwitchesNameKeyFoundAndExpected() {
    Configuration conf = tree();
    conf.set("yarn.scheduler.capacity.root.prod.gandiva.slicing", "off");
    assertThatThrownBy(() -> read(conf))
        .hasMessage(
            "yarn.scheduler.capacity.root.prod.gandiva.slicing: found \"off\", expected true or"
                + " false");
    Configuration typo = tree();
    typo.set("yarn.scheduler.capacity.root.prod.gandiva.slicng", "true");
    assertThatThrownBy(() -> read(typo)).hasMessageContaining("found \"slicng\", expected one of");
    Configuration nowhere = tree();
    nowhere.set("yarn.scheduler.capacity.root.prood.gandiva.slicing", "true");
    assertThatThrownBy(() -> read(nowhere)).hasMessageContaining("the nearest is root.prod");
    Configuration mode = tree();
    mode.set(GandivaConfiguration.MODE, "half");
    assertThatThrownBy(() -> read(mode))
        .hasMessage(
            "yarn.scheduler.gandiva.mode: found \"half\", expected observe or place or full");
  }

  /** Queue capacities in GPUs are scaled; everything around the amount stays as it was written. */
  @Test
  void amountsOfGpusAreScaledWhereNodesAreOverSubscribed() {
    Configuration conf = tree();
    String prod = "yarn.scheduler.capacity.root.prod.";
    conf.set(prod + "capacity", "[memory=8192, vcores=8, yarn.io/gpu=3]");
    conf.set(prod + "accessible-node-labels.gpu.maximum-capacity", "[yarn.io/gpu=5,memory=1]");
    conf.set("yarn.scheduler.capacity.root.dev.capacity", "[memory=50%,yarn.io/gpu=50%]");
    conf.set(prod + "maximum-allocation", "memory-mb=1,yarn.io/gpu=3");
    assertThat(AbsoluteGpus.scaled(conf, read(conf), 4))
        .containsOnlyKeys(prod + "capacity", prod + "accessible-node-labels.gpu.maximum-capacity")
        .containsEntry(prod + "capacity", "[memory=8192, vcores=8, yarn.io/gpu=12]")
        .containsValue("[yarn.io/gpu=20,memory=1]");
    assertThat(AbsoluteGpus.scaled(conf, read(conf), 1)).isEmpty();
    conf.set(GandivaConfiguration.PARTITIONS, "gpu");
    assertThat(AbsoluteGpus.scaled(conf, read(conf), 4)).hasSize(1);
    conf.set(GandivaConfiguration.MODE, "place");
    assertThat(AbsoluteGpus.scaled(conf, read(conf), 4)).isEmpty();
  }
}
