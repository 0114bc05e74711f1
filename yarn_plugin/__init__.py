"""Gandiva's ResourceManager plug-in: the Java sources and the Python end of its bridge."""
