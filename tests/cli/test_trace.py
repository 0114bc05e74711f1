"""`gandiva trace`, in this process: what it prints, where, and its exit codes (DESIGN §10)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gandiva_core.cli.main import ExitCode, run
from gandiva_core.replay.traces import registry
from gandiva_core.replay.traces.readers import own

GOOD = "job_id,arrival_s,g,total_steps\n" + "".join(f"j{i},{i},1,10\n" for i in range(300))
BAD = GOOD.replace("j7,7,1,10", "j7,7,0,10").replace("j9,9,1,10", "j9,9,1")

Captured = pytest.CaptureFixture[str]


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_clean_file_validates(tmp_path: Path, capsys: Captured) -> None:
    path = write(tmp_path, GOOD)
    assert run(["trace", "validate", str(path)]) == ExitCode.DONE
    out, err = capsys.readouterr()
    assert out == f"{path}: format own, 300 of 300 rows are jobs\n"
    assert err == ""


def test_few_faults_are_told_on_stdout_and_pass(tmp_path: Path, capsys: Captured) -> None:
    path = write(tmp_path, BAD)
    assert run(["trace", "validate", str(path)]) == ExitCode.DONE
    assert capsys.readouterr().out.splitlines() == [
        f"{path}: format own, 298 of 300 rows are jobs, 2 left out",
        f"{path}:11: column_count: 1 left out (line 11): 3 columns, expected 4",
        f"{path}:9: zero_gpu: 1 left out (line 9): g 0",
    ]


def test_too_many_faults_fail_after_they_were_told(tmp_path: Path, capsys: Captured) -> None:
    path = write(tmp_path, "job_id,arrival_s,g,total_steps\na,0,1,5\nb,0,0,5\n")
    assert run(["trace", "validate", str(path)]) == ExitCode.CHECK_FAILED
    out, err = capsys.readouterr()
    assert "zero_gpu: 1 left out" in out
    assert err.count("\n") == 1
    assert "1 of 2 rows faulty" in err
    assert run(["trace", "validate", str(path), "--on-bad", "skip"]) == ExitCode.DONE
    assert run(["trace", "validate", str(path), "--on-bad", "fail"]) == ExitCode.BAD_INPUT


@pytest.mark.parametrize("content", [b"", b"\0\0", b"\xff\xfe", b"what is this\n"])
@pytest.mark.parametrize("command", ["validate", "convert", "stats"])
def test_what_is_no_trace_is_one_line_and_code_3(
    tmp_path: Path, capsys: Captured, command: str, content: bytes
) -> None:
    path = tmp_path / "odd"
    path.write_bytes(content)
    assert run(["trace", command, str(path)]) == ExitCode.BAD_INPUT
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"gandiva: error: {path}")
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["validate", "convert", "stats"])
def test_a_missing_file_and_a_directory_are_code_3(
    tmp_path: Path, capsys: Captured, command: str
) -> None:
    assert run(["trace", command, str(tmp_path / "absent")]) == ExitCode.BAD_INPUT
    assert run(["trace", command, str(tmp_path)]) == ExitCode.BAD_INPUT
    assert capsys.readouterr().err.count("\n") == 2


def test_convert_writes_the_own_format_and_tells_findings_on_stderr(
    tmp_path: Path, capsys: Captured
) -> None:
    out = tmp_path / "out.csv"
    assert run(["trace", "convert", str(write(tmp_path, BAD)), str(out)]) == ExitCode.DONE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "zero_gpu: 1 left out" in captured.err
    trace = registry.load(out)
    assert len(trace.jobs) == 298
    assert trace.left_out == {"column_count": 1, "zero_gpu": 1}


def test_convert_to_stdout_is_the_file(tmp_path: Path, capsys: Captured) -> None:
    path = write(tmp_path, GOOD)
    assert run(["trace", "convert", str(path)]) == ExitCode.DONE
    assert capsys.readouterr().out.encode() == own.write(registry.load(path))


def test_a_place_that_cannot_be_written_is_code_3(tmp_path: Path, capsys: Captured) -> None:
    path = write(tmp_path, GOOD)
    assert run(["trace", "convert", str(path), str(tmp_path)]) == ExitCode.BAD_INPUT
    assert run(["trace", "convert", str(path), str(tmp_path / "no" / "x")]) == ExitCode.BAD_INPUT
    assert "a folder that does not exist" in capsys.readouterr().err


def test_synth_is_the_generator_byte_for_byte(tmp_path: Path, capsys: Captured) -> None:
    assert run(["trace", "synth", "gandiva-3h", "--seed", "4"]) == ExitCode.DONE
    assert capsys.readouterr().out.encode() == own.write(registry.load("gandiva-3h", seed=4))
    assert run(["trace", "synth", "gandiva-4h"]) == ExitCode.BAD_INPUT
    assert "gandiva-9d, gandiva-3h, gandiva-180" in capsys.readouterr().err


def test_stats_of_a_builtin_trace_against_its_cluster(capsys: Captured) -> None:
    assert run(["trace", "stats", "gandiva-180", "--json"]) == ExitCode.DONE
    figures = json.loads(capsys.readouterr().out)
    assert figures["jobs"] == 1000
    assert figures["load"] == pytest.approx(figures["demand_gpus"] / 180)
    assert run(["trace", "stats", "gandiva-9d"]) == ExitCode.DONE
    assert "load of gandiva-100" in capsys.readouterr().out


def test_stats_of_a_file_against_a_named_cluster(tmp_path: Path, capsys: Captured) -> None:
    path = write(tmp_path, GOOD)
    assert run(["trace", "stats", str(path), "--cluster", "gandiva-180"]) == ExitCode.DONE
    out = capsys.readouterr().out
    assert "load of gandiva-180" in out
    assert "jobs on 1 GPUs" in out
    assert run(["trace", "stats", str(path), "--cluster", "none"]) == ExitCode.BAD_INPUT


def test_formats_are_listed(capsys: Captured) -> None:
    assert run(["trace", "formats", "--format", "json"]) == ExitCode.DONE
    listed = {row["format"] for row in json.loads(capsys.readouterr().out)}
    assert listed == {form.name for form in registry.FORMATS}


def test_a_rule_is_an_option(tmp_path: Path, capsys: Captured) -> None:
    """I07: arrivals are refused until a rule is named."""
    path = write(tmp_path, "name,num_gpu,gpu_milli,deletion_time,scheduled_time\np,1,1000,90,50\n")
    assert run(["trace", "validate", str(path)]) == ExitCode.BAD_INPUT
    assert "--arrivals scheduled" in capsys.readouterr().err
    assert run(["trace", "validate", str(path), "--arrivals", "scheduled"]) == ExitCode.DONE
    assert "arrivals by rule: scheduled" in capsys.readouterr().out


def test_calibrate_names_the_engines_there_are(capsys: Captured) -> None:
    assert run(["trace", "calibrate", "--engine", "abacus"]) == ExitCode.BAD_INPUT
    assert "yarn" in capsys.readouterr().err


def test_calibrate_checks_the_law_in_use(capsys: Captured) -> None:
    """GE-14: seed 1 alone is within 5 % of 832 and 13,371 min in the modelled capacity arm."""
    assert run(["trace", "calibrate", "--seeds", "1"]) == ExitCode.DONE
    out, err = capsys.readouterr()
    assert out.splitlines()[0].split() == ["SEED", "MEAN", "JCT", "MIN", "MAKESPAN", "MIN"]
    assert '"last_end_min":11300.0' in out
    assert err.startswith("gandiva: miss ")
