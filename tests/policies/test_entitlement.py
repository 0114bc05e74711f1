"""Entitlements of queues: min(demand, G), the rest in proportion to G, down the tree (DESIGN §4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gandiva_core.model.cluster import QueueLimit
from gandiva_core.model.units import QueueName
from gandiva_core.policies.entitlement import entitlements, fill

ROOT = QueueLimit(QueueName("root"), 300.0, 300.0)


def queue(name: str, guaranteed: float, most: float = 300.0, parent: str = "root") -> QueueLimit:
    return QueueLimit(QueueName(name), guaranteed, most, parent)


def entitled(limits: list[QueueLimit], gpus: float = 300.0, **demand: float) -> dict[str, float]:
    """By the last part of a queue's path."""
    wanted = {
        limit.name: demand.get(limit.name.rpartition(".")[2], 0.0) for limit in [ROOT, *limits]
    }
    found = entitlements([ROOT, *limits], wanted, gpus)
    return {name.rpartition(".")[2]: value for name, value in found.items()}


class TestFigures:
    def test_a06(self) -> None:
        """A06: G 100 and 0, demand 100 and 600 on 300 GPUs."""
        found = entitled([queue("root.a", 100.0), queue("root.b", 0.0)], a=100, b=600)
        assert found == {"root": 300.0, "a": 100.0, "b": 200.0}

    def test_the_rest_goes_in_proportion_to_the_guarantees(self) -> None:
        """A third queue asks for nothing; its 60 are lent out 2 to 1."""
        limits = [queue("root.a", 160.0), queue("root.b", 80.0), queue("root.c", 60.0)]
        assert entitled(limits, a=500, b=500) == pytest.approx(
            {"root": 300, "a": 200, "b": 100, "c": 0}
        )

    def test_what_one_may_not_use_goes_on_to_the_others(self) -> None:
        """The same, but a may run no more than 170."""
        limits = [queue("root.a", 160.0, 170.0), queue("root.b", 80.0), queue("root.c", 60.0)]
        assert entitled(limits, a=500, b=500) == pytest.approx(
            {"root": 300, "a": 170, "b": 130, "c": 0}
        )

    def test_queues_without_guarantees_share_equally(self) -> None:
        limits = [queue("root.a", 0.0), queue("root.b", 0.0), queue("root.c", 0.0)]
        assert entitled(limits, a=500, b=500, c=40) == pytest.approx(
            {"root": 300, "a": 130, "b": 130, "c": 40}
        )

    def test_a_queue_without_a_guarantee_gets_what_the_others_do_not_want(self) -> None:
        limits = [queue("root.a", 100.0), queue("root.b", 0.0)]
        assert entitled(limits, a=500, b=500) == {"root": 300.0, "a": 300.0, "b": 0.0}

    def test_down_the_tree_the_parents_count_first(self) -> None:
        """B's parent has a small guarantee, however large b's own is of it."""
        limits = [
            queue("root.x", 200.0),
            queue("root.x.a", 100.0, parent="root.x"),
            queue("root.x.c", 100.0, parent="root.x"),
            queue("root.y", 100.0),
            queue("root.y.b", 100.0, parent="root.y"),
        ]
        found = entitled(limits, a=500, b=500)
        assert found == pytest.approx({"root": 300, "x": 200, "a": 200, "c": 0, "y": 100, "b": 100})

    def test_more_guaranteed_than_there_is_shrinks_in_proportion(self) -> None:
        """Amounts in a cluster that lost half of its servers."""
        limits = [queue("root.a", 200.0), queue("root.b", 100.0)]
        assert entitled(limits, 150.0, a=500, b=500) == pytest.approx(
            {"root": 150, "a": 100, "b": 50}
        )

    def test_jobs_in_a_parent_have_what_its_children_leave(self) -> None:
        """Of a queue that the file does not know, they count in its nearest ancestor."""
        found = entitled([queue("root.a", 100.0)], root=50, a=280)
        assert found == pytest.approx({"root": 300, "a": 280})


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[QueueLimit], dict[QueueName, float], float]:
    """Up to two levels under root; guarantees add up to the parent's at most, as Hadoop has them."""
    gpus = float(draw(st.integers(1, 64)))
    limits = [QueueLimit(QueueName("root"), gpus, gpus)]
    demand: dict[QueueName, float] = {}
    frontier = [limits[0]]
    for level in range(2):
        below: list[QueueLimit] = []
        for parent in frontier:
            left = parent.guaranteed_gpus
            for number in range(draw(st.integers(0 if level else 1, 3))):
                part = draw(st.sampled_from((0.0, 0.25, 0.5, 1.0))) * left
                left -= part
                most = min(parent.max_gpus, part + draw(st.integers(0, 64)))
                name = QueueName(f"{parent.name}.q{number}")
                below.append(QueueLimit(name, part, most, parent.name))
        limits += below
        frontier = below
    parents = {limit.parent for limit in limits}
    for limit in limits:
        if limit.name not in parents:
            demand[limit.name] = float(draw(st.integers(0, 100)))
    return limits, demand, gpus


