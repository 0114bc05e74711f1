"""From what was asked for to the runs to be made: what can be wrong with the input is found here, before any runs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from gandiva_core.config.keys import PREFIX
from gandiva_core.config.reading import Located, environment_source, read_settings
from gandiva_core.config.settings import Settings
from gandiva_core.model.cluster import Cluster
from gandiva_core.model.errors import InputError
from gandiva_core.replay.arms import create_policy, parse_arms
from gandiva_core.replay.details import Surroundings
from gandiva_core.replay.planning import DEFAULT_QUEUE, Plan, Shape, plan
from gandiva_core.replay.provenance import commit, digest, file_digest
from gandiva_core.replay.run import RunOrder, engine
from gandiva_core.replay.traces import registry, synthesis
from gandiva_core.replay.traces.clusters import load_cluster
from gandiva_core.replay.traces.models import profile_of
from gandiva_core.replay.traces.reading import ReadOptions
from gandiva_core.replay.traces.records import Trace
from gandiva_core.runtime.ports import Arm
from gandiva_core.site.baseline import check_site, require_valid_baseline
from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.queues import leaves, read_queues
from gandiva_core.site.shares import gpu_limits

DEFAULT_CLUSTER = "gandiva-100"
"""For a trace that brings no cluster."""

BUILT_IN = "built-in"
QUEUE_FILE = "capacity-scheduler.xml"
HEIGHT_KEY = PREFIX + "height.max"


class Request(msgspec.Struct, frozen=True):
    """What `gandiva replay` was asked for.

    Attributes:
        trace, cluster: a built-in name or a file; no cluster takes the trace's own.
        seeds: distinct, at least one.
        shapes: distinct, at least one.
        conf_dir: a site's own Hadoop files.
        height_max: over what the site's files say.
        environment: where `GANDIVA_*` settings are looked up.
    """

    trace: str
    arms: str
    engine: str
    seeds: tuple[int, ...]
    shapes: tuple[Shape, ...]
    out: Path
    cluster: str | None = None
    conf_dir: Path | None = None
    height_max: int | None = None
    read_options: ReadOptions = ReadOptions()
    format_name: str | None = None
    environment: Mapping[str, str] = {}


class Prepared(msgspec.Struct, frozen=True):
    """Runs to be made.

    Attributes:
        orders: by shape, then seed, then arm: those compared with each other stand together.
        findings: what is wrong with the input and does not stop it, a line each, for the terminal.
    """

    orders: tuple[RunOrder, ...]
    findings: tuple[str, ...]


class _Loaded(msgspec.Struct, frozen=True):
    trace: Trace
    sha256: str
    findings: tuple[str, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self.findings, *self.trace.notes)


class _Site(msgspec.Struct, frozen=True):
    settings: Settings
    cluster: Cluster
    queues_digest: str
    notes: tuple[str, ...]
    leaves: frozenset[str] | None = None


def prepare(request: Request) -> Prepared:
    """Read everything and plan every run.

    Raises:
        InputError: whatever is wrong with arms, engine, trace, cluster, configuration or baseline.
    """
    arms = parse_arms(request.arms)
    engine(request.engine)
    check_out(request.out)
    loaded = {seed: load(request, seed) for seed in request.seeds}
    first = loaded[request.seeds[0]].trace
    base = load_cluster(request.cluster or first.cluster_name or DEFAULT_CLUSTER)
    site = site_of(request, base, any(arm.is_stock for arm in arms))
    for arm in arms:
        if not arm.is_stock:
            create_policy(arm, site.settings)  # an unknown switch is refused before anything runs
    check_default_queue((each.trace for each in loaded.values()), site)
    orders = [
        order
        for shape in request.shapes
        for seed in request.seeds
        for order in orders_of(request, arms, loaded[seed], seed, shape, site)
    ]
    notes = [*site.notes, *(note for each in loaded.values() for note in each.notes)]
    if request.cluster is None and first.cluster_name is None:
        notes.append(f"The trace names no cluster: {DEFAULT_CLUSTER} was taken.")
    if len(request.seeds) > 1 and request.trace not in synthesis.GENERATORS:
        notes.append("The trace is a file, the same for every seed: seeds differ in nothing.")
    told = tuple(dict.fromkeys(notes))
    found = [finding for each in loaded.values() for finding in each.findings]
    found += [note for order in orders for note in order.plan.notes]
    return Prepared(
        orders=tuple(msgspec.structs.replace(order, notes=told) for order in orders),
        findings=tuple(dict.fromkeys([*site.notes, *found])),
    )


def check_out(out: Path) -> None:
    """Make the output folder.

    Raises:
        InputError: where something else stands there, or it cannot be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        found = error.strerror or "cannot be made"
        raise InputError(f"--out {error.filename}", found, "a folder to write to") from error
    if not os.access(out, os.W_OK | os.X_OK):
        raise InputError(f"--out {out}", "not writable", "a folder to write to")


