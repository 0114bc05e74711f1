"""The launcher's line to the job's ApplicationMaster while the job runs: what it can do, and whether it shall resize.

A thread of its own asks again and again, since nobody can call a container; the launcher's loop looks at what it heard.
"""

import threading
import time
from typing import Any, Callable, Dict, Mapping, Optional

from nodemanager_agent.client.child import say
from nodemanager_agent.client.rendezvous import Master, NoRendezvous, master_at

WARM, SAVED, RESTORED = 1, 2, 3
"""Stages of a resize, which nobody passes before all have come to them; see the master's side in docs/JOBS.md."""

_IDLE_S, _BUSY_S = 1.0, 0.1
_AWAY_S = 20.0
"""A master that does not answer for so long has ended: the next one does not know of this resize."""


class MasterLine(threading.Thread):
    """Asks the master.

    Args:
        call: what is said of this worker, to the answer; raises `NoRendezvous`.
        container_id: this worker's.
    """

    def __init__(self, call: Callable[[Dict[str, Any]], Dict[str, Any]], container_id: str) -> None:
        super().__init__(name="gandiva-master", daemon=True)
        self._call = call
        self._container_id = container_id
        self._standing: Dict[str, Any] = {"can_resize": False, "reason": "it does not run yet"}
        self._resize: Dict[str, Any] = {}
        self._heard: Dict[str, Any] = {}
        self._answered_s = time.monotonic()
        self._changed = threading.Event()
        self._done = 0

    def run(self) -> None:
        """Ask, until the process ends."""
        while True:
            said = {"container_id": self._container_id, **self._standing, **self._resize}
            try:
                self._heard = self._call(said)
                self._answered_s = time.monotonic()
            except NoRendezvous:
                self._heard = {}
            self._changed.wait(_BUSY_S if self._resize else _IDLE_S)
            self._changed.clear()

    # ------------------------------------------------------------------ the launcher's loop

    def wish(self, can_resize: bool, reason: str) -> Optional[Dict[str, Any]]:
        """A resize that this worker may `begin`; the master hears what it can do, whatever it does just now."""
        standing = {"can_resize": can_resize, "reason": reason or "it does not run yet"}
        if standing != self._standing:
            self._standing = standing
            self._changed.set()
        heard = self._heard.get("resize")
        if self._resize or not heard or heard["off"] or heard["generation"] <= self._done:
            return None
        if not can_resize or "world_size" not in heard:
            return None
        return dict(heard)

    def begin(self, generation: int) -> None:
        """This worker takes part."""
        self._resize = {"generation": generation, "stage": 0}
        self._answered_s = time.monotonic()
        self._changed.set()

    def reach(self, stage: int) -> None:
        """This worker has come so far."""
        self._resize = {**self._resize, "stage": stage}
        self._changed.set()

    def fail(self, detail: str) -> None:
        """This worker cannot; it is called off for all."""
        self._resize = {**self._resize, "failed": detail}
        self._changed.set()

    def end(self) -> None:
        """It is over, for this worker, once the master has heard how."""
        self._done = int(self._resize.get("generation") or self._done)
        limit_s = time.monotonic() + 5.0
        while self._resize.get("failed") and not self._off and time.monotonic() < limit_s:
            time.sleep(0.02)
        self._resize = {}

    @property
    def _off(self) -> str:
        heard = self._heard.get("resize") or {}
        is_this = heard.get("generation") == self._resize.get("generation")
        return str(heard.get("off") or "") if is_this else ""

    @property
    def off(self) -> str:
        """Why it was called off; empty while it was not."""
        if time.monotonic() - self._answered_s > _AWAY_S:
            return "the job's master does not answer"
        return self._off

    def has_passed(self, stage: int) -> bool:
        """Whether all workers have come so far.

        After the last stage a master that is gone makes no difference: the mini-batch that this worker has done there
        took all of the others.
        """
        heard = self._heard.get("resize") or {}
        is_this = heard.get("generation") == self._resize.get("generation")
        if is_this and int(heard.get("passed") or 0) >= stage:
            return True
        is_away = time.monotonic() - self._answered_s > _AWAY_S
        return stage == RESTORED and is_away and self._resize.get("stage") == RESTORED


def master_of(environment: Mapping[str, str]) -> Optional[MasterLine]:
    """The line to the job's master, where that may change the number of workers; None for none."""
    if environment.get("GANDIVA_RESIZE") != "allow" or not environment.get("GANDIVA_AM_URL"):
        return None
    try:
        master: Master = master_at(environment)
    except NoRendezvous as error:
        say("never resized: {}".format(error))
        return None
    line = MasterLine(
        lambda said: master.call("/standing", said, lambda: False),
        environment.get("CONTAINER_ID", ""),
    )
    line.start()
    return line
