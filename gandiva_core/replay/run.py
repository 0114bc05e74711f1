"""One run: one arm, one shape, one seed; from an order to a journal and its figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import msgspec

from gandiva_core.config.settings import Settings
from gandiva_core.engine.engine import Engine
from gandiva_core.messages.policy import Policy, Scheduler
from gandiva_core.model.cluster import Cluster
from gandiva_core.model.errors import InputError
from gandiva_core.replay import details
from gandiva_core.replay.arms import create_policy
from gandiva_core.replay.details import RunDetails, Surroundings
from gandiva_core.replay.metrics import MetricsCollector
from gandiva_core.replay.planning import Plan
from gandiva_core.replay.provenance import versions
from gandiva_core.runtime.driver import Driver, Progress
from gandiva_core.runtime.journal import (
    FORMAT_VERSION,
    Ending,
    Entry,
    Header,
    JournalFile,
    JournalJob,
    ReplayJournal,
)
from gandiva_core.runtime.observer import StockObserver
from gandiva_core.runtime.ports import Arm, OpenedSubstrate, RunSetup, SubstrateFactory
from gandiva_core.sim.world import JobWorld

ENGINE_GROUP = "gandiva.engines"
"""Entry point group of engines: name → SubstrateFactory."""

LOGS_FOLDER = "logs"

Report = Callable[[int, int, float], None]
"""Told (jobs done, jobs, virtual time in s) now and then."""


class RunOrder(msgspec.Struct, frozen=True):
    """Everything a run needs, so that it can be sent to a process of its own.

    Attributes:
        trace_sha256: over the trace's jobs as read, whatever their shape.
        surroundings: what the arms of a comparison share.
        notes: sentences for the report's reader about how this run came to be.
        out: the output folder.
        position: of the arm among those asked for together, from 0.
    """

    arm: Arm
    engine: str
    seed: int
    plan: Plan
    cluster: Cluster
    settings: Settings
    surroundings: Surroundings
    trace_sha256: str
    commit: str
    out: str
    position: int = 0
    conf_dir: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Unique in an experiment, and the stem of its files."""
        return details.run_name(self.arm.name, self.plan.shape, self.seed)


def engine(name: str) -> SubstrateFactory:
    """The engine of a name.

    Raises:
        InputError: unknown, or its parts are not installed.
    """
    found = {entry.name: entry for entry in entry_points(group=ENGINE_GROUP)}
    if name not in found:
        raise InputError("--engine", repr(name), f"one of {', '.join(sorted(found))}")
    try:
        factory: SubstrateFactory = found[name].load()
    except (ImportError, AttributeError) as error:
        expected = "an engine whose parts are installed: pip install 'gandiva-yarn[replay]'"
        raise InputError("--engine", f"{name!r}: {error}", expected) from error
    return factory


class KeptJournal:
    """A journal sink that still knows its file when the driver was interrupted."""

    def __init__(self, journal: ReplayJournal) -> None:
        self.write: Callable[[Entry], None] = journal.write
        self._journal = journal
        self.file: JournalFile | None = None

    def close(self, ending: Ending) -> JournalFile:
        """Close, and keep what was written."""
        self.file = self._journal.close(ending)
        return self.file


def run_one(order: RunOrder, report: Report = lambda _done, _jobs, _now_s: None) -> Path:
    """Play one run and return the path of its details.

    Interrupted (Ctrl-C), it still leaves a journal and details, marked incomplete, of what was played.

    Raises:
        InputError: the engine cannot run this arm, or the input is bad.
        KeyboardInterrupt: where it was interrupted before anything was played.
    """
    started_s = time.monotonic()
    policy = None if order.arm.is_stock else create_policy(order.arm, order.settings)
    out = Path(order.out)
    opened = open_substrate(order, out)
    try:
        header = header_of(order, policy, opened)
        collector = collector_of(header)
        journal = KeptJournal(open_journal(order, out, header))
    except BaseException:
        opened.substrate.close()
        raise
    driver = Driver(
        JobWorld(order.plan.jobs, order.cluster.servers, seed=order.seed),
        opened.substrate,
        scheduler_of(order, policy),
        journal=journal,
        observers=[collector.observe],
        trailer=lambda: trailer_of(collector),
        progress=progress_of(report),
        jobs_total=len(order.plan.jobs),
    )
    is_complete = False
    try:
        driver.run()
        is_complete = True
    except KeyboardInterrupt:
        if journal.file is None:
            raise
    assert journal.file is not None
    wall_s = time.monotonic() - started_s
    result = details_of(order, header, collector, journal.file, is_complete, wall_s)
    return details.write(result, out)


