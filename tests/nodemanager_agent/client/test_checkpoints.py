"""Checkpoints are whole or not there: FAULTS E13, E14; case B03."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodemanager_agent.client.checkpoints import (
    MANIFEST,
    NEWEST,
    Checkpoint,
    CheckpointError,
    CheckpointStore,
)
from nodemanager_agent.client.interval import Interval

STATE = bytes(range(256)) * 20


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    """Two generations, of steps 50 and 100."""
    store = CheckpointStore(str(tmp_path / "store"))
    save(store, 50)
    save(store, 100)
    return store


def save(store: CheckpointStore, step: int, size: int = 1) -> None:
    with store.write(step, "torch", 12, {"state": f"of {step}"}) as draft:
        with draft.open("model") as file:
            file.write(b"%d " % step + STATE * size)
        with draft.open("position") as file:
            file.write(str(step).encode())


def fail(store: CheckpointStore, error: Exception) -> None:
    """A writer that fails in the middle."""
    with store.write(150, "torch", 12) as draft, draft.open("model") as file:
        file.write(STATE)
        raise error


def generation(store: CheckpointStore, number: int) -> Path:
    return Path(store.folder) / f"generation-{number:08d}"


def assert_fell_back(store: CheckpointStore) -> Checkpoint:
    found = store.read()
    assert (found.generation, found.step) == (1, 50)
    assert Path(found.path("model")).read_bytes() == b"50 " + STATE
    assert len(found.refused) == 1
    return found


def test_what_was_written_comes_back(store: CheckpointStore) -> None:
    found = store.read()
    assert (found.generation, found.step, found.framework, found.world_size) == (
        2,
        100,
        "torch",
        12,
    )
    assert found.continuity == {"state": "of 100"}
    assert Path(found.path("model")).read_bytes() == b"100 " + STATE
    assert not found.refused
    with pytest.raises(KeyError):
        found.path("other")


def test_a_flipped_bit_is_found_wherever_it_is(store: CheckpointStore) -> None:
    """E14: every byte of the manifest, every 37th of a file, each with every bit."""
    for name, stride in ((MANIFEST, 1), ("model", 37), ("position", 1)):
        path = generation(store, 2) / name
        good = path.read_bytes()
        for place in range(0, len(good), stride):
            bad = bytearray(good)
            bad[place] ^= 1 << place % 8
            path.write_bytes(bad)
            assert_fell_back(store)
        path.write_bytes(good)
    assert store.read().generation == 2


@pytest.mark.parametrize("name", [MANIFEST, "model", "position"])
def test_a_truncated_or_missing_or_longer_file_is_found(store: CheckpointStore, name: str) -> None:
    path = generation(store, 2) / name
    good = path.read_bytes()
    for bad in (good[:-1], good[: len(good) // 2], b"", good + b"\n"):
        path.write_bytes(bad)
        assert_fell_back(store)
    path.unlink()
    assert_fell_back(store)


def test_an_older_generation_in_the_place_of_a_newer_is_found(store: CheckpointStore) -> None:
    """E14: the whole folder, or one file of it."""
    one, two = generation(store, 1), generation(store, 2)
    shutil.copy(one / "model", two / "model")
    assert "model" in assert_fell_back(store).refused[0]
    shutil.rmtree(two)
    shutil.copytree(one, two)
    assert "it is generation 1" in assert_fell_back(store).refused[0]


def test_swapped_generations_are_both_refused(store: CheckpointStore, tmp_path: Path) -> None:
    one, two, other = generation(store, 1), generation(store, 2), tmp_path / "other"
    one.rename(other)
    two.rename(one)
    other.rename(two)
    with pytest.raises(CheckpointError, match="it is generation 1; generation 1: it is") as raised:
        store.read()
    assert raised.value.code == "NO_CHECKPOINT"


def test_a_generation_that_went_away_is_told(store: CheckpointStore) -> None:
    shutil.rmtree(generation(store, 2))
    assert "generation 2 is gone" in assert_fell_back(store).refused


def test_an_older_snapshot_of_the_whole_folder_is_found_by_what_others_know(
    store: CheckpointStore, tmp_path: Path
) -> None:
    shutil.copytree(store.folder, tmp_path / "snapshot")
    save(store, 150)
    assert store.read(at_least_step=150).step == 150
    shutil.rmtree(store.folder)
    shutil.copytree(tmp_path / "snapshot", store.folder)
    with pytest.raises(CheckpointError, match=r"step 100 .* step 150") as raised:
        store.read(at_least_step=150)
    assert raised.value.code == "STALE"


def test_names_that_lead_elsewhere_are_refused(store: CheckpointStore) -> None:
    for name in ("../model", "/etc/passwd", "", "..", MANIFEST):
        with (
            pytest.raises(ValueError, match="file name"),
            store.write(1, "torch", 1) as draft,
            draft.open(name),
        ):
            pass
    assert store.read().generation == 2


def test_a_writer_that_raises_or_dies_leaves_what_was_there(store: CheckpointStore) -> None:
    with pytest.raises(RuntimeError):
        fail(store, RuntimeError("no"))
    program = (
        "import os, sys\n"
        "from nodemanager_agent.client.checkpoints import CheckpointStore\n"
        "with CheckpointStore(sys.argv[1]).write(150, 'torch', 12) as draft:\n"
        "    with draft.open('model') as file:\n"
        "        file.write(b'half')\n"
        "        os.kill(os.getpid(), 9)\n"
    )
    assert (
        subprocess.run([sys.executable, "-c", program, store.folder], check=False).returncode == -9
    )
    assert list(Path(store.folder).glob(".partial*"))
    assert store.read().step == 100
    save(store, 150)
    assert {each.name for each in Path(store.folder).iterdir()} == {
        "generation-00000002",
        "generation-00000003",
        NEWEST,
    }


def test_a_name_is_never_given_twice(store: CheckpointStore) -> None:
    """A generation that was lost and a new one under its number could be taken for each other."""
    shutil.rmtree(generation(store, 2))
    save(store, 150)
    assert store.generations() == [1, 3]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """16 MiB (E13)."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("a file system of 16 MiB needs the right to mount")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_told_and_nothing_half_is_selectable(small_disk: Path) -> None:
    """E13: what fits is kept, what does not is refused with the place, and the room is given back."""
    store = CheckpointStore(str(small_disk / "store"))
    save(store, 50, size=1000)  # 5 MB
    free = shutil.disk_usage(small_disk).free
    with pytest.raises(CheckpointError, match=f"^no space on {store.folder}$") as raised:
        save(store, 100, size=4000)
    assert raised.value.code == "NO_SPACE"
    assert store.generations() == [1]
    assert shutil.disk_usage(small_disk).free == free
    assert store.read().step == 50
    save(store, 150, size=1000)
    assert store.read().step == 150


