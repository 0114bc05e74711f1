"""`gandiva live-replay`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gandiva_core.cli.main import ExitCode, complain
from gandiva_core.model.errors import InputError

if TYPE_CHECKING:
    from gandiva_core.replay.live import ArmRun, Setting
    from yarn_plugin.live_replay.plan import LiveJob

ARMS = ("capacity", "gandiva")
START_S = 120.0
"""What an arm may take beyond its jobs' own time: daemons, masters, imports."""

_OF_A_CLUSTER = ("nodes", "gpus", "arms", "quantum_ms", "height_max")
"""Options that mean nothing where the cluster is there already."""


def live_replay(
    context: typer.Context,
    trace: Annotated[str, typer.Argument(help="A trace file, or a built-in trace.")],
    *,
    nodes: Annotated[int, typer.Option(help="NodeManagers.", min=1)] = 1,
    gpus: Annotated[int, typer.Option(help="Virtual devices of each.", min=1)] = 4,
    arms: Annotated[str, typer.Option(help="Schedulers, by commas.")] = ",".join(ARMS),
    scale: Annotated[float, typer.Option(help="Times of the trace are divided by it.")] = 60.0,
    step_ms: Annotated[int, typer.Option(help="A mini-batch takes at least this.", min=10)] = 100,
    quantum_ms: Annotated[int, typer.Option(help="Q, under gandiva.", min=500)] = 5000,
    height_max: Annotated[int, typer.Option(help="Jobs per device at most.", min=1)] = 4,
    jobs: Annotated[int | None, typer.Option(help="Only the first so many.", min=1)] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A key of every job (docs/JOBS.md)."),
    ] = None,
    conf_dir: Annotated[
        Path | None,
        typer.Option(help="Hadoop client configuration: play on the cluster that is there."),
    ] = None,
    arm: Annotated[
        str | None, typer.Option(help="What that cluster's ResourceManager runs, as you believe.")
    ] = None,
    python: Annotated[str, typer.Option(help="On that cluster's nodes, with torch.")] = "python3",
    python_venv: Annotated[
        Path | None, typer.Option(help="Archive with that Python, where nodes have none.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the result.")] = Path("out/live"),
) -> None:
    """Play a trace as real training in containers of a real cluster: of this machine, or one that is there.

    On this machine, once under each scheduler; needs torch (`make env-jobs`) and the jars (`make cluster-jars`). With
    --conf-dir and --arm it submits as you, and starts or stops nothing; `gandiva report` joins arms that were played
    before and after the switch. Writes OUT/summary.json; journals lie under OUT/journals. Ctrl-C leaves what was
    played, marked partial. Exit code 1 where a run is invalid: a job failed, or the processors were the bottleneck.
    """
    from yarn_plugin.bridge.status import RmUnreachableError

    if scale <= 0:
        raise InputError("--scale", f"{scale:g}", "a number above 0")
    wanted = _Wanted(trace, scale, step_ms / 1000, jobs)
    if conf_dir is None:
        if arm is not None:
            raise InputError("--arm", "without --conf-dir", "--arms, or the cluster's --conf-dir")
        _on_this_machine(
            wanted, _names(arms), (nodes, gpus, height_max, quantum_ms), tuple(conf or ()), out
        )
        return
    for name in _OF_A_CLUSTER:
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            option = "--" + name.replace("_", "-")
            raise InputError(option, "with --conf-dir", "nothing: the cluster is as it is")
    if arm not in ARMS:
        raise InputError("--arm", repr(arm), f"one of {', '.join(ARMS)}")
    try:
        _on_a_site(wanted, arm, conf_dir, (python, python_venv, tuple(conf or ())), out)
    except RmUnreachableError as error:
        complain(f"error: {error}")
        raise typer.Exit(ExitCode.UNREACHABLE) from error


