"""Containers of a gang as a stock scheduler hands them out."""

from __future__ import annotations

from tests.builders import job
from yarn_plugin.replay.holding import Holding
from yarn_plugin.replay.wire import Ended, Placed


def container(number: int, gpus: int = 1, priority: int = 1, host: str = "s01") -> Placed:
    return Placed(f"c{number}", f"{host}:1", 1024 * gpus, gpus, gpus, priority)


def test_a_gang_is_whole_with_its_last_container() -> None:
    holding = Holding(job(gpus=3))
    assert holding.take([container(1), container(2)]) == ()
    assert (holding.is_whole, holding.gpus) == (False, 2)
    holding.take([container(3)])
    assert holding.is_whole


def test_what_is_too_much_of_one_size_goes_back() -> None:
    holding = Holding(job(workers=(4, 2)))
    assert holding.take([container(1, 2, 2), container(2, 2, 2), container(3, 4, 1)]) == ("c2",)
    assert holding.is_whole


def test_ranks_of_one_size_come_in_the_order_of_ids_whatever_came_first() -> None:
    holding = Holding(job(workers=(2, 4, 2)))
    holding.take([container(9, 2, 1, "s09"), container(5, 4, 2, "s05"), container(3, 2, 1, "s03")])
    assert [placed.host for placed in holding.by_rank()] == ["s03", "s05", "s09"]


def test_a_bad_end_breaks_and_a_good_one_does_not() -> None:
    holding = Holding(job(gpus=2))
    holding.take([container(1), container(2)])
    assert holding.lose([Ended("c1", 0), Ended("c7", 137)]) == ""
    assert holding.lose([Ended("c2", -102)]) == "c2 on s01: status -102"
    assert holding.give_back() == ()


def test_giving_back_leaves_nothing() -> None:
    holding = Holding(job(gpus=2))
    holding.take([container(1)])
    assert holding.give_back() == ("c1",)
    assert holding.gpus == 0
