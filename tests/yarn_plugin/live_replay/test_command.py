"""`gandiva live-replay`: bad input is one line and exit code 3."""

from __future__ import annotations

from pathlib import Path

import pytest

from gandiva_core.cli.main import run


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--arms", "capacity,capacity"], "--arms"),
        (["--arms", "fifo"], "some of capacity, gandiva"),
        (["--scale", "0"], "a number above 0"),
    ],
)
def test_bad_input_names_the_option(
    arguments: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("job_id,arrival_s,g,total_steps,model,ref_duration_s\na,0,1,10,,10\n")
    assert run(["live-replay", str(trace), "--out", str(tmp_path / "out"), *arguments]) == 3
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1
    assert expected in told[0]
    assert not (tmp_path / "out").exists()
