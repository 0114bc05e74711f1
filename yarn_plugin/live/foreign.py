"""GPU containers that this core did not create: an earlier core's, or of a commit whose answer was lost.

Their devices are not known, so nothing is placed beside them. A node that a new core meets with such containers
is kept out of its sight until the last of them has ended. Where a node is in use already, they are given back: the
ask returns to the table and is served again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from gandiva_core.messages.events import Event, ServerJoined, ServerLost
from yarn_plugin.bridge import wire
from yarn_plugin.bridge.register import Register


class ForeignContainers:
    """Watches what comes from the gateway, and holds servers back.

    Args:
        register: of the translator; what is in it is ours.
    """

    def __init__(self, register: Register) -> None:
        self._register = register
        self._held: defaultdict[str, set[str]] = defaultdict(set)
        self._joining: dict[str, ServerJoined] = {}

    @property
    def nodes(self) -> tuple[str, ...]:
        """Nodes held back."""
        return tuple(sorted(self._held))

    def note(self, events: Sequence[wire.RmEvent]) -> list[wire.ReleaseOrder]:
        """Look at a batch before it is translated.

        Returns:
            Orders for containers that are to be given back.
        """
        orders: list[wire.ReleaseOrder] = []
        for event in events:
            match event:
                case wire.Resync():
                    if event.part == 1:
                        self._held.clear()
                    for app in event.apps:
                        orders += self._of_app(app, event.seq)
                case wire.ContainerCompleted():
                    self._ended(event.node, event.container)
                case wire.NodeRemoved():
                    self._held.pop(event.node, None)
                    self._joining.pop(event.node, None)
                case _:
                    pass
        return orders

    def pass_on(self, events: Sequence[Event], now_s: float) -> Iterator[Event]:
        """Translated events without servers that are held back, and servers that are free again."""
        for event in events:
            if isinstance(event, ServerJoined) and event.server.server_id in self._held:
                self._joining[event.server.server_id] = event
            elif isinstance(event, ServerLost) and event.server_id in self._joining:
                del self._joining[event.server_id]
            else:
                yield event
        for node in [node for node in self._joining if node not in self._held]:
            yield ServerJoined(now_s, self._joining.pop(node).server)

    def _of_app(self, app: wire.ResyncApp, number: int) -> Iterator[wire.ReleaseOrder]:
        known = self._register.job_of
        unknown = [each for each in app.containers if each.container not in known]
        returned: list[str] = []
        for each in unknown:
            if each.node in self._register.servers and each.node not in self._joining:
                returned.append(each.container)
            else:
                self._held[each.node].add(each.container)
        if returned:
            yield wire.ReleaseOrder(f"foreign/{number}/{app.app}", app.attempt, tuple(returned))

    def _ended(self, node: str, container: str) -> None:
        left = self._held.get(node)
        if left is not None:
            left.discard(container)
            if not left:
                del self._held[node]
