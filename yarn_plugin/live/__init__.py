"""The core process: the engine beside a running ResourceManager."""
