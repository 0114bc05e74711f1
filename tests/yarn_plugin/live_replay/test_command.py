"""`gandiva live-replay`: bad input is one line and exit code 3, and no cluster is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from gandiva_core.cli.main import ExitCode, run
from gandiva_core.model.errors import InputError
from gandiva_core.site.configuration import SiteConfiguration
from yarn_plugin.live_replay.arm import Submission
from yarn_plugin.live_replay.plan import LiveJob
from yarn_plugin.live_replay.site import Site, addresses


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    file = tmp_path / "t.csv"
    file.write_text("job_id,arrival_s,g,total_steps,model,ref_duration_s\na,0,1,10,,10\n")
    return file


def conf(folder: Path, **values: str) -> Path:
    """A Hadoop client's configuration."""
    folder.mkdir()
    lines = "".join(
        f"<property><name>{key.replace('__', '-').replace('_', '.')}</name><value>{value}</value></property>"
        for key, value in values.items()
    )
    (folder / "yarn-site.xml").write_text(f"<configuration>{lines}</configuration>")
    return folder


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--arms", "capacity,capacity"], "--arms"),
        (["--arms", "fifo"], "some of capacity, gandiva"),
        (["--scale", "0"], "a number above 0"),
        (["--arm", "gandiva"], "--conf-dir"),
        (["--conf-dir", "conf", "--arm", "fifo"], "one of capacity, gandiva"),
        (["--conf-dir", "conf"], "--arm"),
        (["--conf-dir", "conf", "--arm", "gandiva", "--gpus", "4"], "--gpus"),
        (["--conf-dir", "conf", "--arm", "gandiva", "--quantum-ms", "4000"], "--quantum-ms"),
        (["--conf-dir", "/nowhere", "--arm", "gandiva"], "/nowhere: found no such folder"),
    ],
)
def test_bad_input_names_the_option(
    arguments: list[str],
    expected: str,
    trace: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["live-replay", str(trace), "--out", str(tmp_path / "out"), *arguments]) == 3
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1
    assert expected in told[0]
    assert not (tmp_path / "out").exists()


def test_a_resource_manager_that_does_not_answer_is_4(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = conf(tmp_path / "conf", yarn_resourcemanager_webapp_address="127.0.0.1:9")
    options = ["--conf-dir", str(place), "--arm", "capacity", "--out", str(tmp_path / "out")]
    assert run(["live-replay", str(trace), *options]) == ExitCode.UNREACHABLE
    assert "no active ResourceManager" in capsys.readouterr().err


def test_both_resource_managers_of_a_pair_are_asked(tmp_path: Path) -> None:
    """C-5: a site's own configuration says where it is; a pair, and one with certificates."""
    pair = conf(
        tmp_path / "pair",
        yarn_resourcemanager_ha_rm__ids="a,b",
        yarn_resourcemanager_hostname_a="h1",
        yarn_resourcemanager_webapp_address_b="h2:99",
    )
    assert list(addresses(SiteConfiguration.load(pair))) == ["http://h1:8088", "http://h2:99"]
    safe = conf(tmp_path / "safe", yarn_http_policy="HTTPS_ONLY", yarn_resourcemanager_hostname="h")
    assert list(addresses(SiteConfiguration.load(safe))) == ["https://h:8090"]


def test_only_the_two_schedulers_are_arms() -> None:
    fair = Site("http://h:1", (), {}, "org.example.FairScheduler", "3.4.2", 1, 4, 4)
    with pytest.raises(InputError, match=r"org\.example\.FairScheduler"):
        _ = fair.arm


def test_on_a_site_the_training_keeps_its_own_pace_and_brings_its_own_files() -> None:
    """Nothing of this machine's paths: the script travels with the job, the interpreter is the nodes'."""
    planned = LiveJob("a", 0.0, 2, 30, 0.25, "lstm")
    there = Submission("python3", settings=("gandiva.job.queue=q",), is_paced=True).job(
        planned, "t"
    )
    assert there.command == "training.py --model lstm --steps 30 --step-s 0.25"
    assert there.src_dir is not None
    assert (there.src_dir / "training.py").is_file()
    assert {"gandiva.job.queue=q", "gandiva.job.worker.gpus=2"} <= set(there.settings)
    here = Submission("/a/python").job(planned, "t")
    assert here.command == "training.py --model lstm --steps 30"
    assert here.python == "/a/python"
