"""A real YARN cluster on this machine: ResourceManager and NodeManagers from Maven's jars, each a JVM of its own."""
