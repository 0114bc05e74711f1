"""Workloads to replay: readers of public formats, seeded generators, the model table, the clusters they come with."""
