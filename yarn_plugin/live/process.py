"""The core process: what `gandiva core` puts together and runs."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from gandiva_core.config.keys import PREFIX
from gandiva_core.config.reading import environment_source, read_settings, unread_environment
from gandiva_core.config.settings import Settings
from gandiva_core.engine.engine import Engine
from gandiva_core.messages.operations import METHOD
from gandiva_core.model.cluster import Cluster
from gandiva_core.model.errors import InputError
from gandiva_core.model.units import ServerId
from gandiva_core.model.view import ClusterView
from gandiva_core.policies.gandiva import create
from gandiva_core.runtime.agentless import AgentlessWorld
from gandiva_core.runtime.clock import Clock, live_clock
from gandiva_core.runtime.housekeeping import Housekeeping, journal_chores
from gandiva_core.runtime.journal import FORMAT_VERSION, Ending, Header
from gandiva_core.runtime.lossy import LossyJournal
from gandiva_core.runtime.ports import World
from gandiva_core.runtime.segments import Retention, SegmentedJournal
from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.logs import logger
from yarn_plugin.agents.attendance import Attendance
from yarn_plugin.agents.port import AgentsPort, read_agents_port
from yarn_plugin.agents.server import AgentServer
from yarn_plugin.agents.world import AgentWorld
from yarn_plugin.bridge.asks import FIRST_MOVE_ID, FIRST_RESIZE_ID
from yarn_plugin.bridge.orders import OrderDesk
from yarn_plugin.bridge.register import Register
from yarn_plugin.bridge.resizes import ResizeDesk
from yarn_plugin.bridge.translate import Translator
from yarn_plugin.live.connection import (
    READ_S,
    GatewayUnreachableError,
    LiveGateway,
    SupersededError,
    serve,
)
from yarn_plugin.live.loop import CoreLoop
from yarn_plugin.live.parent import Parent
from yarn_plugin.live.servers import ServerRules
from yarn_plugin.operate.operations import Operations
from yarn_plugin.operate.service import OperateService

WITHOUT_AGENT = PREFIX + "oversubscribe-without-agent"


class Site(msgspec.Struct, frozen=True):
    """What the core takes from a site's files and its environment; mode and queues come from the ResourceManager.

    Attributes:
        agents: where agents dial in; None for no agents.
    """

    settings: Settings
    oversubscribes_without_agent: bool
    agents: AgentsPort | None = None


def decide(
    port: int,
    token_file: Path,
    journal_dir: Path | None,
    conf_dir: Path | None,
    lost_s_max: float | None = None,
    parent: Parent | None = None,
) -> None:
    """Decide for the ResourceManager behind a loopback port, until a signal ends it, or its parent's end does.

    Raises:
        InputError: files or environment that cannot be used.
        GatewayUnreachableError, SupersededError: as `serve`.
    """
    site = read_site(conf_dir)
    log = logger()
    unread = unread_environment(os.environ)
    if unread:
        log.warning("environment variables that nobody reads", names=unread)
    if site.oversubscribes_without_agent:
        log.warning("devices are shared and nothing suspends", key=WITHOUT_AGENT)
    connect = partial(LiveGateway.connect, port, token_file, READ_S)
    with stopped_by_signals() as stop, traced(log), opened(site, journal_dir) as loop:
        if parent is not None:
            parent.tie(stop)
        child_id = "" if parent is None else parent.child_id
        serve(connect, loop.turn, stop, log.info, lost_s_max=lost_s_max, managed=child_id)
        log.info("ended", events=loop.events)


@contextmanager
def traced(log: Any) -> Iterator[None]:
    """Bugs end the process, and the ResourceManager starts another; where each happened is logged once (case A08)."""
    try:
        yield
    except (InputError, GatewayUnreachableError, SupersededError):
        raise  # no bug, and told by the command
    except Exception as error:
        log.error("a bug ends this core", problem=str(error), exc_info=True)
        raise


def read_site(conf_dir: Path | None) -> Site:
    """Settings, and whether servers without an agent count as able to suspend.

    Raises:
        InputError: files or environment that cannot be used.
    """
    environment = environment_source(os.environ)
    if conf_dir is None:
        return Site(read_settings(environment), False)
    files = SiteConfiguration.load(conf_dir, os.environ)
    return Site(
        settings=read_settings(files.located(PREFIX), environment),
        oversubscribes_without_agent=files.flag(WITHOUT_AGENT, False),
        agents=read_agents_port(files),
    )


@contextmanager
def opened(site: Site, journal_dir: Path | None, clock: Clock | None = None) -> Iterator[CoreLoop]:
    """The loop with its engine; its journal is closed at the end, complete only where nothing was raised."""
    clock = clock or live_clock()
    policy = create(site.settings, {})
    engine = Engine(policy, site.settings)
    register = Register()
    translator = Translator(register, gang_wait_s=site.settings.gang_wait_s)
    journal = (
        None
        if journal_dir is None
        else LossyJournal(partial(open_journal, journal_dir, engine, site), logger().error)
    )
    chores = (
        nullcontext()
        if journal is None or journal_dir is None
        else Housekeeping(journal_chores(journal, journal_dir, Retention()))
    )
    is_complete = False
    try:
        desk = OrderDesk(register)
        # Masters may still know ids of an earlier core.
        desk.moves.next_id = FIRST_MOVE_ID + int(clock() * 1000)
        with chores, attended(site, desk, clock, engine.view) as outside:
            desk.resizes = outside.resizes
            yield CoreLoop(
                engine,
                translator,
                desk,
                outside.world,
                outside.rules,
                clock=clock,
                journal=journal,
                nodes=outside.attendance,
            )
        is_complete = True
    finally:
        if journal is not None:
            journal.close(Ending(is_complete, clock()))


class Outside(msgspec.Struct, frozen=True):
    """What a loop talks to besides the ResourceManager."""

    world: World
    rules: ServerRules
    attendance: Attendance | None = None
    resizes: ResizeDesk | None = None


@contextmanager
def attended(site: Site, desk: OrderDesk, clock: Clock, view: ClusterView) -> Iterator[Outside]:
    """The world, with agents and with people's commands where the site has a port for them."""
    port = site.agents
    if port is None:
        yield Outside(AgentlessWorld(), ServerRules(can_suspend=_judge(site, None)))
        return
    register = desk.register
    methods: dict[str, Any] = {}
    server = AgentServer(port.credentials, port.address, port.port, logger().info, methods)
    # A later core has a later epoch: agents refuse what an older one still sends.
    agents = AgentWorld(
        server, register, desk.moves, quantum_s=site.settings.quantum_s, epoch=int(clock() * 1000)
    )
    attendance = agents.attendance
    rules = ServerRules(can_suspend=_judge(site, attendance), lost_gpus=attendance.lost_gpus)
    first_id = FIRST_RESIZE_ID + int(clock() * 1000)  # masters may know those of an earlier core
    resizes = ResizeDesk(register, view, first_id, agents.reshaped)
    operations = Operations(agents, view, register, rules, attendance.nodes, resizes)
    if port.operations_secret:
        methods[METHOD] = OperateService(operations, port.operations_secret).handler()
    server.start()
    logger().info("agents may dial", address=port.address, port=server.port)
    try:
        yield Outside(operations, rules, attendance, resizes)
    finally:
        server.close()


def _judge(site: Site, nodes: Attendance | None) -> Callable[[ServerId], bool]:
    if nodes is None or site.oversubscribes_without_agent:
        return lambda _: site.oversubscribes_without_agent
    return nodes.can_suspend


def open_journal(folder: Path, engine: Engine, site: Site) -> SegmentedJournal:
    """The journal of this process, in segments behind those of earlier ones."""
    header = Header(
        format_version=FORMAT_VERSION,
        arm="gandiva",
        policy="gandiva",
        cluster=Cluster("live", ()),
        mechanisms=create(site.settings, {}).mechanisms,
        settings=site.settings.model_dump(),
        versions={"gandiva": version("gandiva-yarn")},
    )
    return SegmentedJournal(folder, header, engine.snapshot)


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """An event that SIGTERM sets, and Ctrl-C too; the turn that runs is finished first."""
    stop = threading.Event()

    def note(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
