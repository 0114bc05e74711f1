"""Jobs of ours on a real ResourceManager and real NodeManagers: `yarn jar gandiva-client.jar` (DESIGN §6)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.live.jobs import MEET, SMALL, Submitted, python, submit, until
from tests.live.shells import Live, brought_up

pytestmark = [pytest.mark.live, pytest.mark.slow]  # JVMs

BARE = "gandiva.job.launcher=false"
"""Without the launcher: what is tested here is the master."""

HOLD = "until [ -e {0} ]; do sleep 0.1; done"


@pytest.fixture(scope="module", params=["gandiva", "capacity"])
def live(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Live]:
    """Two nodes of two GPUs, under either scheduler: the master is the same."""
    path = tmp_path_factory.mktemp("jobs") / request.param
    with brought_up(path, "--nodes", "2", "--gpus", "2", "--scheduler", request.param) as live:
        yield live


def test_one_worker_runs_to_its_end_with_quotes_and_dollars_as_written(live: Live) -> None:
    command = """echo "rank $GANDIVA_RANK of '$GANDIVA_WORLD_SIZE'" "$SAID"; exit 0"""
    job = submit(live, "one", command, BARE, "gandiva.job.env=SAID=it's $5")
    assert job.wait() == 0, job.progress()
    assert job.logs() == ["rank 0 of '1' it's $5\n"]
    assert "SUCCEEDED" in job.progress()
    report = live.get(f"/ws/v1/cluster/apps/{job.app_id}")["app"]
    assert report["applicationType"] == "GANDIVA"
    assert report["applicationTags"] == "gandiva.gang=1"


def test_the_exit_code_of_a_command_that_fails_is_the_clients(live: Live) -> None:
    job = submit(live, "seven", "exit 7", BARE)
    assert job.wait() == 7
    assert "exit code 7: worker 0 ended with exit status 7" in job.progress()


def test_a_gang_of_two_meets_on_addresses_of_its_nodes(live: Live, tmp_path: Path) -> None:
    program = MEET + (
        "answer = meet(20000 + int(os.environ['GANDIVA_RANK']))\n"
        "assert call('/rendezvous?generation=1', secret='guessed')[0] == 401\n"
        "print(json.dumps(answer['workers']), answer['world_size'], answer['master_port'])\n"
    )
    job = submit(
        live, "two", python(tmp_path, "two", program), BARE, "gandiva.job.worker.instances=2"
    )
    assert job.wait() == 0, job.progress()
    said = job.logs()
    assert len(said) == 2
    assert said[0] == said[1], "both are told the same"
    assert said[0].endswith("2 20000\n")
    assert "127.0.0.1" in said[0], "the node's own address"


def test_under_the_launcher_a_gang_has_what_torch_wants_to_know(live: Live) -> None:
    """The in-job client comes with the jar: nothing is installed on a node. Here no agent is."""
    command = 'echo "$RANK $WORLD_SIZE $LOCAL_RANK $MASTER_ADDR:$MASTER_PORT"'
    job = submit(live, "launched", command, "gandiva.job.worker.instances=2")
    assert job.wait() == 0, (job.progress(), job.logs("stderr"))
    said = [line.split() for line in job.logs()]
    assert sorted(words[:3] for words in said) == [["0", "2", "0"], ["1", "2", "0"]]
    assert said[0][3] == said[1][3], "one address, a node's own"
    assert said[0][3].startswith("127.0.0.1")


def test_tensorflow_is_told_of_its_parameter_server(live: Live) -> None:
    command = 'echo "$TF_CONFIG"; sleep 2'
    more = ("tony.application.framework=tensorflow", "tony.ps.instances=1", "tony.ps.memory=256m")
    job = submit(live, "tf", command, *more)
    assert job.wait() == 0, (job.progress(), job.logs("stderr"))
    told = [json.loads(said) for said in job.logs() if said.strip()]
    assert {(each["task"]["type"], each["task"]["index"]) for each in told} >= {("worker", 0)}
    cluster = told[0]["cluster"]
    assert [len(cluster["worker"]), len(cluster["ps"])] == [1, 1]
    assert cluster["worker"] != cluster["ps"]


def test_the_secret_is_its_owners_alone_and_what_runs_can_be_read(
    live: Live, tmp_path: Path
) -> None:
    """I7 of the faults; `yarn logs` of a job that runs."""
    done = tmp_path / "done"
    command = f"stat -L -c %a gandiva-am.token; echo here; {HOLD.format(done)}"
    job = submit(live, "secret", command, BARE)
    until(lambda: job.logs() != [] and "here" in job.logs()[0], "it runs")
    assert job.logs()[0].split()[0].endswith("00"), "nobody else may read it"
    shown = live.yarn("logs", "-applicationId", job.app_id, "-log_files", "stdout")
    assert "here" in shown.stdout, shown.stderr
    tokens = list(live.folder.nodes.glob("*/local/usercache/*/appcache/*/filecache/*/*.token"))
    secrets = {token.read_text().strip() for token in tokens if token.is_file()}
    assert len(secrets) >= 1
    for log in live.folder.logs.rglob("*"):
        if log.is_file() and log.suffix != ".crc":
            text = log.read_text(errors="replace")
            assert not any(secret in text for secret in secrets), log
    done.touch()
    assert job.wait() == 0


def test_a_lost_worker_starts_its_gang_again_and_fails_nothing(live: Live, tmp_path: Path) -> None:
    """B03: the application's attempts stay what they were."""
    done = tmp_path / "done"
    command = f"echo generation $GANDIVA_GENERATION; {HOLD.format(done)}"
    job = submit(live, "lost", command, BARE, "gandiva.job.worker.instances=2")
    until(lambda: len(job.logs()) == 2, "two workers")
    victim = workers(job)[0]
    victim.send_signal(signal.SIGKILL)
    until(lambda: len(job.logs()) == 4, "both again")
    done.touch()
    assert job.wait() == 0, job.progress()
    said = job.logs()
    assert said[-2:] == ["generation 2\n", "generation 2\n"]
    attempts = live.get(f"/ws/v1/cluster/apps/{job.app_id}/appattempts")["appAttempts"]
    assert len(attempts["appAttempt"]) == 1


