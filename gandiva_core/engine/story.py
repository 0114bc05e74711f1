"""What happened to one job, in words, from a journal's entries: for `why`, `story` and reports (USERS B7).

The core does not log: everything it could say is in the journal, and this reads it out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import msgspec

from gandiva_core.messages import events as e
from gandiva_core.messages.decisions import (
    Decision,
    Enqueue,
    Migrate,
    Place,
    Run,
    Switch,
    Wait,
)
from gandiva_core.messages.effects import Effect, ReleaseGang, SwitchResidents
from gandiva_core.messages.policy import Refusal
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import JobId, ServerId


class Recorded(Protocol):
    """As much of a journal's entry as a story needs."""

    @property
    def n(self) -> int:
        """The event's number."""

    @property
    def event(self) -> e.Event:
        """The fact."""

    @property
    def decisions(self) -> Sequence[Decision]:
        """Accepted wishes."""

    @property
    def refusals(self) -> Sequence[Refusal]:
        """Wishes that were not applied."""

    @property
    def effects(self) -> Sequence[Effect]:
        """Orders that went out."""


class StoryLine(msgspec.Struct, frozen=True):
    """One thing that happened.

    Attributes:
        at_s: when it became true, in the journal's time.
        number: the event that caused it.
        code: for machines: the message's kind in lower case, a wait's code after a colon.
        text: for people.
    """

    at_s: float
    number: int
    code: str
    text: str


def story(entries: Iterable[Recorded], job_id: JobId) -> list[StoryLine]:
    """Everything that concerns one job, in order; a reason to wait that did not change is told once."""
    lines: list[StoryLine] = []
    last_wait: Wait | None = None
    for entry in entries:
        for code, at_s, text in _facts(entry.event, job_id):
            lines.append(StoryLine(at_s, entry.n, code, text))
        for decision in entry.decisions:
            if type(decision) is Enqueue and decision.job_id == job_id:
                if decision.reason == last_wait:
                    continue
                last_wait = decision.reason
            for code, text in _wishes(decision, job_id):
                lines.append(StoryLine(entry.event.at_s, entry.n, code, text))
        for code, text in _others(entry, job_id):
            lines.append(StoryLine(entry.event.at_s, entry.n, code, text))
    return lines


def _facts(event: e.Event, job_id: JobId) -> Iterator[tuple[str, float, str]]:
    if type(event) is e.ResidentsSwitched:
        for name, at_s in event.stopped:
            if name == job_id:
                yield "stopped", at_s, "stopped computing; its devices are free"
        for name, at_s in event.started:
            if name == job_id:
                yield "started", at_s, "computes"
        return
    tell = _TOLD.get(type(event))
    if tell is not None and _subject(event) == job_id:
        code, text = tell(event)
        yield code, event.at_s, text


def _subject(event: e.Event) -> JobId | None:
    """The one job that an event is about."""
    if isinstance(event, e.JobSubmitted | e.JobAdopted):
        return event.job.job_id
    return getattr(event, "job_id", None)


def _profile(event: e.JobProfiled) -> str:
    cycle, use = event.minibatch_s, event.utilisation_ratio
    told = [
        "" if cycle is None else f"{cycle:.3g} s a mini-batch",
        "" if use is None else f"{use:.0%} of its GPUs used",
        "" if event.memory_peak_mib is None else f"{event.memory_peak_mib} MiB at most",
    ]
    return ", ".join(filter(None, told)) or "measured"


