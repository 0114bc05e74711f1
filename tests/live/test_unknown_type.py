"""A12 iii and ii: a client that knows GPUs, a ResourceManager that does not; the client says what is wrong."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gandiva_core.cli.main import run
from gandiva_core.site.validation import Role, can_start, validate
from tests.live.shells import CLIENT, brought_up
from yarn_plugin.cluster.daemons import RESOURCE_MANAGER, distributed_shell
from yarn_plugin.cluster.processes import ProcessTable

pytestmark = [pytest.mark.live, pytest.mark.slow]  # JVMs: a cluster, and its ResourceManager again

MODE = "yarn.scheduler.gandiva.mode=observe"
OPTIONS = ("--nodes", "1", "--gpus", "4", "--scheduler", "gandiva", "--set", MODE)


def submitted(yarn: Path, resources: str) -> subprocess.CompletedProcess[str]:
    """Hadoop's own example of an application, waited for."""
    jar = str(distributed_shell())
    command = [str(yarn), "jar", jar, CLIENT, "-jar", jar, "-shell_command", "true"]
    size = ["-num_containers", "1", "-master_memory", "256", "-container_resources", resources]
    return subprocess.run(
        [*command, *size], capture_output=True, text=True, timeout=180, check=False
    )


def test_an_ask_for_a_type_that_nobody_declared_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "cluster"
    with brought_up(path, *OPTIONS) as live:
        folder = live.folder
        client_conf = path / "client-conf"
        shutil.copytree(folder.conf, client_conf)
        client = path / "client-yarn"
        client.write_text(folder.yarn.read_text().replace(str(folder.conf), str(client_conf)))
        client.chmod(0o700)

        (folder.conf / "resource-types.xml").write_text("<configuration/>")
        assert can_start(validate(folder.conf, [Role.RM], {}))
        assert not can_start(validate(folder.conf, [Role.CLIENT], {}))
        ProcessTable(folder.run, live.cluster.cluster_id).stop(RESOURCE_MANAGER)
        assert run(["cluster", "up", "--state-dir", str(path), *OPTIONS]) == 0

        refused = submitted(client, "memory-mb=256,vcores=1,yarn.io/gpu=1")
        assert refused.returncode != 0
        assert "Unknown resource: yarn.io/gpu" in refused.stdout + refused.stderr
        ran = submitted(client, "memory-mb=256,vcores=1")
        assert ran.returncode == 0, ran.stderr[-2000:]
