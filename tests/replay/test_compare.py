"""`gandiva report A B`: arms run apart are joined only where all but the scheduler was the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gandiva_core.model.errors import InputError
from gandiva_core.replay import details
from gandiva_core.replay.compare import join, target
from gandiva_core.replay.details import RunDetails
from gandiva_core.replay.summary import summarise

Maker = Callable[..., RunDetails]


def stored(tmp_path: Path, name: str, *runs: RunDetails) -> Path:
    for run in runs:
        details.write(run, tmp_path / name)
    return tmp_path / name


def test_two_folders_make_one_comparison(make_run: Maker, tmp_path: Path) -> None:
    b = stored(tmp_path, "b", make_run("gandiva", {"a": 50.0}))
    a = stored(tmp_path, "a", make_run("capacity", {"a": 100.0}))
    runs = join([b, a], tmp_path / "joint" / "deep")
    assert [run.arm for run in runs] == ["capacity", "gandiva"]
    assert runs[0].journal == "../../a/journals/capacity_server_1.jsonl.zst"
    assert summarise(runs).ratios["gandiva"].mean_jct == 2.0


def test_arms_stay_in_the_order_asked_for(make_run: Maker, tmp_path: Path) -> None:
    names = ["zeta", "capacity", "alpha"]
    runs = [make_run(name, {"a": 1.0}, position=at) for at, name in enumerate(names)]
    folder = stored(tmp_path, "a", *runs)
    assert [run.arm for run in join([folder], folder)] == ["capacity", "zeta", "alpha"]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"nodes": "m" * 64}, "nodes mmmmmmmmmmmm"),
        ({"queues": "q" * 64}, "queue file qqqqqqqqqqqq"),
        ({"trace": "u" * 64}, "trace tiny with jobs uuuuuuuuuuuu"),
        ({"engine": "yarn"}, "engine yarn"),
    ],
)
def test_a_difference_is_refused_by_name(
    make_run: Maker, tmp_path: Path, change: dict[str, Any], word: str
) -> None:
    a = stored(tmp_path, "a", make_run("capacity", {"a": 100.0}))
    b = stored(tmp_path, "b", make_run("gandiva", {"a": 50.0}, **change))
    with pytest.raises(InputError) as caught:
        join([a, b], tmp_path)
    assert word in caught.value.found
    assert str(b) in caught.value.place
    assert str(a) in caught.value.expected


def test_another_seed_or_shape_may_have_other_jobs(make_run: Maker, tmp_path: Path) -> None:
    a = stored(tmp_path, "a", make_run("capacity", {"a": 1.0}, trace="u" * 64, seed=2))
    b = stored(tmp_path, "b", make_run("capacity", {"a": 1.0}, shape="gpu", trace="v" * 64))
    c = stored(tmp_path, "c", make_run("capacity", {"a": 1.0}))
    assert len(join([a, b, c], tmp_path)) == 3


def test_the_same_run_twice_is_refused(make_run: Maker, tmp_path: Path) -> None:
    a = stored(tmp_path, "a", make_run("capacity", {"a": 1.0}))
    b = stored(tmp_path, "b", make_run("capacity", {"a": 1.0}))
    with pytest.raises(InputError, match="again"):
        join([a, b], tmp_path)


def test_a_target_is_needed_for_several(tmp_path: Path) -> None:
    assert target([tmp_path], None) == tmp_path
    assert target([tmp_path / "a", tmp_path / "b"], tmp_path) == tmp_path
    with pytest.raises(InputError, match="--out"):
        target([tmp_path / "a", tmp_path / "b"], None)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"format": 1}', b"[]"])
def test_a_broken_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "runs").mkdir()
    path = tmp_path / "runs" / "x.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"x\.json"):
        details.read_all(tmp_path)


def test_a_folder_without_runs_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"runs/\*\.json"):
        details.read_all(tmp_path)
