"""The agenda: time, then kind, then number (C-6)."""

from __future__ import annotations

from itertools import permutations

from gandiva_core.sim.queue import Agenda, Due


def test_the_order_does_not_depend_on_who_came_first() -> None:
    entries = [(1.0, Due.ARRIVAL, 0), (1.0, Due.JOB, 9), (1.0, Due.JOB, 2), (0.5, Due.TIMER, 7)]
    for order in permutations(entries):
        agenda = Agenda()
        for entry in order:
            agenda.add(*entry)
        assert agenda.peek() == (0.5, Due.TIMER, 7)
        assert [agenda.pop() for _ in range(len(agenda))] == sorted(entries)


def test_an_empty_agenda_has_nothing_next() -> None:
    assert Agenda().peek() is None
