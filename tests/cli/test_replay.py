"""`gandiva replay` end to end on the simulator: results, determinism, interruption, and bad input of every kind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CommandLine = Callable[..., subprocess.CompletedProcess[str]]
Writer = Callable[..., Path]

MIX = (
    ("a", 0, 4, 3000),
    ("b", 10, 2, 2000),
    ("c", 20, 8, 900),
    ("d", 30, 1, 400),
    ("e", 40, 6, 500),
    ("f", 50, 1, 50),
    ("g", 4000, 3, 200),
)


def summary_of(out: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((out / "summary.json").read_bytes())
    return content


def jcts_of(out: Path, run: str) -> dict[str, float]:
    details = json.loads((out / "runs" / f"{run}.json").read_bytes())
    return {job["job_id"]: job["ended_s"] - job["arrival_s"] for job in details["jobs"]}


def sim(trace: Path | str, *more: str | Path) -> list[str | Path]:
    return ["replay", trace, "--engine", "sim", "--out", "out", *more]


def test_both_arms_both_shapes_two_seeds(
    gandiva: CommandLine, write_trace: Writer, write_cluster: Writer, tmp_path: Path
) -> None:
    done = gandiva(*sim(write_trace(*MIX), "--cluster", write_cluster(2, 4), "--seeds", "2"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"report: {Path('out/report.html')}"
    assert "\x1b" not in done.stderr
    summary = summary_of(tmp_path / "out")
    assert set(summary["arms"]) == {"capacity", "gandiva"}
    assert set(summary["shapes"]) == {"gpu", "server"}
    for shape in summary["shapes"].values():
        for arm in shape["arms"].values():
            assert (arm["jobs"], arm["finished"]) == (14, 14)
            assert arm["makespan_s"] >= 3000
    runs = [run for arm in summary["arms"].values() for run in arm["runs"]]
    assert {(run["shape"], run["seed"]) for run in runs} == {
        (shape, seed) for shape in ("gpu", "server") for seed in (1, 2)
    }
    assert all((tmp_path / "out" / run["journal"]).is_file() for run in runs)
    assert summary["ratios"]["gandiva"]["mean_jct"] == pytest.approx(
        summary["arms"]["capacity"]["mean_jct_s"] / summary["arms"]["gandiva"]["mean_jct_s"]
    )
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert runs[0]["journal_sha256"] in page

    checked = gandiva("recheck", "out")
    assert checked.returncode == 0, checked.stdout
    assert checked.stdout.count(" 0 differences") == 8


def test_the_same_seed_gives_the_same_journal(
    gandiva: CommandLine, write_trace: Writer, write_cluster: Writer, tmp_path: Path
) -> None:
    """C-6."""
    trace, cluster = write_trace(*MIX), write_cluster(2, 4)
    hashes = []
    for name in ("one", "two"):
        arguments = sim(trace, "--cluster", cluster, "--shape", "gpu", "--out", name)
        assert gandiva(*arguments).returncode == 0
        arms = summary_of(tmp_path / name)["arms"]
        hashes.append({arm: each["runs"][0]["journal_sha256"] for arm, each in arms.items()})
    assert hashes[0] == hashes[1]
    assert len(set(hashes[0].values())) == 2


@pytest.mark.parametrize("arm", ["fifo", "capacity"])
def test_f07_the_run_goes_on_until_the_last_job_ends(
    gandiva: CommandLine, write_trace: Writer, write_cluster: Writer, tmp_path: Path, arm: str
) -> None:
    """Case F07: one GPU, jobs of 100 s and 1,000 s at t = 0 have JCTs 100 and 1,100; 2 of 2 finish."""
    trace = write_trace(("short", 0, 1, 100), ("long", 0, 1, 1000))
    done = gandiva(*sim(trace, "--cluster", write_cluster(), "--arms", arm, "--shape", "gpu"))
    assert done.returncode == 0, done.stderr
    figures = summary_of(tmp_path / "out")["arms"][arm]
    assert (figures["jobs"], figures["finished"]) == (2, 2)
    assert figures["makespan_s"] == 1100.0
    assert jcts_of(tmp_path / "out", f"{arm}_gpu_1") == {"short": 100.0, "long": 1100.0}


GAVEL = "ResNet-18 (batch size 64)\tpython3 main.py\timage_classification\t--num_steps\t0\t1000\t1\t1\t-1.000000\t{}\n"


def play_gap(
    gandiva: CommandLine, cluster: Path, tmp_path: Path, trace: Path, name: str
) -> tuple[list[float], float]:
    arguments = sim(trace, "--cluster", cluster, "--arms", "fifo", "--shape", "gpu", "--out", name)
    done = gandiva(*arguments)
    assert done.returncode == 0, done.stderr
    jcts = list(jcts_of(tmp_path / name, "fifo_gpu_1").values())
    return jcts, summary_of(tmp_path / name)["arms"]["fifo"]["makespan_s"]


@pytest.mark.parametrize("is_shared", [False, True], ids=["own", "shared"])
def test_f03_a_late_start_and_a_gap_change_nothing(
    gandiva: CommandLine,
    write_cluster: Writer,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    is_shared: bool,
) -> None:
    """Case F03: with all arrivals shifted by a day the JCTs and the makespan from the first arrival are the same."""
    if is_shared:
        folder = request.getfixturevalue("shared_dir") / "cases" / "trace"
        gap, shifted = folder / "F03_gap.tsv", folder / "F03_gap_shifted.tsv"
    else:
        gap, shifted = tmp_path / "gap.tsv", tmp_path / "shifted.tsv"
        gap.write_text(GAVEL.format(86400) + GAVEL.format(186400), encoding="utf-8")
        shifted.write_text(GAVEL.format(0) + GAVEL.format(100000), encoding="utf-8")
    cluster = write_cluster()
    jcts, makespan_s = play_gap(gandiva, cluster, tmp_path, gap, "a")
    jcts_shifted, makespan_shifted_s = play_gap(gandiva, cluster, tmp_path, shifted, "b")
    assert len(jcts) == 2
    assert jcts[0] == jcts[1] == jcts_shifted[0] == jcts_shifted[1]
    assert makespan_s == makespan_shifted_s


def test_jobs_larger_than_the_cluster_are_told_and_counted(
    gandiva: CommandLine, write_trace: Writer, write_cluster: Writer, tmp_path: Path
) -> None:
    trace = write_trace(("fits", 0, 1, 10), ("huge", 0, 99, 10))
    done = gandiva(*sim(trace, "--cluster", write_cluster(1, 4), "--arms", "fifo"))
    assert done.returncode == 0
    assert "1 job not submitted: more GPUs than the cluster (huge)" in done.stderr
    assert summary_of(tmp_path / "out")["left_out"] == {"more GPUs than the cluster": 1}


def test_a_gang_deadlock_of_a_baseline_is_reported_as_such(
    gandiva: CommandLine, write_trace: Writer, write_cluster: Writer, tmp_path: Path
) -> None:
    """Two gangs of six on eight GPUs: containers one by one under the fair order leave both with a part, for ever."""
    trace = write_trace(("J1", 0, 6, 100), ("J2", 0, 6, 100))
    arguments = sim(trace, "--cluster", write_cluster(2, 4), "--shape", "gpu")
    done = gandiva(*arguments, "--arms", "capacity,capacity-fair,gandiva")
    assert done.returncode == 0, done.stderr
    summary = summary_of(tmp_path / "out")
    fair = summary["arms"]["capacity-fair"]
    assert (fair["finished"], fair["unfinished"]) == (0, 2)
    held = [holder["held_gpus"] for holder in fair["never_finished"]]
    assert [0 < gpus < 6 for gpus in held] == [True, True]
    assert summary["ratios"]["capacity-fair"]["mean_jct"] is None
    assert summary["arms"]["capacity"]["makespan_s"] == 200.0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "capacity-fair, shape gpu: gang deadlock. 2 jobs never finish" in page
    assert f"J1 holds {held[0]} of 6 GPUs" in page


def test_an_earlier_result_does_not_mix_with_a_new_one(
    gandiva: CommandLine, write_trace: Writer, write_cluster: Writer, tmp_path: Path
) -> None:
    trace, cluster = write_trace(("a", 0, 1, 10)), write_cluster()
    arguments = sim(trace, "--cluster", cluster, "--shape", "gpu")
    assert gandiva(*arguments, "--arms", "fifo").returncode == 0
    assert gandiva(*arguments, "--arms", "gandiva").returncode == 0
    assert [path.name for path in (tmp_path / "out" / "runs").iterdir()] == ["gandiva_gpu_1.json"]


def test_a_run_that_fails_leaves_the_earlier_result(
    gandiva: CommandLine, write_trace: Writer, write_cluster: Writer, tmp_path: Path
) -> None:
    arguments = sim(write_trace(("a", 0, 1, 10)), "--cluster", write_cluster(), "--shape", "gpu")
    assert gandiva(*arguments, "--arms", "fifo").returncode == 0
    before = summary_of(tmp_path / "out")
    assert gandiva(*arguments, "--arms", "gandiva,capacity-preempt").returncode == 3
    assert summary_of(tmp_path / "out") == before
    assert gandiva("recheck", "out").returncode == 0


HEEDING_INTERRUPTS = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Starts a program as a terminal does, whatever a test runner in the background ignores."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_a_partial_result(
    gandiva: CommandLine, tmp_path: Path, number: signal.Signals
) -> None:
    arguments = ["replay", "gandiva-9d", "--engine", "sim", "--arms", "fifo,gandiva"]
    script = str(Path(sys.executable).with_name("gandiva"))
    process = subprocess.Popen(
        [sys.executable, "-c", HEEDING_INTERRUPTS, script, *arguments, "--out", "out"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    journal = tmp_path / "out" / "journals" / "gandiva_gpu_1.jsonl.zst"
    deadline_s = time.monotonic() + 120
    while not (journal.exists() and journal.stat().st_size > 0):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert "partial" in stderr
    assert stdout.splitlines()[-1] == "report: out/report.html"
    assert summary_of(tmp_path / "out")["partial"] is True
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Partial result" in page
    checked = gandiva("recheck", journal)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "0 differences, of an interrupted run" in checked.stdout


def bad_inputs(
    tmp_path: Path, write_trace: Writer, write_cluster: Writer
) -> dict[str, list[str | Path]]:
    """Argument lists by what is wrong with them."""
    trace = write_trace(("a", 0, 1, 10))
    cluster = write_cluster()
    for name, content in {
        "empty.csv": b"",
        "binary.csv": bytes(range(256)) * 20,
        "words.csv": b"these are\nonly words\n",
        "broken.toml": b"name = ",
        "odd.toml": b'name = "x"\nracks = 3\n',
        "gpuless.toml": b'name="x"\n[[servers]]\ncount=1\ngpus=0\nmemory_mib=1\nvcores=1\n',
    }.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"")
    dirty = tmp_path / "dirty.csv"
    dirty.write_text(trace.read_text() + "b,0,,,0,10,0,1,false,,,,\n", encoding="utf-8")
    broken_site = site(tmp_path / "broken", {"yarn-site.xml": "<configuration"})
    memory_only = site(tmp_path / "memory", {"yarn-site.xml": "<configuration/>"})
    fits: list[str | Path] = ["--cluster", cluster]
    return {
        "no such file": sim("absent.csv", *fits),
        "no such built-in": sim("gandiva-10d", *fits),
        "folder": sim("folder", *fits),
        "empty": sim("empty.csv", *fits),
        "binary": sim("binary.csv", *fits),
        "no format": sim("words.csv", *fits),
        "unknown format": sim(trace, "--trace-format", "excel", *fits),
        "dirty": sim(dirty, "--on-bad", "fail", *fits),
        "too dirty": sim(dirty, *fits),
        "no such cluster": sim(trace, "--cluster", "gandiva-7"),
        "cluster not TOML": sim(trace, "--cluster", "broken.toml"),
        "cluster with unknown key": sim(trace, "--cluster", "odd.toml"),
        "cluster without GPU": sim(trace, "--cluster", "gpuless.toml"),
        "unknown arm": sim(trace, "--arms", "slurm", *fits),
        "no arm": sim(trace, "--arms", ",", *fits),
        "unknown switch": sim(trace, "--arms", "gandiva:+teleport", *fits),
        "arm of another engine": sim(trace, "--arms", "capacity-preempt", *fits),
        "unknown engine": ["replay", trace, "--engine", "warp", *fits],
        "height": sim(trace, "--height-max", "0", *fits),
        "no such folder": sim(trace, "--conf-dir", "absent", *fits),
        "folder without site files": sim(trace, "--conf-dir", "folder", *fits),
        "site file not XML": sim(trace, "--conf-dir", broken_site, *fits),
        "invalid baseline": sim(trace, "--conf-dir", memory_only, *fits),
        "out is a file": sim(trace, *fits, "--out", "file"),
        "no job fits": sim(write_trace(("a", 0, 9, 10), name="huge.csv"), *fits),
    }


def site(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    return folder


KINDS = [
    "no such file", "no such built-in", "folder", "empty", "binary", "no format", "unknown format",
    "dirty", "too dirty", "no such cluster", "cluster not TOML", "cluster with unknown key",
    "cluster without GPU", "unknown arm", "no arm", "unknown switch",
    "arm of another engine", "unknown engine", "height",
    "no such folder", "folder without site files", "site file not XML", "invalid baseline",
    "out is a file", "no job fits",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_bad_input_is_one_line_and_3(
    gandiva: CommandLine, write_trace: Writer, write_cluster: Writer, tmp_path: Path, kind: str
) -> None:
    done = gandiva(*bad_inputs(tmp_path, write_trace, write_cluster)[kind])
    assert done.returncode == 3, done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("gandiva: error: ")
    assert "expected" in line
    assert not (tmp_path / "out" / "report.html").exists()


def test_every_kind_is_tried(tmp_path: Path, write_trace: Writer, write_cluster: Writer) -> None:
    assert list(bad_inputs(tmp_path, write_trace, write_cluster)) == KINDS


def test_an_invalid_baseline_names_the_key_and_why(
    gandiva: CommandLine, write_trace: Writer, write_cluster: Writer, tmp_path: Path
) -> None:
    """Case A02: without the DominantResourceCalculator the stock scheduler counts no GPU; exit code not 0."""
    types = "<property><name>yarn.resource-types</name><value>yarn.io/gpu</value></property>"
    conf = site(tmp_path / "conf", {"yarn-site.xml": f"<configuration>{types}</configuration>"})
    trace = write_trace(("a", 0, 1, 10))
    done = gandiva(*sim(trace, "--cluster", write_cluster(), "--conf-dir", conf))
    assert done.returncode == 3
    assert "invalid baseline" in done.stderr
    assert "yarn.scheduler.capacity.resource-calculator" in done.stderr
    assert "DominantResourceCalculator" in done.stderr
