"""Benchmarks of what happens on a node: found by the entry point group `gandiva.benchmarks`."""
