"""The agent of a GPU NodeManager, and under `client` what runs inside its jobs (DESIGN §5; docs/AGENT.md).

One process a node: it binds devices to containers, has launchers start, stop and continue training processes, and tells
the core. It starts no process and kills none.
"""