def progress_of(report: Report) -> Callable[[Progress], None]:
    """The driver's progress as plain numbers."""
    return lambda at: report(at.jobs_done, at.jobs_total, at.now_s)


def open_substrate(order: RunOrder, out: Path) -> OpenedSubstrate:
    """The engine's substrate for this arm."""
    work_dir = out / LOGS_FOLDER / order.name
    work_dir.mkdir(parents=True, exist_ok=True)
    return engine(order.engine)(
        RunSetup(
            arm=order.arm,
            cluster=order.cluster,
            seed=order.seed,
            height_max=1 if order.arm.is_stock else order.settings.height_max,
            work_dir=str(work_dir),
            conf_dir=order.conf_dir,
        )
    )


def scheduler_of(order: RunOrder, policy: Policy | None) -> Scheduler:
    """Who decides: the engine with its policy, or, where the substrate does, an observer that binds devices."""
    if policy is None:
        return StockObserver()
    return Engine(policy, order.settings)


def header_of(order: RunOrder, policy: Policy | None, opened: OpenedSubstrate) -> Header:
    """The journal's first line; nothing in it differs between two equal runs."""
    short_name = opened.scheduler_class.rpartition(".")[2]
    return Header(
        format_version=FORMAT_VERSION,
        arm=order.arm.name,
        policy=short_name if policy is None else order.arm.base,
        cluster=order.cluster,
        is_stock=order.arm.is_stock,
        switches=order.arm.switches,
        mechanisms=() if policy is None else tuple(policy.mechanisms),
        settings=settings_of(order.settings),
        seed=order.seed,
        trace=order.surroundings.trace,
        trace_sha256=order.trace_sha256,
        shape=order.plan.shape,
        engine=order.engine,
        scheduler_class=opened.scheduler_class,
        jobs=tuple(
            JournalJob(
                job_id=job.spec.job_id,
                gpus=job.spec.gpus,
                arrival_s=job.arrival_s,
                name=job.spec.name,
                model=job.spec.model,
                utilisation_ratio=job.profile.utilisation_ratio,
            )
            for job in order.plan.jobs
        ),
        left_out=order.plan.left_out,
        versions={**versions(), **opened.versions},
        commit=order.commit,
    )


def settings_of(settings: Settings) -> Mapping[str, float]:
    """Settings that are numbers."""
    values: Mapping[str, Any] = settings.model_dump()
    return {key: float(value) for key, value in values.items() if isinstance(value, int | float)}


def collector_of(header: Header) -> MetricsCollector:
    """The collector for a journal, from its first line alone."""
    return MetricsCollector(
        header.cluster.servers,
        {job.job_id: job.utilisation_ratio for job in header.jobs},
        header.is_stock,
    )


def trailer_of(collector: MetricsCollector) -> Mapping[str, Any]:
    """The figures for the journal's last line; ends the collector's books."""
    collector.close()
    figures: Mapping[str, Any] = msgspec.to_builtins(collector.figures())
    return figures


def open_journal(order: RunOrder, out: Path, header: Header) -> ReplayJournal:
    """The journal's file, with its header."""
    folder = out / details.JOURNALS_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    return ReplayJournal(folder / f"{order.name}.jsonl.zst", header)


def details_of(
    order: RunOrder,
    header: Header,
    collector: MetricsCollector,
    file: JournalFile,
    is_complete: bool,
    wall_s: float,
) -> RunDetails:
    """What the report is made from."""
    return RunDetails(
        format=details.FORMAT,
        arm=order.arm.name,
        position=order.position,
        is_stock=order.arm.is_stock,
        mechanisms=header.mechanisms,
        scheduler_class=header.scheduler_class,
        shape=header.shape,
        seed=order.seed,
        surroundings=order.surroundings,
        settings=header.settings,
        commit=order.commit,
        versions=header.versions,
        is_complete=is_complete,
        wall_s=wall_s,
        journal=f"{details.JOURNALS_FOLDER}/{Path(file.path).name}",
        journal_sha256=file.sha256,
        figures=collector.figures(),
        course=collector.course(),
        refused=collector.refused(),
        left_out=order.plan.left_out,
        notes=(*order.notes, *order.plan.notes),
        jobs=collector.records(),
    )