def known_as_running(live: Live, job: Submitted) -> int:
    """Containers that the ResourceManager has heard of as running: it keeps no others for a second master."""
    container = f"container_{job.app_id.removeprefix('application_')}_"
    became = "Container Transitioned from ACQUIRED to RUNNING"
    lines = live.folder.log("resourcemanager").read_text(errors="replace").splitlines()
    return len([line for line in lines if container in line and became in line])


def test_a_master_that_is_killed_leaves_its_workers_running(live: Live, tmp_path: Path) -> None:
    done = tmp_path / "done"
    command = f"echo $$; {HOLD.format(done)}"
    job = submit(live, "master", command, BARE, "gandiva.job.worker.instances=2")
    until(lambda: all(said.strip() for said in job.logs()) and len(job.logs()) == 2, "two workers")
    before = job.logs()
    until(lambda: known_as_running(live, job) == 3, "the ResourceManager knows of all three")
    (master,) = [
        each for each in job.processes("job.am.MasterMain") if each.name().startswith("java")
    ]
    master.kill()
    until(lambda: len(attempts_of(live, job)) == 2, "a second attempt")
    until(lambda: attempts_of(live, job)[-1] == "RUNNING", "it registered")
    done.touch()
    assert job.wait() == 0, job.progress()
    assert job.logs() == before, "the same two containers, and no other"


def test_a_parameter_server_that_fails_ends_the_job_with_its_code(
    live: Live, tmp_path: Path
) -> None:
    """B08, first case."""
    never = tmp_path / "never"
    job = submit(
        live,
        "ps",
        HOLD.format(never),
        BARE,
        "tony.ps.instances=1",
        "tony.ps.memory=256m",
        "tony.ps.command=sleep 1; exit 9",
    )
    assert job.wait(60) == 9, job.progress()
    assert "ps 0" in job.progress()


def test_a_parameter_server_that_is_done_or_not_done_keeps_no_job(live: Live) -> None:
    """B08, second case, and one that runs on when the workers have ended."""
    job = submit(
        live,
        "untracked",
        'if [ "$GANDIVA_TASK_TYPE$GANDIVA_TASK_INDEX" = ps1 ]; then sleep 600; fi; sleep 1',
        BARE,
        "gandiva.job.ps.instances=2",
        "gandiva.job.ps.memory=256m",
    )
    assert job.wait() == 0, job.progress()
    until(lambda: live.gpus_used() == 0, "all containers are gone")


def test_what_the_cluster_cannot_serve_is_one_line(live: Live) -> None:
    job = submit(live, "large", "true", BARE, "gandiva.job.worker.gpus=3")
    assert job.wait() == 3
    assert (
        "error: gandiva.job.worker.gpus: found 3, expected at most 2, "
        "the largest container of this cluster\n" in job.progress()
    )


@pytest.mark.parametrize("place", ["state-dir", "conf-dir"])
def test_gandiva_submit_follows_a_job_to_its_end(live: Live, place: str, tmp_path: Path) -> None:
    (tmp_path / "say.py").write_text("import sys\nprint('in', sys.argv[1])\nsys.exit(7)\n")
    folder = {"state-dir": live.folder.path, "conf-dir": live.folder.conf}[place]
    words = ["import typer; from yarn_plugin.submit.command import submit; typer.run(submit)"]
    words += [f"--{place}", str(folder), "--src-dir", str(tmp_path), "--python", sys.executable]
    words += [word for setting in (*SMALL, BARE) for word in ("--conf", setting)]
    job = subprocess.run(
        [sys.executable, "-c", *words, "--", "say.py", "a b"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert job.returncode == 7, job.stderr
    assert " INFO " not in job.stderr
    app = job.stdout.strip()
    (said,) = live.folder.logs.glob(f"node-*-containers/{app}/container_*_000002/stdout")
    assert said.read_text() == "in a b\n"


def workers(job: Submitted) -> list[psutil.Process]:
    """Shells that run the job's command."""
    return [each for each in job.processes("gandiva-worker.sh") if each.name() == "bash"]


def attempts_of(live: Live, job: Submitted) -> list[str]:
    """States of its attempts, oldest first."""
    found = live.get(f"/ws/v1/cluster/apps/{job.app_id}/appattempts")["appAttempts"]["appAttempt"]
    return [str(each["appAttemptState"]) for each in sorted(found, key=lambda each: each["id"])]
