"""What a reader must know before believing a figure: deadlocks, what was left out, what was simulated."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gandiva_core.replay.arms import BASELINE
from gandiva_core.replay.details import RunDetails
from gandiva_core.replay.summary import ArmSummary, Holder, Summary
from gandiva_core.replay.wording import plural

NAMED_MAX = 8


class Remark(msgspec.Struct, frozen=True):
    """One sentence or two; a warning where a figure is not what it seems."""

    text: str
    is_warning: bool = False


def remarks(summary: Summary, runs: Sequence[RunDetails]) -> list[Remark]:
    """Warnings first."""
    found = [*completeness(summary, runs), *stuck(summary), *comparability(summary)]
    found += [*left_out(summary), *waits(summary), *substance(summary)]
    return sorted(found, key=lambda remark: not remark.is_warning)


def completeness(summary: Summary, runs: Sequence[RunDetails]) -> list[Remark]:
    """Interrupted or missing runs."""
    if not summary.partial:
        return []
    cut = [
        f"{r.arm} {r.shape} seed {r.seed} ({r.figures.finished} of {r.figures.jobs} submitted jobs)"
        for r in runs
        if not r.is_complete
    ]
    told = f" Interrupted: {'; '.join(cut)}." if cut else ""
    text = f"Partial result: the replay was ended before all runs were done.{told}"
    return [Remark(text, is_warning=True)]


def stuck(summary: Summary) -> list[Remark]:
    """Jobs that never finish: a gang deadlock where they hold parts, starvation where they hold nothing."""
    found = []
    for shape, each in summary.shapes.items():
        for name, arm in each.arms.items():
            if arm.never_finished:
                found.append(Remark(deadlock(name, shape, arm), is_warning=True))
    return found


def deadlock(name: str, shape: str, arm: ArmSummary) -> str:
    """What hangs, and who holds what."""
    holding = [holder for holder in arm.never_finished if holder.held_gpus]
    what = "gang deadlock" if holding else "starvation"
    listed = "; ".join(held(holder) for holder in arm.never_finished[:NAMED_MAX])
    more = len(arm.never_finished) - NAMED_MAX
    tail = f"; and {more} more" if more > 0 else ""
    jobs = plural(len(arm.never_finished), "job")
    return f"{name}, shape {shape}: {what}. {jobs} never finish: {listed}{tail}. No ratio is given."


def held(holder: Holder) -> str:
    """``J17 holds 4 of 8 GPUs on server-02``."""
    if not holder.held_gpus:
        return f"{holder.job} holds nothing and wants {holder.gpus} GPUs"
    where = f" on {', '.join(holder.servers)}" if holder.servers else ""
    return f"{holder.job} holds {holder.held_gpus} of {holder.gpus} GPUs{where}"


def comparability(summary: Summary) -> list[Remark]:
    """Where a ratio is over fewer jobs than the columns beside it."""
    found = []
    if BASELINE not in summary.arms:
        text = f"No arm is {BASELINE}, so there is no ratio."
        return [Remark(text)]
    base = summary.arms[BASELINE]
    for name, ratios in summary.ratios.items():
        arm = summary.arms[name]
        if ratios.mean_jct is not None and ratios.common_jobs < max(base.finished, arm.finished):
            text = (
                f"Ratios of {name} are over the {plural(ratios.common_jobs, 'job')} that both arms "
                f"finished ({base.finished:,} and {arm.finished:,})."
            )
            found.append(Remark(text, is_warning=True))
    return found


def left_out(summary: Summary) -> list[Remark]:
    """Jobs of the trace that no arm was given."""
    if not summary.left_out:
        return []
    listed = "; ".join(f"{reason}: {number:,}" for reason, number in summary.left_out.items())
    return [Remark(f"Left out of every arm alike: {listed}.")]


def waits(summary: Summary) -> list[Remark]:
    """Waits that come from the set-up rather than from scheduling."""
    found = []
    for name, arm in summary.arms.items():
        if arm.host_memory_waits:
            text = f"{name}: host memory bounded over-subscription for {plural(arm.host_memory_waits, 'job')} (G-46)."
            found.append(Remark(text))
        if arm.am_limit_waits:
            text = f"{name}: {plural(arm.am_limit_waits, 'application master')} had to wait for the queue's AM limit."
            found.append(Remark(text, is_warning=True))
        if arm.failed:
            text = f"{name}: {plural(arm.failed, 'job')} failed or was refused at submission; they have no JCT."
            found.append(Remark(text, is_warning=True))
    return found


def substance(summary: Summary) -> list[Remark]:
    """What is real in these figures, and what is a model."""
    model = "Nodes, application masters and training are simulated by one job model, the same for all arms."
    if summary.engine == "yarn":
        text = (
            "Every container went through a real Hadoop ResourceManager under virtual time, with the "
            f"scheduler class named for each arm. {model}"
        )
    else:
        text = (
            "No ResourceManager took part: stock schedulers are models here. "
            f"With --engine yarn Hadoop's own class runs. {model}"
        )
    return [Remark(text)]
