"""Commands, one a file; each found by the entry point group `gandiva.commands`."""
