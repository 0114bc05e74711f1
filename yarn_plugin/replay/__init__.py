"""A replay's substrate: a real ResourceManager in one JVM under virtual time, behind the ports of the driver."""
