"""The agent process: one event loop that joins launchers, core, samples and time."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

import psutil

from gandiva_core.messages.agents import Command, Report, WorkerState
from gandiva_core.site.logs import logger
from nodemanager_agent.controller import Controller, Identity, Surroundings
from nodemanager_agent.devices import Devices
from nodemanager_agent.devices.nvml import NvmlDevices
from nodemanager_agent.devices.virtual import Headroom, VirtualDevices
from nodemanager_agent.health import HealthFile
from nodemanager_agent.holders import left_behind
from nodemanager_agent.own_core import DeskWithoutCore, OwnCore
from nodemanager_agent.ports import CoreLine, Ports
from nodemanager_agent.processes import is_alive
from nodemanager_agent.profiler import Profiler, Sample
from nodemanager_agent.settings import AgentSettings
from nodemanager_agent.sockets import Desk, LauncherSockets
from nodemanager_agent.state import StateFile
from nodemanager_agent.transport import CoreStream

TICK_S = 0.1
MIB = 1024 * 1024


class Agent:
    """All parts of one agent; `run` until a signal ends it. Jobs run on without it.

    Raises:
        InputError: devices, folders or addresses that cannot be used.
    """

    def __init__(self, settings: AgentSettings) -> None:
        self._settings = settings
        self._say = speaker(logger())
        self._devices = open_devices(settings)
        state = StateFile(settings.state_dir)
        self._sockets = LauncherSockets(settings.socket, settings.is_open, self._say)
        self._core: CoreLine | None = None
        self._health = HealthFile(settings.state_dir)
        self._headroom = Headroom(settings.state_dir / "headroom.json")
        ports = Ports(self._sockets, self._report, self._say, time.monotonic, time.time)
        self.controller = Controller(
            _identity(settings),
            self._devices,
            self._devices.measure(),
            Surroundings(
                is_alive,
                partial(left_behind, self._devices, self._live_launchers),
                settings.ram_dir,
                settings.unhooked_after_s,
            ),
            state,
            ports,
        )

    async def run(self) -> None:
        """Until SIGTERM or SIGINT."""
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        desk: Desk = self.controller.desk
        if self._settings.core is None:
            own = OwnCore(self.controller.hello, self._told)
            self._core, desk = own, DeskWithoutCore(desk, own)
        else:
            address = self._settings.core
            self._core = CoreStream(address, self.controller.hello, self._told, self._say)
        await self._sockets.start(desk)
        profiler = Profiler(self._devices, partial(_hand_over, loop, self._sampled))
        profiler.start()
        self._say("info", "ready", node=self._settings.node, socket=str(self._settings.socket))
        parts: list[asyncio.Task[None]] = [
            asyncio.create_task(part) for part in (self._core.run(), self._keep_time())
        ]
        waiting = asyncio.create_task(_wait(stop))
        try:
            await asyncio.wait([*parts, waiting], return_when=asyncio.FIRST_COMPLETED)
            for part in parts:
                if part.done():
                    part.result()
        finally:
            for part in (*parts, waiting):
                part.cancel()
            await asyncio.gather(*parts, waiting, return_exceptions=True)
            await asyncio.to_thread(profiler.close)
            await self._sockets.close()
            self.controller.tick()
            self._devices.close()

    async def _keep_time(self) -> None:
        beat_s = time.monotonic()
        while True:
            await asyncio.sleep(TICK_S)
            self.controller.tick()
            if time.monotonic() >= beat_s:
                beat_s = time.monotonic() + self.controller.report_s
                self.controller.beat()
                self._health.write(time.time(), self.controller.inventory.devices())
            if self.controller.take_change():
                self._report(self.controller.measured())

    def _told(self, command: Command) -> None:
        self.controller.core_said(command)

    def _report(self, report: Report) -> None:
        if self._core is not None:
            self._core.send(report)

    def _sampled(self, sample: Sample) -> None:
        self.controller.sampled(sample)
        workers = self.controller.roster.workers.values()
        if self._settings.virtual_gpus and any(w.state is WorkerState.RUNNING for w in workers):
            with contextlib.suppress(OSError):
                self._headroom.add(sample.idle_ratio)

    def _live_launchers(self) -> frozenset[int]:
        workers = self.controller.roster.workers.values()
        return frozenset(w.pid for w in workers if w.pid and w.state is not WorkerState.ENDED)


def open_devices(settings: AgentSettings) -> Devices:
    """Virtual ones where they are asked for, else the machine's."""
    if not settings.virtual_gpus:
        return NvmlDevices(settings.allowed)
    return VirtualDevices(
        settings.virtual_gpus,
        settings.virtual_memory_mib,
        settings.virtual_step_s,
        (settings.socket, 0o666 if settings.is_open else 0o600),
    )


def speaker(log: Any) -> Callable[..., None]:
    """Writes to a log; called with level, text and values."""

    def say(level: str, text: str, **values: Any) -> None:
        getattr(log, level)(text, **values)

    return say


def _identity(settings: AgentSettings) -> Identity:
    memory_mib = int(psutil.virtual_memory().total) // MIB
    return Identity(settings.node, secrets.token_hex(8), version("gandiva-yarn"), memory_mib)


def _hand_over(
    loop: asyncio.AbstractEventLoop, told: Callable[[Sample], None], sample: Sample
) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is over
        loop.call_soon_threadsafe(told, sample)


async def _wait(stop: asyncio.Event) -> None:
    await stop.wait()