def load(request: Request, seed: int) -> _Loaded:
    """The trace for one seed; what was found in a file is told in notes."""
    if request.trace in synthesis.GENERATORS:
        trace = registry.load(request.trace, seed=seed)
        told: Sequence[str] = ()
    else:
        path = Path(request.trace)
        check_trace_path(request.trace, path)
        reading = registry.read(path, format_name=request.format_name, options=request.read_options)
        trace, told = reading.trace, reading.report()
    return _Loaded(trace, digest(trace.jobs), tuple(told))


def check_trace_path(text: str, path: Path) -> None:
    """A word that is neither a file nor a built-in name: say which names there are."""
    if not path.exists() and "/" not in text and "." not in text:
        names = ", ".join(synthesis.GENERATORS)
        raise InputError("TRACE", repr(text), f"a trace file or one of {names}")


def site_of(request: Request, base: Cluster, has_stock: bool) -> _Site:
    """Settings, and the cluster with the site's queues, from the site's files, environment and flags.

    Raises:
        InputError: also where a stock arm would be no valid baseline under these files.
    """
    sources: list[Mapping[str, Located]] = [environment_source(request.environment)]
    if request.height_max is not None:
        sources.append({HEIGHT_KEY: Located(str(request.height_max), "--height-max")})
    if request.conf_dir is None:
        return _Site(read_settings(*sources), base, BUILT_IN, ())
    site = SiteConfiguration.load(request.conf_dir, request.environment)
    if has_stock:
        require_valid_baseline(site)
    gpus: Counter[str] = Counter()
    for server in base.servers:
        gpus[server.partition] += server.gpus
    notes = tuple(str(finding) for finding in check_site(site, gpus))
    tree = read_queues(site)
    return _Site(
        settings=read_settings(site.located(PREFIX), *sources),
        cluster=msgspec.structs.replace(base, queues=gpu_limits(tree, gpus)),
        queues_digest=file_digest(request.conf_dir / QUEUE_FILE) or "no queue file",
        notes=notes,
        leaves=frozenset(queue.path for queue in leaves(tree)),
    )


def check_default_queue(traces: Iterable[Trace], site: _Site) -> None:
    """Jobs without a queue of their own go to `root.default`: it must be a leaf of the site's tree.

    Raises:
        InputError: naming the first such job.
    """
    if site.leaves is None or str(DEFAULT_QUEUE) in site.leaves:
        return
    for trace in traces:
        job_id = next((job.job_id for job in trace.jobs if not job.queue), None)
        if job_id is not None:
            found = f"no queue for job {job_id}, and no {DEFAULT_QUEUE} in {QUEUE_FILE}"
            expected = f"a column queue with one of {', '.join(sorted(site.leaves))}"
            raise InputError(f"trace {trace.name}", found, expected)


def orders_of(
    request: Request,
    arms: Sequence[Arm],
    loaded: _Loaded,
    seed: int,
    shape: Shape,
    site: _Site,
) -> list[RunOrder]:
    """One order an arm; all share one plan, so that every arm is given the very same jobs."""
    height_max = site.settings.height_max
    planned = plan(loaded.trace, site.cluster, shape, height_max, profile_of)
    earlier = {f"trace: {kind}": count for kind, count in loaded.trace.left_out.items()}
    planned = msgspec.structs.replace(planned, left_out={**earlier, **planned.left_out})
    around = surroundings_of(request, loaded.trace, planned, site)
    return [
        RunOrder(
            arm=arm,
            engine=request.engine,
            seed=seed,
            plan=planned,
            cluster=site.cluster,
            settings=site.settings,
            surroundings=around,
            trace_sha256=loaded.sha256,
            commit=commit(),
            out=str(request.out),
            position=position,
            conf_dir=None if request.conf_dir is None else str(request.conf_dir),
        )
        for position, arm in enumerate(arms)
    ]


def surroundings_of(request: Request, trace: Trace, planned: Plan, site: _Site) -> Surroundings:
    """What arms must share to be compared."""
    by_type: Counter[str] = Counter()
    for server in site.cluster.servers:
        by_type[server.accelerator_type] += server.gpus
    return Surroundings(
        trace=trace.name,
        trace_source=trace.source,
        trace_digest=digest(planned.jobs),
        cluster=site.cluster.name,
        cluster_digest=digest(site.cluster.servers),
        servers=len(site.cluster.servers),
        gpus=site.cluster.gpus,
        gpus_by_type=dict(by_type),
        queues_digest=site.queues_digest,
        engine=request.engine,
        height_max=site.settings.height_max,
    )
