"""Slicing domains: connected components of servers under the gangs that span them (G-32)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gandiva_core.engine.state import State
from gandiva_core.messages.events import JobFinished
from gandiva_core.model.units import JobId, ServerId
from tests.builders import job, server
from tests.engine.scene import Scene


def domain(scene: Scene, name: str) -> tuple[str, ...]:
    return scene.engine.view.domain(ServerId(name))


def test_gangs_that_overlap_join_their_servers() -> None:
    scene = Scene(*(server(f"s{i}") for i in range(1, 5)))
    scene.submit(job("a", 2), "s1", "s3")
    assert domain(scene, "s1") == domain(scene, "s3") == ("s1", "s3")
    assert domain(scene, "s2") == ("s2",)
    scene.submit(job("b", 2), "s3", "s4")
    assert domain(scene, "s1") == domain(scene, "s4") == ("s1", "s3", "s4")
    scene.tell(JobFinished(0.0, JobId("a")))
    assert [domain(scene, name) for name in ("s1", "s3")] == [("s1",), ("s3", "s4")]


def test_jobs_on_one_server_join_nothing() -> None:
    scene = Scene(server("s1"), server("s2"))
    scene.submit(job("a", 2), "s1", "s1")
    assert domain(scene, "s1") == ("s1",)


def test_unknown_server() -> None:
    with pytest.raises(KeyError):
        State(4).domain(ServerId("s9"))


@given(
    gangs=st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=3), max_size=10),
    asks=st.lists(st.integers(0, 5), max_size=30),
)
def test_cache_equals_union_find_whatever_came_and_went_between(
    gangs: list[list[int]], asks: list[int]
) -> None:
    scene = Scene(*(server(f"s{i}", 8) for i in range(6)))
    alive: dict[str, set[str]] = {}
    for number, places in enumerate(gangs):
        name = f"j{number}"
        names = [f"s{i}" for i in places]
        scene.submit(job(name, len(names)), *names)
        alive[name] = set(names)
        if number % 3 == 2:
            gone = f"j{number - 1}"
            scene.tell(JobFinished(0.0, JobId(gone)))
            del alive[gone]
        for ask in asks:
            domain(scene, f"s{ask}")
        groups = [{f"s{i}"} for i in range(6)]
        for spans in alive.values():
            joined = set[str]().union(*(group for group in groups if group & spans))
            groups = [group for group in groups if not group & spans] + [joined]
        for group in groups:
            assert {domain(scene, server_id) for server_id in group} == {tuple(sorted(group))}
