"""What `gandiva bench` measures, one benchmark a file; found by the entry point group `gandiva.benchmarks`."""
