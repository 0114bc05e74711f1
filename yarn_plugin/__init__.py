"""The ResourceManager plug-in and the Python end of its bridge."""