Tree = tuple[list[QueueLimit], dict[QueueName, float], float]


@given(trees())
def test_sums_and_bounds(tree: Tree) -> None:
    """Nobody above its demand or maximum, everybody at min(demand, G) at least, children within their parent."""
    limits, demand, gpus = tree
    found = entitlements(limits, demand, gpus)
    assert set(found) == {limit.name for limit in limits}
    for limit in limits:
        below = [child for child in limits if child.parent == limit.name]
        assert sum(found[child.name] for child in below) <= found[limit.name] + 1e-6
        assert found[limit.name] <= limit.max_gpus + 1e-6
        if not below:
            assert found[limit.name] <= demand[limit.name] + 1e-6
            sure = min(demand[limit.name], limit.guaranteed_gpus)
            assert found[limit.name] >= sure - 1e-6


@given(trees())
def test_nothing_is_left_over_that_somebody_could_use(tree: Tree) -> None:
    """A parent's children either have all of it, or each has all that it wants."""
    limits, demand, gpus = tree
    found = entitlements(limits, demand, gpus)
    wanted = dict(demand)
    for limit in reversed(limits):
        below = [child for child in limits if child.parent == limit.name]
        if below:
            wanted[limit.name] = sum(wanted[child.name] for child in below)
            given_away = sum(found[child.name] for child in below)
            least = min(found[limit.name], wanted[limit.name])
            assert given_away == pytest.approx(least, abs=1e-6)
        wanted[limit.name] = min(wanted[limit.name], limit.max_gpus)


@given(trees(), st.integers(1, 20))
def test_who_asks_for_more_is_never_entitled_to_less(tree: Tree, more: int) -> None:
    """Monotone in a queue's own demand, and antitone for everybody who is no ancestor of it."""
    limits, demand, gpus = tree
    name = sorted(demand)[more % len(demand)]
    before = entitlements(limits, demand, gpus)
    after = entitlements(limits, {**demand, name: demand[name] + more}, gpus)
    assert after[name] >= before[name] - 1e-6
    siblings = [
        limit.name
        for limit in limits
        if limit.name in demand and limit.name != name and limit.parent == name.rpartition(".")[0]
    ]
    if name.count(".") == 1:
        assert all(after[other] <= before[other] + 1e-6 for other in siblings)


@given(
    st.floats(0, 100),
    st.lists(st.tuples(st.floats(0, 50), st.floats(0, 10)), min_size=1, max_size=6),
)
def test_a_fill_gives_all_it_can(amount: float, claims: list[tuple[float, float]]) -> None:
    caps = [cap for cap, _ in claims]
    parts = fill(amount, caps, [weight for _, weight in claims])
    assert sum(parts) == pytest.approx(min(amount, sum(caps)), abs=1e-6)
    assert all(0 <= part <= cap + 1e-9 for part, cap in zip(parts, caps, strict=True))
