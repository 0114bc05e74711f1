"""Who runs while nobody decides (DESIGN §4; G-31, G-36)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from yarn_plugin.agents.table import Resident, rotation


def resident(name: int, gpus: int, *, stays: bool = False) -> Resident:
    return Resident(((f"c{name}", gpus),), stays=stays)


@given(
    sizes=st.lists(st.tuples(st.integers(1, 4), st.booleans()), max_size=8),
    devices=st.integers(0, 8),
)
def test_devices_have_one_holder_gangs_are_whole_and_nobody_is_left_out(
    sizes: list[tuple[int, bool]], devices: int
) -> None:
    staying = 0
    residents = []
    for name, (gpus, wants) in enumerate(sizes):
        stays = wants and staying + gpus <= devices
        staying += gpus * stays
        residents.append(resident(name, gpus, stays=stays))
    table = rotation(residents, range(devices))
    seen = set()
    for quantum in table:
        given_away = [gpu for worker in quantum for gpu in worker.gpus]
        assert len(given_away) == len(set(given_away)) <= devices
        for worker in quantum:
            size = dict(each.workers[0] for each in residents)[worker.container_id]
            assert len(worker.gpus) == size
        seen |= {worker.container_id for worker in quantum}
    for each in residents:
        if table and each.gpus <= devices - staying:
            assert each.workers[0][0] in seen


@given(count=st.integers(1, 12), devices=st.integers(1, 8))
def test_jobs_of_one_size_all_get_the_same(count: int, devices: int) -> None:
    """G-36 over one round of the table."""
    table = rotation([resident(name, 1) for name in range(count)], range(devices))
    turns = [
        sum(worker.container_id == f"c{name}" for quantum in table for worker in quantum)
        for name in range(count)
    ]
    assert max(turns) - min(turns) <= 1


def test_who_cannot_be_stopped_keeps_the_device_that_it_has() -> None:
    """The agent could move nobody there, and would refuse."""
    stuck = Resident((("stuck", 1),), stays=True, holds={"stuck": (2,)})
    others = [resident(name, 1) for name in range(4)]
    for quantum in rotation([*others, stuck], range(3)):
        seats = {worker.container_id: worker.gpus for worker in quantum}
        assert seats["stuck"] == (2,)
        assert len(seats) == 3


def test_who_runs_on_changes_no_device() -> None:
    holds = Resident((("a", 1),), holds={"a": (1,)})
    table = rotation([holds, resident(1, 1), resident(2, 1)], range(2))
    places = {w.gpus for quantum in table for w in quantum if w.container_id == "a"}
    assert places == {(1,)}
