"""The checker of FAULTS' invariants I1 to I4, I6 and I7 over a cluster that runs; I5 needs agents."""

from __future__ import annotations

from collections import Counter
from typing import Any

import psutil

from gandiva_core.replay.arms import policy_factory
from gandiva_core.runtime.recheck import recheck
from gandiva_core.runtime.segments import segments
from tests.live.books import containers, entries, residents_over_time
from tests.live.shells import Live, wait_until
from yarn_plugin.cluster.daemons import RESOURCE_MANAGER

ALIVE = {"NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING"}
CONTAINER_ID = "CONTAINER_ID"


class Ledger:
    """Checked after every step of an experiment.

    Args:
        live: the cluster.
        height_max: containers a device at most.
    """

    def __init__(self, live: Live, height_max: int) -> None:
        self._live = live
        self._height_max = height_max
        self._apps: set[str] = set()
        self._ended_on_purpose: set[str] = set()

    def killed(self, app_id: str) -> None:
        """An application that was ended by its user."""
        self._ended_on_purpose.add(app_id)

    def check(self) -> None:
        """All of them, now."""
        self.no_application_is_lost()
        self.no_container_is_leaked()
        self.no_device_is_over_its_height()
        self.no_queue_is_over_its_maximum()
        self.nothing_is_done_twice()
        self.no_secret_is_told()

    def no_application_is_lost(self) -> None:
        """I1: whatever was seen once is there, and what failed says why."""
        apps = {app["id"]: app for app in self._live.apps()}
        assert set(apps) >= self._apps
        self._apps |= set(apps)
        for app_id, app in apps.items():
            is_well = app["state"] in ALIVE or app["finalStatus"] == "SUCCEEDED"
            assert is_well or app_id in self._ended_on_purpose, app
            assert app["state"] in ALIVE or is_well or app["diagnostics"], app

    def no_container_is_leaked(self) -> None:
        """I2: processes of containers are those of the containers that the ResourceManager knows, both ways."""

        suspects = self._strange_containers()

        def are_gone() -> bool:
            suspects.intersection_update(self._strange_containers())
            return not suspects

        # Of containers that come and go all the time some are always half-way.
        wait_until(
            are_gone, f"each container has processes, and each process a container: {suspects}"
        )

    def _strange_containers(self) -> set[str]:
        """With processes or in the ResourceManager's books, and not both."""
        found = set(processes_by_container(self._live))
        return found ^ {
            each.container for each in containers(self._live) if each.state == "RUNNING"
        }

    def no_device_is_over_its_height(self) -> None:
        """I3: by the ResourceManager's sums, and by the core's devices."""
        for node in self._live.report().nodes:
            assert node.gpus_used <= node.gpus * self._height_max, node
        for path in segments(self._live.folder.journal):
            for residents in residents_over_time(path.read_text()):
                assert len(residents) <= self._height_max, (path, residents)

    def no_queue_is_over_its_maximum(self) -> None:
        """I4: by the stock scheduler's own books."""
        info = self._live.get("/ws/v1/cluster/scheduler")["scheduler"]["schedulerInfo"]
        for queue in info["queues"]["queue"]:
            (whole,) = queue["capacities"]["queueCapacitiesByPartition"]
            for resource, used in amounts(queue["resourcesUsed"]).items():
                assert used <= amounts(whole["effectiveMaxResource"])[resource], (resource, queue)

    def nothing_is_done_twice(self) -> None:
        """I6: no container is committed twice, and nothing of the plug-in's own failed."""
        committed: Counter[str] = Counter()
        for entry in entries(self._live.journal()):
            if entry["event"]["kind"] == "GangCommitted":
                committed.update(entry["event"]["containers"])
        assert [container for container, times in committed.items() if times > 1] == []
        assert self._live.bean().own_errors == 0

    def no_secret_is_told(self) -> None:
        """I7: the bridge's token is in no log and on no command line."""
        for file in self._live.folder.logs.glob("bridge-*/token"):
            token = file.read_text().strip()
            for path in self._live.folder.logs.rglob("*"):
                if path.is_file() and path != file:
                    assert token not in path.read_text(errors="replace"), path
            assert not any(token in " ".join(cmdline) for cmdline in command_lines(self._live))

    def every_decision_can_be_made_again(self) -> None:
        """C-7, and with it all that the engine checks in itself after each event."""
        for path in segments(self._live.folder.journal):
            report = recheck(path, policy_factory, is_open_ended=True)
            assert report.difference_count == 0, report.differences


def amounts(resource: dict[str, Any]) -> dict[str, int]:
    """Of a resource as the REST interface writes it."""
    listed = resource["resourceInformations"]["resourceInformation"]
    return {each["name"]: int(each["value"]) for each in listed}


def processes_by_container(live: Live) -> dict[str, set[int]]:
    """Numbers of the processes of each container, read from what YARN puts into their environments."""
    found: dict[str, set[int]] = {}
    for process in live.processes():
        try:
            container = process.environ().get(CONTAINER_ID)
        except psutil.Error:
            continue
        if container is not None:
            found.setdefault(container, set()).add(process.pid)
    return found


def command_lines(live: Live) -> list[list[str]]:
    """Of everything that belongs to the cluster."""
    lines = []
    for process in [*live.processes(), live.daemon(RESOURCE_MANAGER)]:
        try:
            lines.append(process.cmdline())
        except psutil.Error:
            continue
    return lines
