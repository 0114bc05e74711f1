"""Hadoop's CapacityScheduler as a model: what its leaf queue does with a gang's containers, heartbeat by heartbeat.

Written from the behaviour of Hadoop 3.4.2; docs/CAPACITY_MODEL.md says what is in it, what is not and how it agrees.
"""
