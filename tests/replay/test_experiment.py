"""Runs in processes of their own: order, progress, faults, and an end from outside."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from gandiva_core.model.errors import GandivaError, InputError
from gandiva_core.replay.experiment import Progress, run_all
from gandiva_core.replay.planning import Shape
from gandiva_core.replay.preparation import Request, prepare
from gandiva_core.replay.run import RunOrder

HEADER = (
    "job_id,arrival_s,model,batch,g,total_steps,priority_class,weight,growshrink,"
    "multi_job_id,entity,slo_factor,ref_duration_s"
)


def orders(tmp_path: Path, arms: str, jobs: int = 20) -> tuple[RunOrder, ...]:
    trace = tmp_path / "trace.csv"
    rows = [f"j{n},{n},,,{1 + n % 3},50,0,1,false,,,," for n in range(jobs)]
    trace.write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")
    return prepare(
        Request(
            trace=str(trace),
            arms=arms,
            engine="sim",
            seeds=(1,),
            shapes=(Shape.GPU,),
            out=tmp_path / "out",
            cluster="gandiva-100",
        )
    ).orders


def test_runs_come_back_in_order_and_tell_their_progress(tmp_path: Path) -> None:
    told: list[Progress] = []
    result = run_all(orders(tmp_path, "gandiva,capacity,fifo"), 2, told.append)
    assert [run.arm for run in result.runs] == ["gandiva", "capacity", "fifo"]
    assert not result.is_interrupted
    last = {progress.run: progress for progress in told}
    assert {name: each.jobs_done for name, each in last.items()} == {
        "gandiva_gpu_1": 20,
        "capacity_gpu_1": 20,
        "fifo_gpu_1": 20,
    }
    assert multiprocessing.active_children() == []


def test_a_killed_run_is_told_and_the_others_end(tmp_path: Path) -> None:
    def kill(_progress: Progress) -> None:
        for process in multiprocessing.active_children():
            if process.pid is not None and process.name == "fifo_gpu_1":
                os.kill(process.pid, signal.SIGKILL)

    with pytest.raises(GandivaError, match="run fifo_gpu_1 ended without a result, exit code -9"):
        run_all(orders(tmp_path, "fifo,gandiva", jobs=4000), 2, kill)
    assert multiprocessing.active_children() == []


def test_bad_input_found_in_a_run_comes_back_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="capacity-preempt"):
        run_all(orders(tmp_path, "capacity-preempt"), 1)
    assert multiprocessing.active_children() == []
