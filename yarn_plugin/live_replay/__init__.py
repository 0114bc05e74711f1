"""A trace as real training in real containers, once under each scheduler: `gandiva live-replay`."""
