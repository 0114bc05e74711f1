"""`gandiva bench suspend`: a run of seconds through a real launcher and a real PyTorch process."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from gandiva_core.model.errors import InputError
from nodemanager_agent.bench import suspend

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch: make env-jobs")


@needs_torch
def test_a_row_says_what_it_is_held_against() -> None:
    """Issue 5: suspend and resume against a plain copy of the same bytes in the same run."""
    said: list[str] = []
    (row,) = suspend.run(is_quick=True, say=said.append)
    assert said == ["suspend: 8 MiB"]
    assert row["state_mib"] == 8
    for name in ("copy_s", "minibatch_s", "suspend_s", "resume_s", "first_suspend_s"):
        value = row[name]
        assert isinstance(value, float)
        assert 0 < value < 30
    bound_s = 1.5 * float(row["copy_s"]) + float(row["minibatch_s"])
    assert row["suspend_ratio"] == pytest.approx(float(row["suspend_s"]) / bound_s)
    assert float(row["freed_ratio"]) > 0.95


def test_without_torch_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suspend, "find_spec", lambda _: None)
    with pytest.raises(InputError, match="make env-jobs"):
        suspend.run(is_quick=True, say=lambda _: None)
