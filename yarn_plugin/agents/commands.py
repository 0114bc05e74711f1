"""Commands to agents, numbered as they want them: what is new within an epoch of the core is carried out once (I6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Concatenate, ParamSpec

from gandiva_core.messages.agents import Command
from yarn_plugin.agents.nodes import NodeSide
from yarn_plugin.agents.server import Agents

P = ParamSpec("P")


class Commands:
    """Tells agents.

    Args:
        agents: where messages go to.
        nodes: what is known of agents, by node.
        epoch: of this core; rises from one to the next.
    """

    def __init__(self, agents: Agents, nodes: Mapping[str, NodeSide], epoch: int) -> None:
        self._agents = agents
        self.nodes = nodes
        self.epoch = epoch

    def tell(
        self,
        node: str,
        kind: Callable[Concatenate[int, int, P], Command],
        *fields: P.args,
        **named: P.kwargs,
    ) -> int:
        """Send a command to a node that is known; nothing where its agent is away.

        Args:
            node: whom.
            kind: which.
            fields: of it, behind the epoch and its number.
            named: the same, by name.

        Returns:
            Its number, which the answer has too.
        """
        message_id = self.nodes[node].next_id()
        self._agents.send(node, kind(self.epoch, message_id, *fields, **named))
        return message_id

    def greet(self, node: str, welcome: Command) -> None:
        """Send what has no number."""
        self._agents.send(node, welcome)
