package org.gandiva.yarn;

import java.util.function.Consumer;
import org.gandiva.yarn.core.Fallback;

/** The scheduler while its core is silent: {@code core.fallback} as what is vetoed and inflated. */
final class CoreFallback implements Fallback {
  private final Veto veto;
  private final OverSubscription overSubscription;
  private final Consumer<Runnable> own;
  private final Runnable afterwards;

  /**
   * Creates the fallback.
   *
   * @param own runs code of ours; what it throws goes no further
   * @param afterwards called when the veto holds again, before nodes have their heights
   */
  CoreFallback(
      Veto veto, OverSubscription overSubscription, Consumer<Runnable> own, Runnable afterwards) {
    this.veto = veto;
    this.overSubscription = overSubscription;
    this.own = own;
    this.afterwards = afterwards;
  }

  @Override
  public boolean isExclusive() {
    return veto.adoption().fallback().equals("exclusive");
  }

  @Override
  public void engage() {
    own.accept(
        () -> {
          overSubscription.toPhysical();
          veto.lift();
        });
  }

  @Override
  public void lift() {
    veto.lower();
    own.accept(afterwards);
    own.accept(overSubscription::restore);
  }
}
