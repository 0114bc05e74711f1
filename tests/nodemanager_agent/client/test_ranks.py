"""Who of a launcher's ranks has answered: each for itself (G-12)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nodemanager_agent.client.ranks import Ranks
from nodemanager_agent.client.wire import Line


class Scene(Ranks):
    """Ranks that are lines of the test's own."""

    def __init__(self) -> None:
        super().__init__(lambda: None, lambda _: None)
        self.lines: list[Line] = []

    def close(self) -> None:
        for line in self.lines:
            line.close()
        super().close()


@pytest.fixture
def ranks() -> Iterator[Scene]:
    found = Scene()
    yield found
    found.close()


def joined(ranks: Scene) -> Line:
    before = len(ranks.joined)
    line = Line.dial(ranks.path)
    ranks.lines.append(line)
    line.send("join", rank=before)
    while len(ranks.joined) == before:
        ranks.poll()
    return line


def heard(ranks: Scene, line: Line, op: str, key: str) -> None:
    line.send(op, id=key)
    before = len(ranks._answers[key])
    while len(ranks._answers[key]) == before:
        ranks.poll()


def test_one_that_answered_and_left_does_not_speak_for_the_other(ranks: Scene) -> None:
    """The other would be stopped in the middle of a mini-batch, with its device memory."""
    one, other = joined(ranks), joined(ranks)
    key = ranks.ask("suspend")
    heard(ranks, one, "done", key)
    one.close()
    while len(ranks.joined) == 2:
        ranks.poll()
    assert not ranks.have_answered(key)
    heard(ranks, other, "done", key)
    assert ranks.have_answered(key)
    assert len(ranks.answer(key).done) == 2


def test_one_that_answers_twice_counts_once(ranks: Scene) -> None:
    one, _ = joined(ranks), joined(ranks)
    key = ranks.ask("suspend")
    heard(ranks, one, "done", key)
    heard(ranks, one, "done", key)
    assert not ranks.have_answered(key)


def test_an_answer_has_the_mini_batches_of_its_moment(ranks: Scene) -> None:
    """G-69: a rank that confirmed its first mini-batch after a move goes on meanwhile."""
    one, other = joined(ranks), joined(ranks)
    key = ranks.ask("restore")
    for line, minibatches in ((one, 52), (other, 51)):
        line.send("done", id=key, minibatches=minibatches)
    while not ranks.have_answered(key):
        ranks.poll()
    assert len(ranks.answer(key).done) == 2
    assert ranks.minibatches() == 51
    assert ranks.minibatches() == 0, "those of now"


def test_nobody_left_is_an_answer(ranks: Scene) -> None:
    one = joined(ranks)
    key = ranks.ask("suspend")
    one.close()
    while ranks.joined:
        ranks.poll()
    assert ranks.have_answered(key)
    assert ranks.answer(key).done == []
