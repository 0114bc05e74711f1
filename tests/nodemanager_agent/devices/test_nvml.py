"""Real devices by NVML, against a small library of our own in C (issue 5, item 1; FACTS §7)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.agent import job_environment

SOURCE = Path(__file__).parent / "nvml.c"
COMPILER = shutil.which("cc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")

LOOK = """
import json, os, sys
from gandiva_core.model.errors import InputError
from nodemanager_agent.devices.nvml import NvmlDevices
allowed = json.loads(sys.argv[1])
try:
    devices = NvmlDevices(allowed)
except InputError as error:
    print(json.dumps(str(error)))
    sys.exit()
before = devices.measure()
with open(os.environ["FAKE_NVML"], "w") as file:
    file.write(sys.argv[2])
after = devices.measure()
show = lambda all: [[d.index, d.uuid, d.accelerator_type, d.memory_mib, d.utilisation_ratio,
                     d.memory_used_mib, d.healthy, d.reason] for d in all]
last = len(before) - 1
print(json.dumps({"before": show(before), "after": show(after), "again": show(devices.measure()),
    "pids": [None if p is None else sorted(p) for p in map(devices.pids, range(len(before)))],
    "environment": devices.environment([last]), "none": devices.environment([])}))
devices.close()
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nvml")
    built = folder / "libnvidia-ml.so.1"
    subprocess.run([COMPILER or "cc", "-shared", "-fPIC", "-o", built, SOURCE], check=True)
    return folder


def look(library: Path, folder: Path, fault: str = "", allowed: Any = None, first: str = "") -> Any:
    faults = folder / "faults"
    faults.write_text(first)
    done = subprocess.run(
        [sys.executable, "-c", LOOK, json.dumps(allowed), fault],
        env=job_environment(LD_LIBRARY_PATH=str(library), FAKE_NVML=str(faults)),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_what_a_device_tells_and_what_it_does_not(library: Path, tmp_path: Path) -> None:
    """NotSupported is None, never 0, and no reason to give a device up."""
    found = look(library, tmp_path)
    assert found["before"] == [
        [0, "GPU-0", "Fake P100", 16384, 0.25, 1024, True, ""],
        [1, "GPU-1", "Fake P100", 16384, 0.25, 1024, True, ""],
        [2, "GPU-2", "Fake P100", 16384, None, 1024, True, ""],
    ]
    assert found["pids"] == [[4711], [4711], None]


def test_only_allowed_devices_are_there(library: Path, tmp_path: Path) -> None:
    """A13: the node reports two, and jobs see those or none."""
    found = look(library, tmp_path, allowed=[0, 2])
    assert [device[:2] for device in found["before"]] == [[0, "GPU-0"], [1, "GPU-2"]]
    assert found["environment"] == {"CUDA_VISIBLE_DEVICES": "GPU-2"}
    assert found["none"] == {"CUDA_VISIBLE_DEVICES": ""}


@pytest.mark.parametrize(
    ("fault", "index", "reason"),
    [
        ("lost1", 1, "lost: GPU is lost"),
        ("ecc0", 0, "uncorrectable ECC error"),
        ("xid79", 2, "fatal error XID 79"),
        ("fell2", 2, "fatal error XID 79"),
    ],
)
def test_a_lost_device_is_told_and_stays_lost(
    library: Path, tmp_path: Path, fault: str, index: int, reason: str
) -> None:
    """Item 1: NVML lost, a fatal XID, an uncorrectable ECC error; the others go on."""
    found = look(library, tmp_path, fault)
    for measured in ("after", "again"):
        unhealthy = {each[0]: each[7] for each in found[measured] if not each[6]}
        assert list(unhealthy) == [index]
        assert reason in unhealthy[index]


def test_an_application_error_loses_no_device(library: Path, tmp_path: Path) -> None:
    """XID 13 is a program's own fault; ECC errors from before the start are known."""
    found = look(library, tmp_path, "xid13")
    assert all(device[6] for device in found["again"])


def test_no_driver_and_no_such_device_are_one_line(library: Path, tmp_path: Path) -> None:
    assert "--virtual-gpus" in look(library, tmp_path, first="nodriver")
    assert "one below it" in look(library, tmp_path, allowed=[5])


@pytest.mark.gpu
@pytest.mark.skipif(not Path("/dev/nvidia0").exists(), reason="no GPU on this machine")
def test_the_machines_own_devices_answer() -> None:
    """The same code on a real driver."""
    done = subprocess.run(
        [sys.executable, "-c", "from nodemanager_agent.devices.nvml import NvmlDevices as N; "
         "d = N(); m = d.measure(); assert m and all(e.healthy and e.memory_mib > 0 for e in m); "
         "assert d.environment([0])['CUDA_VISIBLE_DEVICES'].startswith('GPU-')"],
        env={**os.environ}, check=False,
    )  # fmt: skip
    assert done.returncode == 0
