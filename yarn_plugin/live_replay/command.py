"""`gandiva live-replay`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from gandiva_core.cli.main import ExitCode, complain
from gandiva_core.model.errors import InputError

ARMS = ("capacity", "gandiva")
START_S = 120.0
"""What an arm may take beyond its jobs' own time: daemons, masters, imports."""


def live_replay(
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
    out: Annotated[Path, typer.Option(help="Folder for the result.")] = Path("out/live"),
) -> None:
    """Play a trace as real training in containers of a real cluster on this machine, once under each scheduler.

    Needs torch (`make env-jobs`) and the jars (`make cluster-jars`). Writes OUT/summary.json; journals lie under
    OUT/journals. Ctrl-C takes the cluster down and leaves what was played, marked partial. Exit code 1 where a run is
    invalid: a job failed, or the processors were the bottleneck.
    """
    from gandiva_core.replay.provenance import commit
    from gandiva_core.replay.traces import registry
    from yarn_plugin.live_replay.figures import ArmRun, summary
    from yarn_plugin.live_replay.plan import scaled
    from yarn_plugin.live_replay.run import Setting, run_arm

    names = [name.strip() for name in arms.split(",")]
    if not names or len(set(names)) != len(names) or not set(names) <= set(ARMS):
        raise InputError("--arms", repr(arms), f"some of {', '.join(ARMS)}, each once")
    if scale <= 0:
        raise InputError("--scale", f"{scale:g}", "a number above 0")
    planned, notes = scaled(
        registry.load(trace), scale=scale, step_s=step_ms / 1000, server_gpus=gpus, jobs_max=jobs
    )
    for note in notes:
        complain(note)
    work_s = sum(job.solo_s * job.gpus for job in planned)
    limit_s = START_S + planned[-1].arrival_s + 4 * work_s + 10 * len(planned)
    setting = Setting(nodes, gpus, height_max, quantum_ms, limit_s)
    told = {
        "trace": trace,
        "scale": scale,
        "step_s": step_ms / 1000,
        "jobs": len(planned),
        "offered_load_ratio": work_s / (nodes * gpus) / max(1.0, planned[-1].arrival_s),
        "nodes": nodes,
        "gpus": gpus,
        "quantum_s": quantum_ms / 1000,
        "height_max": height_max,
        "commit": commit(),
        "notes": list(notes),
    }
    out.mkdir(parents=True, exist_ok=True)
    say = Progress()
    played: list[ArmRun] = []
    is_interrupted = False
    try:
        for name in names:
            played += [run_arm(name, planned, setting, out, say)]
    except KeyboardInterrupt:
        is_interrupted = True
        complain(
            "interrupted: the result holds the arms that were played, and says that it is partial"
        )
    if not played:
        raise typer.Exit(ExitCode.INTERRUPTED)
    result = summary(played, told) | {"is_partial": len(played) < len(names)}
    file = out / "summary.json"
    file.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for arm in played:
        typer.echo(
            f"{arm.arm:10} {len(arm.jobs)} jobs  mean JCT {arm.mean_jct_s:.1f} s  makespan "
            f"{arm.makespan_s:.1f} s  idle processors {arm.headroom_ratio:.0%}"
        )
    typer.echo(f"summary: {file}")
    if is_interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)
    if not result["is_valid"]:
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
