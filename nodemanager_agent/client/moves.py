"""The state of one replica out of a process and into another, at the top of the loop (G-68 B, G-69).

The source stops where the script says that a mini-batch begins, and writes what the script keeps and all random
generators. The destination has run the same script up to the same line, with everything built, waits there, loads in
place, proves that it stands where the source stood, and does one mini-batch before it says so.
"""

import os
import time
from contextlib import suppress
from typing import Any, Dict, List, Optional

from nodemanager_agent.client.continuity import Fingerprint
from nodemanager_agent.client.framework import Figures, Framework, Message, Refusal
from nodemanager_agent.client.rank import Rank
from nodemanager_agent.client.replica import Replica
from nodemanager_agent.client.wire import start_ticks

WARM = "GANDIVA_WARM"
"""Environment: this process is the destination of a move, and does no mini-batch before it has the source's state."""


class Moves:
    """The legs of a move, for one rank."""

    def __init__(self, framework: Framework, rank: Rank, replica: Replica) -> None:
        self._framework = framework
        self._rank = rank
        self._replica = replica
        self._is_warm = bool(os.environ.get(WARM))
        self._restored: Optional[Message] = None
        self._figures: Figures = {}
        self._stopped_at_s = 0.0
        rank.handlers["save"] = self.save

    @property
    def is_awaited(self) -> bool:
        """Whether this process still has to get its state before it may train."""
        return self._is_warm

    def save(self, order: Message) -> Figures:
        """Write this rank's part below ``folder``.

        Returns:
            ``save_s`` and ``save_cpu_s``, by the clock and of the processor, and ``saved_mib``.

        Raises:
            Refusal: NOT_MOVABLE, NO_SPACE, FOLDER.
        """
        limits = self._framework.limits()
        if not limits.can_move:
            raise Refusal("NOT_MOVABLE", limits.reason)
        _make(str(order["folder"]))
        began_s, at_s, used_s = time.perf_counter(), time.time(), time.thread_time()
        size = self._replica.write(str(order["folder"]), self._rank.minibatches, at_s)
        return {
            "save_s": time.perf_counter() - began_s,
            "save_cpu_s": time.thread_time() - used_s,
            "saved_mib": size / 2.0**20,
        }

    def warm_up(self, is_marked: bool = True) -> None:
        """Wait at the top of the first mini-batch for the state; does not return without it.

        Args:
            is_marked: whether the script is at a top: one that is elsewhere never gets a state, and is ended.
        """
        warm_s = _age_s()
        self._rank.join(is_warm=is_marked)
        while self._is_warm:
            message = self._rank.receive()
            if message is None:  # whoever wanted this process is gone, and the job runs elsewhere
                os._exit(1)
            if message["op"] == "restore" and is_marked:
                self._try(message, warm_s)
            elif message["op"] not in ("joined", "cancel"):
                self._rank.refuse(message, Refusal("NOT_WARM", "it waits for its state"))

    def confirm(self) -> None:
        """After each mini-batch: the first one after a restore is what the restore's answer waited for."""
        if self._restored is None:
            return
        message, self._restored = self._restored, None
        now_s = time.time()
        self._figures["first_minibatch_s"] = time.perf_counter() - self._figures.pop("ready")
        self._figures["frozen_s"] = now_s - self._stopped_at_s
        self._rank.answer(message, self._figures)
        if message.get("holds"):
            self._rank.hold()

    # ------------------------------------------------------------------ restoring

    def _try(self, message: Message, warm_s: float) -> None:
        try:
            self._figures = {"warm_s": warm_s, **self._restore(message)}
        except Refusal as refusal:
            self._rank.refuse(message, refusal)
        except Exception as error:  # of the script's own `load_state_dict`: the source is the job
            text = "{}: {}".format(type(error).__name__, error)
            self._rank.refuse(message, Refusal("FAILED", text))
        else:
            self._is_warm = False
            self._restored = message

    def _restore(self, message: Message) -> Figures:
        began_s, at_s, used_s = time.perf_counter(), time.time(), time.thread_time()
        _check_owner(str(message["folder"]))
        found = self._replica.find(str(message["folder"]))
        verified_s = time.perf_counter()
        self._replica.put(self._replica.read(found))
        self._rank.adopt(found.zero.step)
        # of buffers that a rank has to itself, such as batch norm's, rank 0's are what the next forward gives to all
        source = {**found.source, "state": found.zero.continuity["state"]}
        self._prove(str(message.get("after") or "move"), source, found.mine is not None)
        self._stopped_at_s = float(source["stopped_at_s"])
        ready_s = time.perf_counter()
        return {
            "since_stop_s": at_s - self._stopped_at_s,
            "verify_s": verified_s - began_s,
            "load_s": ready_s - verified_s,
            "restore_s": ready_s - began_s,
            "restore_cpu_s": time.thread_time() - used_s,
            "ready": ready_s,
        }

    def _prove(self, after: str, source: Dict[str, Any], is_mine: bool) -> None:
        before = Fingerprint(*[source[name] for name in Fingerprint._fields])
        now = self._replica.fingerprint(self._rank.minibatches)
        if not is_mine:
            before = before._replace(generators=now.generators)
        if not self._rank.prove(after, before, now):
            differences = ", ".join(before.differences(now))
            raise Refusal("CONTINUITY", "not as at the source: {}".format(differences))


def _make(folder: str) -> None:
    """A folder for nobody else; its name can be foreseen, so another user's may be there already."""
    with suppress(OSError):  # whoever writes into it says so
        os.makedirs(folder, mode=0o700, exist_ok=True)
    _check_owner(folder)


def _check_owner(folder: str) -> None:
    try:
        owner = os.lstat(folder).st_uid
    except OSError:
        return  # nothing there, as whoever reads it says
    if owner != os.geteuid():
        raise Refusal("FOLDER", "{} belongs to user {}".format(folder, owner))


def _age_s() -> float:
    """Seconds since this process began."""
    ticks: List[int] = [start_ticks(os.getpid()) or 0]
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks[0] / os.sysconf("SC_CLK_TCK")