_TOLD: dict[type, Callable[[Any], tuple[str, str]]] = {
    e.JobSubmitted: lambda event: (
        "submitted",
        f"submitted to {event.job.queue}, asks for {event.job.gpus} GPUs",
    ),
    e.JobAdopted: lambda event: (
        "adopted",
        f"found with its {len(event.containers)} containers on {_listed(event.servers)}",
    ),
    e.JobMoved: lambda event: ("moved", f"moved to {event.queue}"),
    e.GangCommitted: lambda event: (
        "committed",
        f"all {len(event.containers)} containers are there",
    ),
    e.GangRefused: lambda event: (
        "refused",
        _joined("containers refused", event.code, event.detail),
    ),
    e.ReclaimAsked: lambda event: (
        "reclaim",
        f"the preemption monitor would have killed containers for {event.gpus} GPUs",
    ),
    e.GangBroken: lambda event: ("broken", _joined("lost a worker, restarts", event.reason)),
    e.JobLearned: lambda event: (
        ("stoppable", "can be suspended")
        if event.can_suspend
        else ("unstoppable", _joined("is not suspended for others", event.reason))
    ),
    e.JobProfiled: lambda event: ("profiled", _profile(event)),
    e.JobHeld: lambda event: ("held", _joined("suspended until it is resumed", event.by)),
    e.JobReleased: lambda event: ("released", _joined("may run again", event.by)),
    e.ContinuityChecked: lambda event: (
        ("continued", f"goes on after a {event.after} as it was")
        if event.is_same
        else ("not-continued", _joined(f"is not as it was before a {event.after}", event.detail))
    ),
    e.MoveAsked: lambda event: ("move-asked", _joined("is to run elsewhere", event.by)),
    e.MoveCommitted: lambda event: (
        "move-committed",
        f"its {len(event.containers)} new containers are there",
    ),
    e.GangMoved: lambda event: (
        "migrated",
        f"computes in its new containers, frozen for {event.frozen_s:.3g} s",
    ),
    e.MoveFailed: lambda event: (
        "not-migrated",
        _joined("stays where it is", event.code, event.detail),
    ),
    e.MinibatchesReached: lambda event: ("progress", f"{event.minibatches} mini-batches done"),
    e.ContainersHeld: lambda event: (
        "holding",
        f"holds {event.held} of {event.wanted} GPUs, waits",
    ),
    e.AmWaited: lambda event: ("am-waited", _joined("application master waits", event.reason)),
    e.JobFinished: lambda _: ("finished", "finished"),
    e.JobFailed: lambda event: ("failed", _joined("failed", event.reason)),
    e.JobKilled: lambda _: ("killed", "killed"),
}


def _wishes(decision: Decision, job_id: JobId) -> Iterator[tuple[str, str]]:
    if type(decision) is Place and decision.job_id == job_id:
        yield f"place:{decision.step}", f"placed on {_listed(decision.servers)} ({decision.step})"
    elif type(decision) is Enqueue and decision.job_id == job_id:
        wait = decision.reason
        parts = [f"needs {wait.need}" * bool(wait.need), f"there is {wait.have}" * bool(wait.have)]
        yield f"wait:{wait.code}", _joined(f"waits ({wait.code})", "; ".join(filter(None, parts)))
    elif type(decision) is Migrate and decision.job_id == job_id:
        yield (
            f"migrate:{decision.purpose}",
            f"is to move to {_devices(decision)} ({decision.purpose})",
        )
    elif isinstance(decision, Switch | Migrate) and job_id in decision.suspend:
        yield "suspend", "told to stop at its next mini-batch boundary"


def _others(entry: Recorded, job_id: JobId) -> Iterator[tuple[str, str]]:
    for effect in entry.effects:
        if type(effect) is SwitchResidents:
            for run in effect.run:
                if run.job_id == job_id:
                    yield "run", f"may run on {_devices(run)}"
        elif type(effect) is ReleaseGang and effect.job_id == job_id:
            yield "released", _joined("its containers were given back", effect.reason)
    for refusal in entry.refusals:
        if getattr(refusal.decision, "job_id", None) == job_id:
            yield "refusal", f"a wish of the policy was refused: {refusal.reason}"


def _listed(servers: Iterable[ServerId]) -> str:
    return ", ".join(dict.fromkeys(servers))


def _devices(run: Run | Migrate) -> str:
    return ", ".join(map(_binding, run.bindings))


def _binding(binding: Binding) -> str:
    return f"{binding.server_id}/{'+'.join(map(str, binding.gpus))}"


def _joined(*parts: str) -> str:
    return ": ".join(part for part in parts if part)
