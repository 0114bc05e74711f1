package org.gandiva.yarn.core;

/** What becomes of GPU asks while nobody decides about them. Neither method may throw. */
public interface Fallback {
  /** Returns whether stock code shall serve GPU asks meanwhile, on physical GPUs. */
  boolean isExclusive();

  /** Sets nodes to their physical GPUs, then lets stock code serve GPU asks. */
  void engage();

  /** Forbids stock code to serve GPU asks, at once; then gives nodes their heights back. */
  void lift();
}