class _Wanted:
    """What is to be played, wherever."""

    def __init__(self, trace: str, scale: float, step_s: float, jobs_max: int | None) -> None:
        self.step_s = step_s
        self._trace = trace
        self._scale = scale
        self._jobs_max = jobs_max

    def on(
        self, nodes: int, gpus: int, server_gpus: int
    ) -> tuple[tuple[LiveJob, ...], Setting, float]:
        """Jobs, what the comparison's arms must have in common, and after how many seconds it is given up."""
        from gandiva_core.replay.live import Setting
        from gandiva_core.replay.provenance import digest
        from gandiva_core.replay.traces import registry
        from yarn_plugin.live_replay.plan import scaled

        planned, notes = scaled(
            registry.load(self._trace),
            scale=self._scale,
            step_s=self.step_s,
            server_gpus=server_gpus,
            jobs_max=self._jobs_max,
        )
        for note in notes:
            complain(note)
        work_s = sum(job.solo_s * job.gpus for job in planned)
        setting = Setting(
            trace=self._trace,
            scale=self._scale,
            step_s=self.step_s,
            jobs=len(planned),
            plan_sha256=digest(planned),
            offered_load_ratio=work_s / gpus / max(1.0, planned[-1].arrival_s),
            nodes=nodes,
            gpus=gpus,
            notes=notes,
        )
        return planned, setting, START_S + planned[-1].arrival_s + 4 * work_s + 10 * len(planned)


def _names(arms: str) -> list[str]:
    names = [name.strip() for name in arms.split(",")]
    if not names or len(set(names)) != len(names) or not set(names) <= set(ARMS):
        raise InputError("--arms", repr(arms), f"some of {', '.join(ARMS)}, each once")
    return names


def _on_this_machine(
    wanted: _Wanted,
    names: Sequence[str],
    cluster: tuple[int, int, int, int],
    conf: tuple[str, ...],
    out: Path,
) -> None:
    from yarn_plugin.live_replay.local import LocalSetting, run_arm

    nodes, gpus, height_max, quantum_ms = cluster
    planned, setting, limit_s = wanted.on(nodes, nodes * gpus, gpus)
    step_ms = round(wanted.step_s * 1000)
    local = LocalSetting(nodes, gpus, height_max, quantum_ms, step_ms, limit_s, conf)
    say = Progress()
    out.mkdir(parents=True, exist_ok=True)

    def play(name: str) -> ArmRun:
        return run_arm(name, planned, local, out, say)

    _played(names, play, setting, out)


def _on_a_site(
    wanted: _Wanted,
    arm: str,
    conf_dir: Path,
    job: tuple[str, Path | None, tuple[str, ...]],
    out: Path,
) -> None:
    from yarn_plugin.live_replay.arm import Submission
    from yarn_plugin.live_replay.existing import run_arm
    from yarn_plugin.live_replay.site import of_conf_dir

    site = of_conf_dir(conf_dir)
    if site.arm != arm:
        found = f"{arm}, and the ResourceManager runs {site.scheduler_class}"
        raise InputError("--arm", found, site.arm)
    planned, setting, limit_s = wanted.on(site.nodes, site.gpus, site.server_gpus)
    submission = Submission(*job, is_paced=True)
    out.mkdir(parents=True, exist_ok=True)

    def play(_name: str) -> ArmRun:
        return run_arm(site, planned, submission, limit_s, out, Progress())

    _played([arm], play, setting, out)


def _played(
    names: Sequence[str], play: Callable[[str], ArmRun], setting: Setting, out: Path
) -> None:
    """Play arm by arm, and write what came of it."""
    from gandiva_core.replay.live import SUMMARY, LiveRun, in_short, summary
    from yarn_plugin.cluster.command import ended_like_ctrl_c

    played: list[ArmRun] = []
    is_interrupted = False
    try:
        with ended_like_ctrl_c():
            for name in names:
                played += [play(name)]
    except KeyboardInterrupt:
        is_interrupted = True
        complain(
            "interrupted: the result holds the arms that were played, and says that it is partial"
        )
    if not played:
        raise typer.Exit(ExitCode.INTERRUPTED)
    run = LiveRun(setting, tuple(played), is_partial=len(played) < len(names))
    file = out / SUMMARY
    file.write_text(json.dumps(summary(run), indent=1) + "\n", encoding="utf-8")
    for line in in_short(run):
        typer.echo(line)
    typer.echo(f"summary: {file}")
    if is_interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)
    if not run.is_valid:
        complain("not valid: a job failed, or the processors were the bottleneck")
        raise typer.Exit(ExitCode.CHECK_FAILED)


class Progress:
    """Says on stderr how far it is, a line when something changed."""

    def __init__(self) -> None:
        self._said = ""

    def __call__(self, text: str) -> None:
        """Say it, unless it was the last thing said."""
        if text != self._said:
            self._said = text
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()
