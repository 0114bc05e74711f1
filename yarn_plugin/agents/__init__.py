"""The core's side of the agents on the nodes: they dial in, are told who stops and who runs, and report."""
