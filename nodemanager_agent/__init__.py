"""The agent of a GPU NodeManager. It is built with live clusters; this version holds none of it.

This version replays traces through a real ResourceManager, where the job model stands for the
GPU servers; nothing in it suspends a real process.
"""
