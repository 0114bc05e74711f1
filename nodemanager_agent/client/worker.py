"""One worker of a launcher: its command, the tree of processes below, its ranks, and the state that it is in."""

import signal
import time
from typing import Dict, Generator, List, Optional

from nodemanager_agent.client.child import Child, reaped, with_hook
from nodemanager_agent.client.driver import Driver
from nodemanager_agent.client.master_line import MasterLine
from nodemanager_agent.client.processes import Tree, below
from nodemanager_agent.client.ram_folder import RamFolder
from nodemanager_agent.client.ranks import Message, Ranks
from nodemanager_agent.client.wire import start_ticks

PROBE_S = 60.0
"""The ladder is probed within the first minute; who has not joined by then is none of ours (DESIGN §5)."""

Figures = Dict[str, float]
Steps = Generator[float, None, Figures]


class Failed(Exception):  # noqa: N818 - it is an answer
    """Why an order was not carried out; the worker is as it was."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class Worker:
    """One worker, its state and what it can do.

    Attributes:
        state: as in `WorkerState` of the messages between core and agents, and ``saved``: it stands still with its
            device memory, for a move.
        reason: why it ended, where that was not the command's own doing.
        is_driven: the driver has its device memory on the host (`driving.py`).
        granted: the last order that gave it devices.
        successor: what becomes of it in a gang of another size, while that warms up.
        master: where the gang's size is agreed on; None for a job whose size stays.
        away: the folder with its state while its command is not there (`leaving.py`).
    """

    def __init__(self, command: List[str], tree: Tree, ranks: Ranks) -> None:
        self.state = "waiting"
        self.reason = ""
        self.tree = tree
        self.ranks = ranks
        self.gpus: List[int] = []
        self.devices: List[str] = []
        self.figures: Dict[str, float] = {}
        self.is_plainly_stopped = False
        self.is_driven = False
        self.driver = Driver()
        self.granted: Message = {}
        self.successor: Optional[Worker] = None
        self.away: Optional[RamFolder] = None
        self.master: Optional[MasterLine] = None
        self._last: Message = {}
        self._command = command
        self._child: Optional[Child] = None
        self._started_s = 0.0
        self._code: Optional[int] = None
        self._probe = ""
        self._is_probed = False

    # ------------------------------------------------------------------ what it is

    @property
    def exit_code(self) -> Optional[int]:
        """Of the command; None while it runs or has not begun."""
        if self._code is not None:
            return self._code
        return self._child.exit_code if self._child is not None else None

    def standing(self) -> Message:
        """What a new line to the agent begins with."""
        return {"state": self.state, "gpus": self.gpus}

    def progress(self) -> Message:
        """As the wire's ``progress``; of a command that is away as it last was."""
        if self.away is not None:
            return {**self._last, "state": self.state}
        limits = self.ranks.limits()
        del limits["methods"]
        return {
            **self.ranks.progress(),
            **limits,
            **self._method(limits),
            "state": self.state,
        }

    def minibatches(self) -> int:
        """Done by now, or when its command was last there."""
        return self.ranks.minibatches() if self.away is None else int(self._last["minibatches"])

    def _method(self, limits: Message) -> Message:
        """The best rung that works; None before the probe."""
        if self.ranks.joined:
            rung = self.rung
            if rung == "none":
                return {"method": "none", "reason": self._why_none(limits["reason"])}
            return {"method": rung if self._is_probed else None}
        if self._child is None or not self.is_past_probe():
            return {"method": None}
        reason = "no rank joined: a plain stop would keep the device memory"
        return {"method": "stop", "reason": limits["reason"] or reason}

    @property
    def rung(self) -> str:
        """The best rung of the ladder for the ranks that have joined; those below the first are for one process."""
        limits = self.ranks.limits()
        joined = self.ranks.joined
        if limits["methods"]:
            return str(limits["methods"][0])
        if [int(each.facts.get("world_size") or 1) for each in joined] != [1]:
            return "none"
        if self.devices and not self.driver.obstacle(is_move=False):
            return "driver"
        return "checkpoint" if limits["can_move"] else "none"

    def _why_none(self, reason: str) -> str:
        if not self.devices:
            return reason
        return "; ".join(filter(None, [reason, self.driver.obstacle(is_move=False)]))

    def is_past_probe(self) -> bool:
        """Whether who has not joined by now never will, as far as anyone can say."""
        return time.monotonic() - self._started_s > PROBE_S

    def probe(self) -> None:
        """Once all ranks are there, ask them for a boundary: what answers can be stopped there."""
        if self._is_probed or self.state != "running":
            return
        if not self._probe and self.ranks.joined and self.ranks.are_complete():
            self._probe = self.ranks.ask("probe")
        if self._probe and self.ranks.have_answered(self._probe):
            self._is_probed = not self.ranks.answer(self._probe).failures

    # ------------------------------------------------------------------ its processes

    def start(self, environment: Dict[str, str]) -> None:
        """Start the command; it finds the launcher by the environment.

        Raises:
            Failed: there is no such command.
        """
        try:
            self._child = Child(self._command, with_hook(environment), self.tree)
        except OSError as error:
            self._code, self.reason = 127, str(error)
            raise Failed("NO_COMMAND", str(error)) from error
        self._started_s = time.monotonic()
        self.state = "running"

    def reap(self) -> None:
        """Collect who ended."""
        for pid, status in reaped():
            for each in (self, self.successor):
                if each is not None and each._child is not None:
                    each._child.collect(pid, status)

    def all_ranks(self) -> List[Ranks]:
        """Of the command, and of the one that is to take its place."""
        return [each.ranks for each in (self, self.successor) if each is not None]

    def begin_successor(self) -> "Worker":
        """The same command once more, on the same devices."""
        self.successor = Worker(self._command, self.tree, self.ranks.another())
        return self.successor

    def drop_successor(self) -> None:
        """It is not wanted any more."""
        if self.successor is not None:
            gone, self.successor = self.successor, None
            gone.end_alone()

    def succeed(self) -> None:
        """The successor is this worker from now on; what was before ends."""
        assert self.successor is not None
        after, self.successor = self.successor, None
        before = Worker(self._command, self.tree, self.ranks)
        before._child, self._child = self._child, after._child
        self.ranks, self.state = after.ranks, after.state
        before.end_alone()

    def put_away(self, folder: RamFolder) -> Dict[int, Optional[int]]:
        """End the command, whose state is in a folder; its processes, with when each started."""
        if self.away is None:
            self._last = self.progress()
        self.away = folder
        child, self._child = self._child, None
        left: Dict[int, Optional[int]] = {}
        if child is not None:
            pids = [child.pid, *[each.pid for each in below(child.pid)]]
            left = {pid: start_ticks(pid) for pid in pids}
            child.end_alone()
        before, self.ranks = self.ranks, self.ranks.another()
        before.close()
        return {pid: born for pid, born in left.items() if born is not None}

    def come_back(self) -> None:
        """The folder is not needed any more: the command is there again, or never will be."""
        away, self.away = self.away, None
        if away is not None:
            away.remove()

    def end_alone(self) -> None:
        """End its command and close its socket; nothing else of this launcher is touched."""
        if self._child is not None:
            self._child.end_alone()
        self.ranks.close()

    def forward(self, number: int) -> None:
        """A signal to the launcher is meant for the command.

        One that ends a suspended job ends it at once: a handler of its own would see tensors without memory, and might
        write them over a good checkpoint.
        """
        if self._child is None:
            self._code, self.reason = 128 + number, "signal {}".format(number)
        elif self.state in ("suspended", "resuming") and number != signal.SIGHUP:
            self._code, self.reason = 128 + number, "signal {} while suspended".format(number)
        else:
            self._child.signal_group(number)

    def release(self) -> None:
        """End the training processes; the job lives elsewhere."""
        self._code, self.reason = 0, "released"

    def close(self) -> None:
        """Leave nothing behind."""
        self.drop_successor()
        self.come_back()
        if self._child is not None:
            self._child.end()
        self.ranks.close()
