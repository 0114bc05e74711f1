"""The auxiliary service in a real NodeManager, with a script that stands in for the agent (issue item 1; FAULTS A6)."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.live.shells import Live, brought_up, wait_until, words

pytestmark = [pytest.mark.live, pytest.mark.slow]  # JVMs

NAME = "gandiva_agent"


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    """One node that starts its agent itself."""
    agent = tmp_path / "python"
    agent.write_text("#!/bin/sh\nwhile :; do sleep 0.2; done\n")
    agent.chmod(0o755)
    keys = {
        "yarn.nodemanager.aux-services": NAME,
        f"yarn.nodemanager.aux-services.{NAME}.class": "org.gandiva.yarn.node.AgentService",
        "yarn.scheduler.gandiva.agent.python": str(agent),
        "yarn.scheduler.gandiva.agent.log-dir": str(tmp_path / "agent-logs"),
    }
    settings = [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]
    size = ("--nodes", "1", "--gpus", "1", "--scheduler", "gandiva")
    with brought_up(tmp_path / "cluster", *size, *settings) as live:
        yield live


def agents(live: Live) -> list[psutil.Process]:
    """Processes that are this node's agent."""
    node = live.cluster.nodes[0]
    mark = ["-m", "nodemanager_agent", "--node", node.node_id]
    found = (each for each in psutil.process_iter() if words(each)[2:6] == mark)
    return [each for each in found if words(each)[6:7] == ["--conf-dir"]]


def test_an_agent_lives_as_long_as_its_node_and_one_that_was_left_is_replaced(live: Live) -> None:
    wait_until(lambda: len(agents(live)) == 1, "the agent of the node, by the name YARN gives it")
    (agent,) = agents(live)
    conf_dir = Path(words(agent)[7])
    assert (conf_dir / "yarn-site.xml").is_file()

    agent.kill()
    wait_until(lambda: [a.pid for a in agents(live)] not in ([], [agent.pid]), "started again")
    (second,) = agents(live)

    node = live.daemon(live.cluster.nodes[0].name)
    os.kill(node.pid, signal.SIGKILL)
    node.wait(10)
    assert second.is_running(), "it goes on serving its jobs"
    live.up()
    wait_until(lambda: not second.is_running(), "the one that was left has been told to end")
    wait_until(lambda: len(agents(live)) == 1, "the new node has its own")

    live.daemon(live.cluster.nodes[0].name).send_signal(signal.SIGTERM)
    wait_until(lambda: agents(live) == [], "it ends with its node")
