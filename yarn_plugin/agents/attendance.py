"""Whose agent is there, whose has gone, and which servers can do more or less because of it. Pure."""

from __future__ import annotations

from dataclasses import replace

from gandiva_core.messages.agents import AgentHello
from gandiva_core.model.units import ServerId
from yarn_plugin.agents.nodes import LOST_S, NodeSide
from yarn_plugin.bridge.register import Register


class Attendance:
    """Follows agents that come and go; time is handed in.

    Args:
        register: which server is which node.
    """

    def __init__(self, register: Register) -> None:
        self._register = register
        self._changed: dict[str, None] = {}
        self._away: dict[str, NodeSide] = {}
        #: Agents that went and may be back in time: a turn looks at these, not at thousands.
        self._now_s = 0.0
        self.nodes: dict[str, NodeSide] = {}

    def can_suspend(self, server_id: ServerId) -> bool:
        """Whether jobs may share this server's devices, because an agent there can stop them."""
        side = self._side(server_id)
        return side is not None and side.can_suspend(self._now_s)

    def lost_gpus(self, server_id: ServerId) -> int:
        """How many devices of a server are gone."""
        side = self._side(server_id)
        return 0 if side is None else len(side.lost)

    def is_there(self, node: str) -> bool:
        """Whether a node's agent can be talked to."""
        side = self.nodes.get(node)
        return side is not None and side.is_there

    def changed(self) -> list[str]:
        """Nodes of which something is new since the last call: their agent came or was lost, or a device."""
        found, self._changed = list(self._changed), {}
        return found

    # ------------------------------------------------------------------ what happened

    def came(self, node: str, hello: AgentHello) -> NodeSide:
        """An agent is there, for the first time or again."""
        before = self.nodes.get(node)
        # Ids never go back within an epoch: what is sent now would look like a repetition.
        last_id = 0 if before is None else before.message_id
        side = NodeSide(hello, message_id=last_id)
        if before is not None:
            is_same = before.hello.session == hello.session
            doubted = before.doubted if is_same else set[int]()
            side = replace(side, lost=before.lost, order=before.order, doubted=doubted)
        self.nodes[node] = side
        self._away.pop(node, None)
        self._changed[node] = None
        return side

    def went(self, node: str, side: NodeSide) -> None:
        """Its stream is over; agents are restarted, so that is no news before a while."""
        side.is_there, side.lost_at_s = False, self._now_s
        self._away[node] = side

    def lose(self, node: str, side: NodeSide, gpu: int) -> bool:
        """A device is gone; whether that is news."""
        is_news = side.lose(gpu)
        if is_news:
            self._changed[node] = None
        return is_news

    def find(self, node: str, side: NodeSide, gpu: int) -> None:
        """A device is healthy."""
        if side.find(gpu):
            self._changed[node] = None

    def pass_time(self, now_s: float) -> None:
        """It is later."""
        self._now_s = now_s
        for node in [n for n, side in self._away.items() if side.lost_at_s <= now_s - LOST_S]:
            del self._away[node]
            self._changed[node] = None

    def _side(self, server_id: ServerId) -> NodeSide | None:
        return self.nodes.get(self._register.node_of.get(server_id, ""))
