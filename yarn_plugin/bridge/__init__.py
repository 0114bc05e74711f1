"""The Python end of the bridge to a ResourceManager's JVM. Only ``gateway`` imports py4j."""
