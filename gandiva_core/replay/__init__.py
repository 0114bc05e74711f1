"""Playing traces into clusters: readers and generators, experiments, metrics, reports."""