def hide(store: CheckpointStore) -> None:
    with store.write(1, "torch", 1) as draft, draft.open("model") as file:
        try:
            file.write(bytes(20 << 20))
        except OSError:
            raise RuntimeError("unexpected pos") from None


def test_a_framework_that_hides_the_error_does_not_hide_the_full_disk(small_disk: Path) -> None:
    """torch's writer makes a RuntimeError of it."""
    store = CheckpointStore(str(small_disk / "store"))
    with pytest.raises(CheckpointError, match="no space"):
        hide(store)
    assert store.generations() == []


def test_a_step_is_found_again_although_newer_ones_are_there(store: CheckpointStore) -> None:
    """B03: what every rank has is not always the newest of each."""
    assert store.steps() == [100, 50]
    assert store.at(50).step == 50
    with pytest.raises(CheckpointError, match="no step 70"):
        store.at(70)
    path = Path(store.at(50).path("model"))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="generation 1: model has"):
        store.at(50)


def test_an_interval_counts_what_a_failure_would_cost() -> None:
    """B03: 12 workers, a checkpoint each 50 steps; one is lost at step 137."""
    interval = Interval(50)
    for step in range(1, 138):
        if interval.is_due(step):
            interval.written(step)
    assert (interval.step, interval.lost(137)) == (100, 37)
    assert Interval(50, 99).is_due(100)
    assert not Interval(50, 100).is_due(149)
    assert Interval(50, 100).is_due(260)
