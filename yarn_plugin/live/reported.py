"""Of which nodes the ResourceManager may count on an agent, so that it waits no longer with what it recovered. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from yarn_plugin.bridge.wire import AgentReported, NodeAdded, Resync, RmEvent


class ReportedAgents:
    """Says it once whenever a node or its agent came, of agents that are there.

    A node that registers begins to wait, and nothing that was said before it counts.

    Args:
        is_there: whether a node's agent is there.
    """

    def __init__(self, is_there: Callable[[str], bool]) -> None:
        self._is_there = is_there
        self._unsaid: dict[str, None] = {}

    def note(self, events: Sequence[RmEvent]) -> None:
        """Nodes that came, one by one or with a new session."""
        for event in events:
            if isinstance(event, NodeAdded):
                self._unsaid[event.node] = None
            elif isinstance(event, Resync):
                self._unsaid.update(dict.fromkeys(node.node for node in event.nodes))

    def due(self, changed: Iterable[str]) -> list[AgentReported]:
        """What has to be said; an agent that comes later is among a later call's `changed`."""
        nodes, self._unsaid = self._unsaid | dict.fromkeys(changed), {}
        return [AgentReported(f"agent/{node}", node) for node in nodes if self._is_there(node)]
