"""What people can do with a running core, and who may: `gandiva job` and `gandiva node`."""
