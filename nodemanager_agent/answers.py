"""Commands are carried out once (I6): what was answered to each message id, and what is stale."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from gandiva_core.messages.agents import Answered, Failure, Report, Switched, SwitchWorkers
from nodemanager_agent.workers import Done, Outcome

_KEPT = 512


class Answers:
    """By message id, within one epoch of the core."""

    def __init__(self, report: Callable[[Report], None]) -> None:
        self.epoch = 0
        self.last_message_id = 0
        self._report = report
        self._given: OrderedDict[int, list[Report]] = OrderedDict()

    def is_new(self, epoch: int, message_id: int) -> bool:
        """Whether a command is to be carried out; a repeated one is answered again, a stale one is refused."""
        if epoch < self.epoch:
            self._report(Answered(message_id, "STALE_EPOCH", f"{epoch}, after {self.epoch}"))
            return False
        if epoch > self.epoch:
            self.epoch, self.last_message_id = epoch, 0
            self._given.clear()
        if message_id in self._given:
            for answer in self._given[message_id]:
                self._report(answer)
            return False
        self._given[message_id] = []
        while len(self._given) > _KEPT:
            self._given.popitem(last=False)
        self.last_message_id = max(self.last_message_id, message_id)
        return True

    def answer(self, epoch: int, report: Switched | Answered) -> None:
        """Answer a command, now or later; an answer to an earlier core is nobody's."""
        if epoch != self.epoch:
            return
        self._given.setdefault(report.message_id, []).append(report)
        self._report(report)


class SwitchAnswer:
    """The answers to one `SwitchWorkers`, worker by worker."""

    def __init__(self, answers: Answers, command: SwitchWorkers) -> None:
        self._answers = answers
        self._command = command

    def stopped(self, container_id: str, outcome: Outcome) -> None:
        """A worker that was to stop did, or did not."""
        self._tell(container_id, outcome, "stopped")

    def started(self, container_id: str, outcome: Outcome) -> None:
        """A worker that was to run does, or does not."""
        self._tell(container_id, outcome, "started")

    def _tell(self, container_id: str, outcome: Outcome, done: str) -> None:
        told: dict[str, Any] = (
            {done: ((container_id, outcome.at_s),)}
            if isinstance(outcome, Done)
            else {"failed": (Failure(container_id, outcome.code, outcome.detail),)}
        )
        command = self._command
        report = Switched(command.message_id, command.switch_id, **told)
        self._answers.answer(command.epoch, report)
