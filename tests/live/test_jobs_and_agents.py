"""Jobs of ours on nodes with agents: devices come from the agent, and a gang meets once both have theirs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.live.jobs import submit
from tests.live.shells import Live, brought_up

pytestmark = [pytest.mark.live, pytest.mark.slow]  # JVMs


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """Two nodes of one virtual GPU."""
    path = tmp_path_factory.mktemp("agents") / "gandiva"
    size = ("--nodes", "2", "--gpus", "1", "--scheduler", "gandiva", "--agents")
    with brought_up(path, *size) as live:
        yield live


def test_a_gang_over_two_nodes_meets_once_both_have_their_devices(live: Live) -> None:
    command = 'echo "$RANK $WORLD_SIZE $MASTER_ADDR:$MASTER_PORT"'
    job = submit(live, "gang", command, "gandiva.job.worker.instances=2")
    assert job.wait() == 0, (job.progress(), job.logs("stderr"))
    said = sorted(line.split() for line in job.logs())
    assert [words[:2] for words in said] == [["0", "2"], ["1", "2"]]
    assert said[0][2] == said[1][2]


def test_the_exit_code_of_the_command_passes_launcher_and_master(live: Live) -> None:
    job = submit(live, "seven", "exit 7")
    assert job.wait() == 7, (job.progress(), job.logs("stderr"))
