"""One process of a machine checks a file, the others take its word (G-68 B; FAULTS E14)."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from nodemanager_agent.client import verified

BIG = b"x" * verified.WORTH_BYTES


class Checks:
    """Counts, slowly enough to be waited for."""

    def __init__(self, problem: str = "") -> None:
        self.count = 0
        self.problem = problem

    def __call__(self) -> None:
        self.count += 1
        time.sleep(0.05)
        if self.problem:
            raise ValueError(self.problem)


def read(folder: Path, check: Checks) -> int:
    verified.once(str(folder), ["state"], check)
    return check.count


def test_of_many_at_once_one_checks(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(BIG)
    check = Checks()
    readers = [threading.Thread(target=read, args=(tmp_path, check)) for _ in range(8)]
    for each in readers:
        each.start()
    for each in readers:
        each.join()
    assert check.count == 1


def test_what_was_written_to_since_is_checked_again(tmp_path: Path) -> None:
    """E14: the same size and, by an old hand's trick, the same time of change."""
    state = tmp_path / "state"
    state.write_bytes(BIG)
    check = Checks()
    assert [read(tmp_path, check), read(tmp_path, check)] == [1, 1]
    before = state.stat()
    state.write_bytes(b"y" + BIG[1:])
    os.utime(state, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert read(tmp_path, check) == 2


def test_a_word_is_given_for_what_is_whole_and_holds_a_minute(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(BIG)
    bad = Checks("flipped")
    for _ in range(2):
        with pytest.raises(ValueError, match="flipped"):
            read(tmp_path, bad)
    assert bad.count == 2
    check = Checks()
    assert read(tmp_path, check) == 1
    old_s = time.time() - 61
    os.utime(tmp_path / ".verified", (old_s, old_s))
    assert read(tmp_path, check) == 2


def test_small_files_and_foreign_folders_are_checked_by_everybody(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"few")
    check = Checks()
    assert [read(tmp_path, check), read(tmp_path, check)] == [1, 2]
    assert not (tmp_path / ".verified").exists()
    (tmp_path / "state").write_bytes(BIG)
    (tmp_path / ".verified").mkdir()  # cannot be opened to write, as in a folder of others
    assert [read(tmp_path, check), read(tmp_path, check)] == [3, 4]
