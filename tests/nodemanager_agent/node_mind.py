"""A controller without sockets: launchers that answer when told, and a clock that is set by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gandiva_core.messages import agents as a
from nodemanager_agent.controller import Controller, Identity, Surroundings
from nodemanager_agent.devices.virtual import VirtualDevices
from nodemanager_agent.ports import Admitted, Ports, Registration
from nodemanager_agent.profiler import Sample, Seen
from nodemanager_agent.state import StateFile


class Mind:
    """One controller with its surroundings.

    Attributes:
        sent: (container, op, values) to launchers, in order.
        reports: to the core.
        log: (level, text, values).
        alive: processes that are there; left: those that containers leave behind.
    """

    def __init__(self, folder: Path, gpus: int = 2) -> None:
        self.folder = folder
        self.gpus = gpus
        self.now_s = 100.0
        self.sent: list[tuple[str, str, dict[str, Any]]] = []
        self.reports: list[a.Report] = []
        self.log: list[tuple[str, str, dict[str, Any]]] = []
        self.alive: set[int] = set()
        self.left: dict[str, frozenset[int]] = {}
        self.message_id = 0
        self.controller = self.start()

    def start(self) -> Controller:
        """The agent, another time too."""
        devices = VirtualDevices(self.gpus)
        surroundings = Surroundings(
            lambda pid, _: pid in self.alive,
            lambda worker, gpus: self.left.get(worker.container_id, frozenset()),
            self.folder / "ram",
            unhooked_after_s=30.0,
        )
        ports = Ports(
            self, self.reports.append, self._say, lambda: self.now_s, lambda: 1e9 + self.now_s
        )
        self.controller = Controller(
            Identity("n:1", "s", "0"),
            devices,
            devices.measure(),
            surroundings,
            StateFile(self.folder / "state"),
            ports,
        )
        return self.controller

    def send(self, container_id: str, op: str, **values: Any) -> bool:
        """As `Launchers`."""
        self.sent.append((container_id, op, values))
        return True

    def _say(self, level: str, text: str, **values: Any) -> None:
        self.log.append((level, text, values))

    def register(self, name: str, pid: int, state: str = "waiting", **more: Any) -> Any:
        """A launcher comes up."""
        self.alive.add(pid)
        registration = Registration(name, pid, 0, 1, name, state=state, **more)
        admission = self.controller.desk.admit(registration)
        if isinstance(admission, Admitted):
            self.controller.desk.registered(registration)
        return admission

    def expect(self, *workers: a.Expected) -> None:
        """The core's list."""
        self.message_id += 1
        self.controller.core_said(a.Expect(1, self.message_id, workers))

    def switch(
        self,
        suspend: tuple[str, ...] = (),
        run: tuple[a.RunWorker, ...] = (),
        limit_s: float = 10.0,
    ) -> None:
        """A switch."""
        self.message_id += 1
        self.controller.core_said(
            a.SwitchWorkers(1, self.message_id, self.message_id, suspend, run, limit_s)
        )

    def command(self, make: Any) -> None:
        """Any other command, made with epoch and id."""
        self.message_id += 1
        self.controller.core_said(make(1, self.message_id))

    def answer(self, name: str, op: str = "done", **values: Any) -> None:
        """The launcher answers the last order that it was sent."""
        key = next(v["id"] for c, _, v in reversed(self.sent) if c == name and "id" in v)
        self.controller.desk.launcher_said(name, {"op": op, "id": key, **values})

    def running(self, *names: str) -> None:
        """These run, each on a device of its own."""
        self.expect(*(a.Expected(name, name, 1, user="ann") for name in names))
        for gpu, name in enumerate(names):
            self.register(name, 1000 + gpu)
            self.switch(run=(a.RunWorker(name, (gpu,)),))
            self.answer(name)
            self.progress(name, state="running", method="framework")

    def progress(self, name: str, **values: Any) -> None:
        """The launcher tells."""
        self.controller.desk.launcher_said(name, {"op": "progress", **values})

    def sample(self, *names: str) -> None:
        """Processes of these containers are seen."""
        devices = VirtualDevices(self.gpus).measure()
        self.controller.sampled(Sample(devices, {name: Seen(1) for name in names}, 0.5))

    def after(self, passed_s: float) -> None:
        """Time passes."""
        self.now_s += passed_s
        self.controller.tick()

    def state(self, name: str) -> str:
        """Of a worker."""
        return str(self.controller.roster.workers[name].state)

    def held(self, name: str) -> tuple[int, ...]:
        """Its devices."""
        return self.controller.binding.held_by(name)

    def switched(self) -> a.Switched:
        """The last answer to a switch."""
        return next(e for e in reversed(self.reports) if isinstance(e, a.Switched))

    def answered(self) -> a.Answered:
        """The last answer to another command."""
        return next(e for e in reversed(self.reports) if isinstance(e, a.Answered))
