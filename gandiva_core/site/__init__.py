"""A shop's own Hadoop configuration: read as Hadoop reads it, with the origin of each value."""
