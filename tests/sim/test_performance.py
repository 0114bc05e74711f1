"""Rates by placement and the price of a suspend (G-44, G-70 to G-72)."""

from __future__ import annotations

import msgspec
import pytest

from gandiva_core.model.cluster import Server
from gandiva_core.model.errors import InputError
from gandiva_core.model.job import JobSpec, Worker
from gandiva_core.model.placement import Binding, LocalityLevel
from gandiva_core.model.units import AcceleratorType, JobId, ServerId
from gandiva_core.sim.performance import (
    Performance,
    best_level,
    level_factor,
    nic_factor,
    split_servers,
    spread_factor,
    suspend_resume_s,
)
from tests.sim.worlds import PLAIN, SPLIT, servers

GB_IN_MIB = 1e9 / (1 << 20)


@pytest.mark.parametrize(("gigabytes", "cost_s"), [(0.075, 0.045), (1.3, 0.290), (60.0, 1.0)])
def test_suspend_and_resume_cost_what_G44_says(gigabytes: float, cost_s: float) -> None:
    """G-44: 0.075 GB a GPU 45 ms, 1.3 GB 290 ms, never above a second."""
    profile = msgspec.structs.replace(PLAIN, memory_min_mib=gigabytes * GB_IN_MIB)
    assert suspend_resume_s(profile) == pytest.approx(cost_s)


def rate(gpus: int, *places: tuple[str, tuple[int, ...]], width: int = 4) -> float:
    """Of a SPLIT job on servers s1 to s9 of `width` GPUs, k1 of another type."""
    cluster = (*servers(9, width), Server(ServerId("k1"), width, 1, 1, AcceleratorType("K80")))
    spec = JobSpec(JobId("j"), (Worker(1, 1, 1),) * gpus)
    run = tuple(Binding(ServerId(server), devices) for server, devices in places)
    return Performance(cluster).rate_per_s(spec, SPLIT, run)


def test_a_pair_of_gpus_in_one_switch_is_the_full_rate_and_across_sockets_is_not() -> None:
    """G-70 (VGG16): 1.00 and 0.60; on 8 GPUs also 0.81 within a socket."""
    assert rate(2, ("s1", (0, 1))) == 2.0
    assert rate(2, ("s1", (1, 2))) == pytest.approx(2.0 * 0.60)
    assert rate(2, ("s1", (1, 2)), width=8) == pytest.approx(2.0 * 0.81)


def test_what_no_placement_can_avoid_costs_nothing() -> None:
    """Four GPUs of a 4-GPU server span its sockets, eight GPUs need two of them: that is their best."""
    assert rate(4, ("s1", (0, 1, 2, 3))) == 2.0
    assert rate(8, ("s1", (0, 1, 2, 3)), ("s2", (0, 1, 2, 3))) == 2.0
    assert rate(3, ("s1", (0, 1, 2))) == 2.0


def test_a_spread_gang_pays_for_servers_beyond_the_fewest() -> None:
    """G-71: 2×2 0.72, 4×1 0.42; between known counts the one below; eight GPUs on four servers 0.42 / 0.72."""
    assert rate(4, ("s1", (0, 1)), ("s2", (0, 1))) == pytest.approx(2.0 * 0.72)
    assert rate(4, *((f"s{n}", (0,)) for n in range(1, 5))) == pytest.approx(2.0 * 0.42)
    assert rate(3, *((f"s{n}", (0,)) for n in range(1, 4))) == pytest.approx(2.0 * 0.72)
    pairs = [(f"s{n}", (0, 1)) for n in range(1, 5)]
    assert rate(8, *pairs) == pytest.approx(2.0 * 0.42 / 0.72)


def test_the_worst_server_inside_and_the_spread_multiply() -> None:
    assert rate(4, ("s1", (0, 1)), ("s2", (1, 2))) == pytest.approx(2.0 * 0.72 * 0.60)


def test_the_slowest_type_sets_the_pace() -> None:
    assert rate(2, ("s1", (0,)), ("k1", (0,))) == pytest.approx(0.5 * 0.72)
    assert rate(1, ("k1", (0,))) == 0.5


def test_missing_factors_fall_back_to_the_next_better_known_one() -> None:
    only_far = msgspec.structs.replace(PLAIN, locality_factor={LocalityLevel.DIFF_SOCKET: 0.6})
    assert level_factor(only_far, LocalityLevel.SAME_SOCKET) == 1.0
    assert level_factor(only_far, LocalityLevel.SAME_RACK) == 0.6
    assert spread_factor(SPLIT, 3) == 0.72
    assert spread_factor(SPLIT, 99) == 0.42
    assert spread_factor(PLAIN, 4) == 1.0


def test_the_network_factor_holds_its_last_value() -> None:
    """G-72, ResNet-50: 1 / 0.77 / 0.53 for 1, 2 and 4 jobs."""
    assert [nic_factor(SPLIT, n) for n in (0, 1, 2, 4, 9)] == [1.0, 1.0, 0.77, 0.53, 0.53]


def test_the_best_level_of_a_server() -> None:
    eight = servers(1, 8)[0].sockets
    levels = [best_level(eight, gpus) for gpus in (1, 2, 3, 4, 5, 8)]
    assert levels == [
        LocalityLevel.SAME_SWITCH,
        LocalityLevel.SAME_SWITCH,
        LocalityLevel.SAME_SOCKET,
        LocalityLevel.SAME_SOCKET,
        LocalityLevel.DIFF_SOCKET,
        LocalityLevel.DIFF_SOCKET,
    ]


def test_split_servers_are_those_of_gangs_that_span_more_than_one() -> None:
    one = Binding(ServerId("s1"), (0,))
    two = Binding(ServerId("s2"), (0, 1))
    assert split_servers([one]) == ()
    assert split_servers([two, one, two]) == ("s2", "s1")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"rate_per_s": {AcceleratorType(""): 0.0}}, "rate_per_s"),
        ({"rate_per_s": {AcceleratorType("P100"): 1.0}}, 'entry ""'),
        ({"spread_factor": {2: float("nan")}}, r"spread_factor\[2\]"),
        ({"nic_factor": (1.0, -0.5)}, r"nic_factor\[2\]"),
        ({"locality_factor": {LocalityLevel.DIFF_RACK: float("inf")}}, "locality_factor"),
    ],
)
def test_a_profile_that_never_ends_is_refused(changes: dict[str, object], named: str) -> None:
    profile = msgspec.structs.replace(PLAIN, **changes)
    with pytest.raises(InputError, match=named):
        Performance(()).check(profile, "job x")
