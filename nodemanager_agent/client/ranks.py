"""The launcher's side of its ranks: who joined, what was asked of them, what they answered."""

import os
import shutil
import socket
import tempfile
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from nodemanager_agent.client.child import say
from nodemanager_agent.client.ring import RingReader
from nodemanager_agent.client.wire import Line, WireError

_PATH_BYTES_MAX = 90
"""A unix socket's path must fit 108 bytes."""

_MIB = 1024 * 1024
Message = Dict[str, Any]


class JoinedRank:
    """One training process that said who it is."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.facts: Message = {}
        self.ring: Optional[RingReader] = None

    @property
    def has_joined(self) -> bool:
        """Whether it has said anything yet."""
        return bool(self.facts)

    def join(self, message: Message) -> None:
        """Take what it says of itself; a later one replaces it."""
        self.facts = message
        path = message.get("ring")
        if self.ring is None and path:
            try:
                self.ring = RingReader(path)
            except (OSError, ValueError) as error:
                say("no step ring: {}".format(error))


class Answer(NamedTuple):
    """What came of something asked of all ranks."""

    failures: List[Message]
    done: List[Message]

    def figures(self) -> Dict[str, float]:
        """Of all ranks as one: memory adds up, of times the longest counts."""
        total: Dict[str, float] = {}
        for message in self.done:
            for name, value in (message.get("figures") or {}).items():
                was = total.get(name, 0.0)
                total[name] = was + value if name.endswith("_mib") else max(was, value)
        return total


class Ranks:
    """All ranks below this launcher. They find it by ``path``, and are found by joining."""

    def __init__(
        self, on_change: Callable[[], None], on_continuity: Callable[[Message], None]
    ) -> None:
        self._folder = tempfile.mkdtemp(prefix="gandiva-", dir=_short_folder())
        self.path = os.path.join(self._folder, "launcher")
        self._on_change = on_change
        self._on_continuity = on_continuity
        self._all: List[JoinedRank] = []
        self._answers: Dict[str, List[Tuple[JoinedRank, Message]]] = {}
        self._asked = 0
        self._last_minibatch_s: Optional[float] = None
        self._at_answer: Optional[int] = None
        self._report: Message = {}
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.path)
        self._listener.listen(64)
        self._listener.setblocking(False)

    def another(self) -> "Ranks":
        """For the ranks of another command of the same launcher, with a socket of their own."""
        return Ranks(self._on_change, self._on_continuity)

    # ------------------------------------------------------------------ the lines

    def readers(self) -> List[Any]:
        """For `select`."""
        return [self._listener, *[each.line for each in self._all]]

    def poll(self) -> None:
        """Let in who dials, and take what came."""
        try:
            while True:
                connection, _ = self._listener.accept()
                self._all.append(JoinedRank(Line(connection)))
        except OSError:
            pass
        for rank in list(self._all):
            self._read(rank)

    def close(self) -> None:
        """Close the socket and remove its folder."""
        for rank in self._all:
            rank.line.close()
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _read(self, rank: JoinedRank) -> None:
        try:
            messages = rank.line.poll()
        except WireError as error:
            say("a rank said nonsense: {}".format(error))
            messages = None
        if messages is None:
            rank.line.close()
            self._all.remove(rank)
            self._on_change()
        for message in messages or []:
            self._take(rank, message)

    def _take(self, rank: JoinedRank, message: Message) -> None:
        op = message["op"]
        if op == "join":
            rank.join(message)
            self._tell(rank, "joined", {})
            self._on_change()
        elif op == "continuity":
            self._on_continuity(message)
        elif op == "report":
            self._report = {name: message.get(name) for name in ("step", "metric")}
        elif op in ("done", "failed"):
            answers = self._answers.get(str(message.get("id")))
            if answers is not None:
                answers.append((rank, message))

    # ------------------------------------------------------------------ who is there

    @property
    def joined(self) -> List[JoinedRank]:
        """Those that said who they are."""
        return [each for each in self._all if each.has_joined]

    def are_complete(self) -> bool:
        """Whether all ranks of this launcher have joined, as far as they know how many there are."""
        joined = self.joined
        wanted = max([int(each.facts.get("local_world_size") or 1) for each in joined] or [1])
        return len(joined) >= wanted

    def are_warm(self) -> bool:
        """Whether all wait at the point where state would be loaded."""
        joined = self.joined
        return (
            bool(joined)
            and self.are_complete()
            and all(each.facts.get("is_warm") for each in joined)
        )

    def limits(self) -> Message:
        """What all of them can do: each thing only if every rank can."""
        facts = [each.facts for each in self.joined]
        reasons = sorted({str(each.get("reason")) for each in facts if each.get("reason")})
        shared = [set(each.get("methods") or []) for each in facts]
        return {
            "methods": sorted(set.intersection(*shared)) if shared else [],
            "reason": "; ".join(reasons),
            **{
                name: bool(facts) and all(each.get(name) for each in facts)
                for name in ("can_pack", "can_move", "can_resize")
            },
        }

    def progress(self) -> Message:
        """Mini-batches and memory from the rings; None for what is not known."""
        rings = [each.ring for each in self.joined if each.ring is not None]
        times = [each.minibatch_s() for each in rings]
        known = [each for each in times if each is not None]
        if known:
            self._last_minibatch_s = max(known)
        memory = [each.memory for each in rings]
        known_memory = [each for each in memory if each is not None]
        uses = [each.utilisation_ratio for each in rings]
        known_uses = [each for each in uses if each is not None]
        sums: List[Optional[int]] = [None, None, None]
        if known_memory:
            sums = [sum(each[part] for each in known_memory) // _MIB for part in range(3)]
        return {
            "minibatches": min([each.minibatches for each in rings] or [0]),
            "minibatch_s": self._last_minibatch_s,
            "memory_mib": sums[0],
            "memory_peak_mib": sums[1],
            "memory_min_mib": sums[2],
            "utilisation_ratio": sum(known_uses) / len(known_uses) if known_uses else None,
            "ranks": len(self.joined),
            **self._report,
        }

    def minibatches(self) -> int:
        """As the ranks said with what they last answered, since those that run go on; else those of now."""
        said, self._at_answer = self._at_answer, None
        return int(self.progress()["minibatches"]) if said is None else said

    # ------------------------------------------------------------------ asking

    def ask(self, op: str, **values: Any) -> str:
        """Ask all of them the same; the id to look for answers with."""
        self._asked += 1
        key = "{}-{}".format(op, self._asked)
        self._answers[key] = []
        for rank in self.joined:
            self._tell(rank, op, {**values, "id": key})
        return key

    def cancel(self, key: str) -> None:
        """Take a stop back, of those who have done it too."""
        for rank in self.joined:
            self._tell(rank, "cancel", {"id": key})
        self._answers.pop(key, None)

    def have_answered(self, key: str) -> bool:
        """Whether everyone who is still there has; whoever leaves has nothing more to say."""
        heard = [rank for rank, _ in self._answers.get(key, ())]
        return all(any(rank is each for each in heard) for rank in self.joined)

    def answer(self, key: str) -> Answer:
        """What they said; asked once."""
        messages = [message for _, message in self._answers.pop(key, [])]
        counts = [int(each["minibatches"]) for each in messages if "minibatches" in each]
        self._at_answer = min(counts, default=None)
        return Answer(
            [each for each in messages if each["op"] == "failed"],
            [each for each in messages if each["op"] == "done"],
        )

    def _tell(self, rank: JoinedRank, op: str, values: Message) -> None:
        try:
            rank.line.send(op, **values)
        except (OSError, WireError) as error:
            say("a rank is gone: {}".format(error))


def _short_folder() -> str:
    for folder in (tempfile.gettempdir(), "/tmp", "/dev/shm"):
        if len(folder) < _PATH_BYTES_MAX - 30 and os.access(folder, os.W_OK):
            return folder
    return "."
