"""`gandiva bench move`: a run of seconds through two real launchers and two real PyTorch processes."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from gandiva_core.model.errors import InputError
from nodemanager_agent.bench import move

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch: make env-jobs")


@needs_torch
def test_the_parts_make_up_the_time_that_it_stands_still() -> None:
    """G-75; GE-7: of two workers one saves, and both load it."""
    said: list[str] = []
    row, gang = move.run(is_quick=True, say=said.append)
    assert said == ["move: 3 MiB x 1, 1 of 1", "move: 3 MiB x 2, 1 of 1"]
    assert (row["flat_ratio"], row["wall_ratio"]) == (1.0, 1.0)
    assert float(gang["saved_mib"]) < 1.5 * float(row["saved_mib"])
    assert 0 < float(gang["save_cpu_s"]) <= float(gang["save_s"])
    assert float(gang["flat_ratio"]) > 0
    parts = ("save_s", "transfer_s", "restore_s", "first_minibatch_s")
    assert float(row["frozen_s"]) == pytest.approx(sum(float(row[name]) for name in parts))
    assert 0 < float(row["verify_s"]) < float(row["restore_s"])
    assert 0 < float(row["frozen_s"]) < float(row["order_s"]) + 0.1 < 30
    assert float(row["saved_mib"]) == pytest.approx(3, rel=0.1)


def test_without_torch_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(move, "find_spec", lambda _: None)
    with pytest.raises(InputError, match="make env-jobs"):
        move.run(is_quick=True, say=lambda _: None)
