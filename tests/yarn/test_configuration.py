"""The two ResourceManagers of a comparison: nothing differs but the scheduler class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gandiva_core.model.errors import GandivaError
from gandiva_core.replay.arms import parse_arm
from gandiva_core.runtime.ports import RunSetup
from tests.yarn.runs import small_cluster
from yarn_plugin.replay.configuration import GANDIVA_CLASS, SCHEDULER_CLASS, STOCK_CLASS, prepare
from yarn_plugin.replay.rm import ReplayedRm, ReplayError

pytestmark = pytest.mark.yarn

Connect = Callable[[Path], ReplayedRm]
DOMINANT = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
OUR_PROCESSOR = "org.gandiva.yarn.GpuAskProcessor"
PROCESSORS = "yarn.resourcemanager.application-master-service.processors"


def effective(
    connect: Connect, arm: str, work_dir: Path, conf_dir: Path | None = None
) -> Mapping[str, str]:
    """What a ResourceManager started for `arm` really runs with, folders of the run left out."""
    parsed = parse_arm(arm)
    site = str(conf_dir) if conf_dir else None
    height = 1 if parsed.is_stock else 4
    setup = RunSetup(parsed, small_cluster(), 1, height, str(work_dir / arm), site)
    configuration = prepare(setup)
    rm = connect(work_dir)
    try:
        started = rm.start(configuration.conf_dir, configuration.properties)
        assert started.scheduler_class == configuration.properties[SCHEDULER_CLASS]
        return rm.configuration()
    finally:
        rm.close()


def differences(left: Mapping[str, str], right: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Keys that differ, with both values, but for what our scheduler class itself adds when it starts."""
    added = PROCESSORS if right[SCHEDULER_CLASS] == GANDIVA_CLASS else ""
    assert right.get(added, OUR_PROCESSOR) == OUR_PROCESSOR
    keys = sorted((left.keys() | right.keys()) - {added})
    return {
        key: (left.get(key, ""), right.get(key, ""))
        for key in keys
        if left.get(key) != right.get(key)
    }


def test_only_the_scheduler_class_differs(connect: Connect, tmp_path: Path) -> None:
    """Issue 3, "It must show"."""
    stock = effective(connect, "capacity", tmp_path)
    ours = effective(connect, "gandiva", tmp_path)
    assert len(stock) > 800
    assert differences(stock, ours) == {SCHEDULER_CLASS: (STOCK_CLASS, GANDIVA_CLASS)}


def test_a_site_keeps_its_own_keys_under_both(connect: Connect, tmp_path: Path) -> None:
    """`--conf-dir`: the site's files, and only the scheduler class set over them."""
    site = tmp_path / "site"
    site.mkdir()
    write(
        site / "yarn-site.xml",
        {SCHEDULER_CLASS: "org.example.Theirs", "yarn.scheduler.maximum-allocation-mb": "7000"},
    )
    write(site / "resource-types.xml", {"yarn.resource-types": "yarn.io/gpu"})
    write(
        site / "capacity-scheduler.xml",
        {
            "yarn.scheduler.capacity.resource-calculator": DOMINANT,
            "yarn.scheduler.capacity.root.queues": "prod,test",
            "yarn.scheduler.capacity.root.prod.capacity": "70",
            "yarn.scheduler.capacity.root.test.capacity": "30",
        },
    )
    stock = effective(connect, "capacity", tmp_path, site)
    ours = effective(connect, "gandiva", tmp_path, site)
    assert stock["yarn.scheduler.maximum-allocation-mb"] == "7000"
    assert stock["yarn.scheduler.capacity.root.prod.capacity"] == "70"
    assert differences(stock, ours) == {SCHEDULER_CLASS: (STOCK_CLASS, GANDIVA_CLASS)}


def test_a_fair_arm_changes_the_order_and_nothing_else(connect: Connect, tmp_path: Path) -> None:
    plain = effective(connect, "capacity", tmp_path)
    fair = effective(connect, "capacity-fair", tmp_path)
    assert differences(plain, fair) == {
        "yarn.scheduler.capacity.root.default.ordering-policy": ("", "fair")
    }


def test_files_that_no_resource_manager_takes_are_one_line(
    connect: Connect, tmp_path: Path
) -> None:
    """Hadoop's own reason, without its stack."""
    site = tmp_path / "site"
    site.mkdir()
    write(site / "yarn-site.xml", {"yarn.resource-types": "memory-mb"})
    write(
        site / "capacity-scheduler.xml",
        {
            "yarn.scheduler.capacity.root.queues": "default",
            "yarn.scheduler.capacity.root.default.capacity": "100",
        },
    )
    with pytest.raises(GandivaError, match="memory-mb") as caught:
        effective(connect, "capacity", tmp_path, site)
    assert isinstance(caught.value, ReplayError)
    assert "\n" not in str(caught.value)


def write(file: Path, properties: Mapping[str, str]) -> None:
    """A Hadoop file of these properties."""
    lines = "".join(
        f"<property><name>{key}</name><value>{value}</value></property>\n"
        for key, value in properties.items()
    )
    file.write_text(f"<configuration>\n{lines}</configuration>\n", encoding="utf-8")
