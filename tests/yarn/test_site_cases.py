"""Area (h) of the cases, and A02 and A12, in a real ResourceManager: does it start, and what does it say to users?"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gandiva_core.config.keys import PREFIX
from gandiva_core.model.errors import InputError
from gandiva_core.site.baseline import GANDIVA_SCHEDULER, SCHEDULER_KEY
from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.own_keys import MODE, WITHOUT_AGENT
from gandiva_core.site.validation import Role, can_start, validate
from tests.site.conftest import document
from tests.site.own_cases import CASES, GPU
from yarn_plugin.replay.rm import ReplayedRm, ReplayError
from yarn_plugin.replay.wire import (
    AddNode,
    Allocated,
    AppRejected,
    Ask,
    AskLine,
    BeatAll,
    HarnessEvent,
    Submit,
)

pytestmark = pytest.mark.yarn
Connect = Callable[[Path], ReplayedRm]
AS_SHIPPED = {MODE: "observe", WITHOUT_AGENT: "false", SCHEDULER_KEY: GANDIVA_SCHEDULER}
"""Over what the harness sets; the class also over a site's own."""


def put(folder: Path, files: Mapping[str, str | Mapping[str, str]]) -> Path:
    """Write a case; the harness wants a yarn-site.xml."""
    for name, content in {"yarn-site.xml": {}, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else document(dict(content)))
    return folder


def verdict(folder: Path) -> bool:
    """What `gandiva config validate` says; a file that cannot be read is a no."""
    try:
        return can_start(validate(folder, [Role.RM], {"PATH": "/usr/bin:/bin"}))
    except InputError:
        return False


def comes_up(connect: Connect, folder: Path) -> bool:
    """What a ResourceManager says."""
    try:
        connect(folder).start(folder, AS_SHIPPED)
    except ReplayError:
        return False
    return True


def submitted(key: str, queue: str) -> Submit:
    return Submit(
        key=key, name=key, queue=queue, user="joe", tags=(), am_memory_mib=512, am_vcores=1
    )


def told(rm: ReplayedRm, *actions: Submit | Ask | BeatAll | AddNode) -> list[HarnessEvent]:
    return list(rm.step(1.0, list(actions)))


@pytest.mark.parametrize("name", CASES)
def test_both_agree_on_our_small_files(connect: Connect, tmp_path: Path, name: str) -> None:
    folder = put(tmp_path, CASES[name])
    assert verdict(folder) is comes_up(connect, folder)


@pytest.mark.parametrize("name", CASES)
def test_both_agree_on_the_saved_files(
    connect: Connect, tmp_path: Path, shared_dir: Path, name: str
) -> None:
    saved = shared_dir / "cases" / "conf" / name
    if not saved.is_dir():
        pytest.skip(f"no case {name} in ../shared")
    folder = tmp_path / name
    shutil.copytree(saved, folder, copy_function=shutil.copyfile)
    for place in (folder, *filter(Path.is_dir, folder.rglob("*"))):
        place.chmod(0o755)  # the saved folders may be read-only
    if not (folder / "yarn-site.xml").exists():
        (folder / "yarn-site.xml").write_text("<configuration/>")
    assert verdict(folder) is comes_up(connect, folder)


@pytest.mark.parametrize("name", ["H02", "H06"])
def test_a_queue_that_is_not_there_is_refused_by_name(
    connect: Connect, tmp_path: Path, name: str
) -> None:
    """H02: a submission without a queue asks for "default"; H06: settings for it, and no such queue."""
    folder = put(tmp_path, CASES[name])
    rm = connect(folder)
    rm.start(folder, AS_SHIPPED)
    (refused,) = told(rm, submitted("j", "default"))
    assert isinstance(refused, AppRejected)
    assert "default" in refused.diagnostics


def test_H11_graceful_time_and_attempts_are_the_sites(connect: Connect, tmp_path: Path) -> None:
    folder = put(tmp_path, CASES["H11"])
    rm = connect(folder)
    rm.start(folder, AS_SHIPPED)
    in_force = rm.configuration()
    assert in_force["yarn.resourcemanager.am.max-attempts"] == "10"
    timeout = "yarn.resourcemanager.nodemanager-graceful-decommission-timeout-secs"
    assert in_force[timeout] == "86400"


def test_A02_gpus_that_nobody_counts_are_not_handed_out(connect: Connect, tmp_path: Path) -> None:
    """The case's inputs (H19's queues, GPUs declared) do not start on 3.4.2: 0 GPUs allocated, with the reason."""
    files = {**CASES["H19"], "resource-types.xml": GPU}
    folder = put(tmp_path, files)
    with pytest.raises(ReplayError, match="Use DominantResourceCalculator") as caught:
        connect(folder).start(folder, AS_SHIPPED)
    assert "\n" not in str(caught.value)
    (line,) = [
        str(finding)
        for finding in validate(folder, [Role.RM], {"PATH": "/usr/bin:/bin"})
        if "resource-calculator" in finding.subject
    ]
    assert "yarn.scheduler.capacity.resource-calculator" in line


def test_A12_a_job_without_gpus_runs_where_there_is_no_such_type(
    connect: Connect, tmp_path: Path
) -> None:
    """A12 ii."""
    folder = put(tmp_path, {"capacity-scheduler.xml": CASES["H08"]["capacity-scheduler.xml"]})
    rm = connect(folder)
    rm.start(folder, AS_SHIPPED)
    told(rm, AddNode(host="server-1", memory_mib=8192, vcores=8))
    line = AskLine(priority=1, count=2, memory_mib=1024, vcores=1, gpus=0)
    seen = told(rm, submitted("j", "default"), Ask(key="j", asks=(line,)))
    seen += told(rm, BeatAll(keys=("j",)))
    given = [c for event in seen if isinstance(event, Allocated) for c in event.containers]
    assert [(c.memory_mib, c.gpus) for c in given] == [(1024, 0)] * 2


def test_the_case_files_hold_no_key_of_ours(tmp_path: Path) -> None:
    """They are sites before Gandiva: what is compared above is Hadoop's verdict."""
    for name, files in CASES.items():
        if name not in ("H10", "H17"):
            site = SiteConfiguration.load(put(tmp_path / name, files))
            assert list(site.keys(PREFIX)) == []
