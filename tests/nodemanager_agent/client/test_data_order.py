"""No sample twice and none left out, whatever the number of workers (case G05)."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodemanager_agent.client.data_order import DataOrder


def gang(
    world_size: int, micro_batch: int, done: int = 0, samples: int = 64 * 150
) -> list[DataOrder]:
    ranks = [DataOrder(samples, 64, micro_batch, rank, world_size) for rank in range(world_size)]
    for each in ranks:
        each.load_state_dict({**each.state_dict(), "samples_done": done})
    return ranks


def steps(ranks: list[DataOrder], count: int) -> list[list[int]]:
    """Samples of each global batch, over all ranks and micro-batches."""
    parts = [[next(iter(each)) for each in ranks] for _ in range(count)]
    return [[index for rank in step for micro in rank for index in micro] for step in parts]


def test_g05_two_ranks_accumulating_four_go_on_as_four_accumulating_two() -> None:
    """Micro-batch 8, accumulation 4, 2 ranks, 100 optimizer steps; then 4 ranks, accumulation 2."""
    before = gang(2, 8)
    assert [each.accumulation for each in before] == [4, 4]
    seen = [index for batch in steps(before, 100) for index in batch]
    assert {each.samples_done for each in before} == {6400}
    after = gang(4, 8, done=before[0].samples_done)
    assert [each.accumulation for each in after] == [2] * 4
    plain = DataOrder(64 * 150, 64, 64)
    plain.samples_done = 6400
    assert after[0].step()[0][0] == plain.step()[0][0]  # sample 6 400 of the order is the first
    seen += [index for batch in steps(after, 50) for index in batch]
    assert len(seen) == len(set(seen)) == 9600
    assert {each.epoch for each in after} == {1}


@given(
    sizes=st.lists(
        st.sampled_from([(1, 8), (2, 8), (4, 4), (8, 8), (1, 64)]), min_size=1, max_size=8
    )
)
def test_any_sequence_of_sizes_gives_the_same_global_batches(sizes: list[tuple[int, int]]) -> None:
    """Over two epochs of four steps and a rest of 10 samples that makes no batch."""
    reference = gang(1, 64, samples=266)
    done = 0
    for world_size, micro_batch in sizes:
        ranks = gang(world_size, micro_batch, done, samples=266)
        assert [sorted(each) for each in steps(ranks, 1)] == [
            sorted(each) for each in steps(reference, 1)
        ]
        done = ranks[0].samples_done


def test_epochs_are_shuffled_anew_and_end() -> None:
    order = DataOrder(10, 4, 2, seed=3)
    first = [sorted(index for micro in step for index in micro) for step in order]
    second = [sorted(index for micro in step for index in micro) for step in order]
    assert len(first) == len(second) == 2
    assert first != second
    assert order.epoch == 2
    plain = DataOrder(10, 4, 4, seed=None)
    assert list(islice(plain, 2)) == [[[0, 1, 2, 3]], [[4, 5, 6, 7]]]


def test_what_cannot_be_cut_or_continued_is_refused() -> None:
    for arguments in ((64, 65, 1), (64, 0, 1), (64, 32, 0), (64, 32, 5)):
        with pytest.raises(ValueError, match="a global batch of"):
            DataOrder(*arguments)
    with pytest.raises(ValueError, match="on 3 workers"):
        DataOrder(64, 32, 1, world_size=3)
    with pytest.raises(ValueError, match="global_batch, seed differs"):
        DataOrder(64, 32, 1, seed=1).load_state_dict(DataOrder(64, 16, 1).state_dict())
