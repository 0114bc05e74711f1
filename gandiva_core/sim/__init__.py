"""A world that answers effects with events, without a JVM: the job model, and a substrate that only keeps books."""
