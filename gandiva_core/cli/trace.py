"""`gandiva trace`: look at workloads, turn them into our own format, make them, and calibrate the nine-day one."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from gandiva_core.cli.listing import Format, listing
from gandiva_core.cli.main import ExitCode, complain
from gandiva_core.cli.outputs import check_file
from gandiva_core.model.errors import InputError
from gandiva_core.replay.planning import Shape
from gandiva_core.replay.traces.findings import OnBad
from gandiva_core.replay.traces.reading import ArrivalRule, GpusFrom, ReadOptions

if TYPE_CHECKING:
    from gandiva_core.model.cluster import Cluster
    from gandiva_core.replay.traces.calibrate import CapacityArm, Trial
    from gandiva_core.replay.traces.reading import Reading
    from gandiva_core.replay.traces.records import Trace

app = typer.Typer(
    no_args_is_help=True, help="Workloads: check, convert, describe, make, calibrate."
)

STDOUT = Path("-")

FileArgument = Annotated[Path, typer.Argument(help="A trace file in any known format.")]
TraceArgument = Annotated[
    str, typer.Argument(help="A trace file, or gandiva-9d, gandiva-3h, gandiva-180.")
]
FormatOption = Annotated[
    str | None,
    typer.Option("--format", "--trace-format", help="The file's format; default: detected."),
]
OnBadOption = Annotated[
    OnBad, typer.Option(help="Faulty rows: limit refuses above 1 %, skip never, fail at once.")
]
ThroughputsOption = Annotated[
    Path | None, typer.Option(help="Gavel throughput JSON: turns steps into run times.")
]
TypeOption = Annotated[str, typer.Option(help="Accelerator type of --throughputs to go by.")]
MachinesOption = Annotated[
    Path | None, typer.Option(help="Philly machine list; default: the one beside the log.")
]
GpusFromOption = Annotated[
    GpusFrom | None, typer.Option(help="Whom to believe where machine list and log differ.")
]
VcGpusOption = Annotated[
    Path | None, typer.Option(help="Helios cluster_gpu_number.csv; default: the one beside it.")
]
ArrivalsOption = Annotated[
    ArrivalRule | None, typer.Option(help="Alibaba: arrivals for a file without creation times.")
]
JoinOption = Annotated[
    Path | None, typer.Option(help="CSV with name and creation_time, for --arrivals joined.")
]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of a built-in trace.")]


@app.command()
def validate(
    file: FileArgument,
    *,
    trace_format: FormatOption = None,
    on_bad: OnBadOption = OnBad.LIMIT,
    throughputs: ThroughputsOption = None,
    reference_type: TypeOption = "v100",
    machines: MachinesOption = None,
    gpus_from: GpusFromOption = None,
    vc_gpus: VcGpusOption = None,
    arrivals: ArrivalsOption = None,
    join: JoinOption = None,
) -> None:
    """Check a trace file: one line a kind of finding, with place, first lines and count.

    Exit code 0: usable. 1: more faulty rows than --on-bad allows. 3: not usable as a whole.
    """
    from gandiva_core.replay.traces import registry

    options = ReadOptions(
        on_bad, throughputs, reference_type, machines, gpus_from, vc_gpus, arrivals, join
    )
    reading, tally = registry.examine(file, format_name=trace_format, options=options)
    for line in described(reading):
        typer.echo(line)
    try:
        tally.refuse_above_limit(reading.rows)
    except InputError as error:
        complain(f"error: {error}")
        raise typer.Exit(ExitCode.CHECK_FAILED) from error


@app.command()
def convert(
    file: FileArgument,
    out: Annotated[Path, typer.Argument(help="The new file; - for stdout.")] = STDOUT,
    *,
    trace_format: FormatOption = None,
    on_bad: OnBadOption = OnBad.LIMIT,
    throughputs: ThroughputsOption = None,
    reference_type: TypeOption = "v100",
    machines: MachinesOption = None,
    gpus_from: GpusFromOption = None,
    vc_gpus: VcGpusOption = None,
    arrivals: ArrivalsOption = None,
    join: JoinOption = None,
) -> None:
    """Turn a trace file into our own CSV."""
    from gandiva_core.replay.traces import registry

    options = ReadOptions(
        on_bad, throughputs, reference_type, machines, gpus_from, vc_gpus, arrivals, join
    )
    reading = registry.read(file, format_name=trace_format, options=options)
    for line in reading.report():
        complain(line)
    put(reading.trace, out)


@app.command()
def stats(
    trace: TraceArgument,
    *,
    cluster: Annotated[
        str | None, typer.Option(help="A cluster file or name; default: the trace's own.")
    ] = None,
    seed: SeedOption = 1,
    trace_format: FormatOption = None,
    on_bad: OnBadOption = OnBad.LIMIT,
    throughputs: ThroughputsOption = None,
    reference_type: TypeOption = "v100",
    as_json: Annotated[bool, typer.Option("--json", help="For programs; times in s.")] = False,
) -> None:
    """Describe a trace: jobs, span, sizes, run times, demand, and load of a cluster."""
    from gandiva_core.replay.traces import registry, synthesis
    from gandiva_core.replay.traces.clusters import load_cluster
    from gandiva_core.replay.traces.workload_figures import figures_of

    if trace in synthesis.GENERATORS:
        loaded = registry.load(trace, seed=seed)
    else:
        options = ReadOptions(on_bad=on_bad, throughputs=throughputs, reference_type=reference_type)
        reading = registry.read(Path(trace), format_name=trace_format, options=options)
        for line in reading.report():
            complain(line)
        loaded = reading.trace
    named = cluster or loaded.cluster_name
    gpus = load_cluster(named).gpus if named else None
    figures = figures_of(loaded, gpus)
    if as_json:
        typer.echo(json.dumps(msgspec.to_builtins(figures, str_keys=True), indent=2))
        return
    rows = [*figures.table(named), *(("note", note) for note in loaded.notes)]
    typer.echo(listing(("figure", "value"), rows, Format.WIDE))


@app.command()
def synth(
    name: Annotated[str, typer.Argument(help="gandiva-9d, gandiva-3h or gandiva-180.")],
    out: Annotated[Path, typer.Argument(help="The new file; - for stdout.")] = STDOUT,
    *,
    seed: SeedOption = 1,
) -> None:
    """Make a built-in trace: the same seed gives the same bytes."""
    from gandiva_core.replay.traces import synthesis

    put(synthesis.make(name, seed), out)


@app.command()
def formats(
    form: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.TABLE,
) -> None:
    """List the formats that can be read."""
    from gandiva_core.replay.traces import registry

    rows = [(each.name, each.summary) for each in registry.FORMATS]
    typer.echo(listing(("format", "what it is"), rows, form))


@app.command()
def calibrate(
    *,
    engine: Annotated[
        str, typer.Option(help="sim: the model of the stock scheduler; yarn: Hadoop's own.")
    ] = "sim",
    shape: Annotated[
        Shape, typer.Option(help="The shape the stock arm does better with.")
    ] = Shape.SERVER,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Seeds 1 to this number.")] = 5,
    trials: Annotated[
        int, typer.Option(min=1, help="Laws to try; 1 only checks the one in use.")
    ] = 1,
    search_seed: Annotated[int, typer.Option(min=0, help="Seed of the search itself.")] = 1,
) -> None:
    """Find, or check, the parameters of gandiva-9d that are not published.

    Looks at the capacity arm only: mean JCT 832 min and makespan 13,371 min, mean over the seeds
    and seed 1 alone within 5 %. Exit code 1 where the best law tried misses that.
    """
    from gandiva_core.replay.traces.calibrate import Calibration, Target, is_met
    from gandiva_core.replay.traces.clusters import load_cluster
    from gandiva_core.replay.traces.nine_days import NINE_DAYS

    target = Target()
    best: Trial | None = None
    with TemporaryDirectory(prefix="gandiva-calibrate-") as work_dir:
        arm = capacity_arm(engine, shape, work_dir)
        search = Calibration(arm, load_cluster("gandiva-100"), range(1, seeds + 1), target)
        for best in search.search(NINE_DAYS, trials, search_seed):
            complain(f"miss {best.error:.1%}: {msgspec.json.encode(best.law).decode()}")
    assert best is not None  # the law in use is always tried
    rows = [
        (str(seed), f"{jct_s / 60:.0f}", f"{makespan_s / 60:.0f}")
        for seed, (jct_s, makespan_s) in enumerate(best.outcomes, 1)
    ]
    jct_s, makespan_s = best.means_s
    rows += [
        ("mean", f"{jct_s / 60:.0f}", f"{makespan_s / 60:.0f}"),
        ("target", f"{target.mean_jct_s / 60:.0f}", f"{target.makespan_s / 60:.0f}"),
    ]
    typer.echo(listing(("seed", "mean jct min", "makespan min"), rows, Format.WIDE))
    typer.echo(f"law: {msgspec.json.encode(best.law).decode()}")
    if not is_met(best, target):
        raise typer.Exit(ExitCode.CHECK_FAILED)


def capacity_arm(engine_name: str, shape: Shape, work_dir: str) -> CapacityArm:
    """The arm ``capacity`` of an engine, found by its entry point.

    Raises:
        InputError: there is no such engine.
    """
    from gandiva_core.replay.run import engine
    from gandiva_core.replay.stock_arm import play_stock

    factory = engine(engine_name)

    def play(trace: Trace, cluster: Cluster) -> tuple[float, float]:
        outcome = play_stock(trace, cluster, shape, factory, work_dir)
        return outcome.mean_jct_s, outcome.makespan_s

    return play


def described(reading: Reading) -> list[str]:
    """What `validate` says: a summary line, then findings, then notes."""
    trace = reading.trace
    gone = sum(trace.left_out.values())
    head = f"{reading.place}: format {reading.format_name}, {len(trace.jobs)} of {reading.rows} rows are jobs"
    head += f", {gone} left out" if gone else ""
    notes = [f"{reading.place}: note: {note}" for note in trace.notes]
    return [head, *reading.report(), *notes]


def put(trace: Trace, out: Path) -> None:
    """Write a trace, to stdout for ``-``."""
    from gandiva_core.replay.traces.readers import own

    content = own.write(trace)
    if out == STDOUT:
        typer.echo(content.decode("utf-8"), nl=False)
        return
    check_file(out, str(out))
    out.write_bytes(content)
    complain(f"{len(trace.jobs)} jobs written to {out}")
