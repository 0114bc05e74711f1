"""`gandiva config validate` and a real ResourceManager agree on what can start, both ways.

One ResourceManager after another in one JVM, about 0.3 s each.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.deprecation import NEW_NAMES
from gandiva_core.site.hadoop_keys import HADOOP_KEYS, Form
from gandiva_core.site.own_keys import FALLBACK, MODE, WITHOUT_AGENT, text_of
from gandiva_core.site.spelling import misspelt
from gandiva_core.site.validation import Role, can_start, validate
from tests.site.conftest import document
from tests.site.sites import CHANGES, Change, write
from yarn_plugin.replay.rm import RefusedError, ReplayedRm

pytestmark = pytest.mark.yarn
Connect = Callable[[Path], ReplayedRm]
HARNESS_SETS = (MODE, WITHOUT_AGENT, FALLBACK)
"""Keys that the replay harness sets over the files."""


def start(connect: Connect, folder: Path) -> None:
    """Start a ResourceManager with the files, our keys as they are in them."""
    site = SiteConfiguration.load(folder)
    connect(folder).start(folder, {key: text_of(site, key) for key in HARNESS_SETS})


@pytest.mark.parametrize("name", CHANGES)
def test_both_agree(connect: Connect, tmp_path: Path, name: str) -> None:
    """Cases A02, H01, H03, H04, H06, H18: their traits, and many more."""
    change = CHANGES[name]
    findings = validate(write(tmp_path, change), [Role.RM], {"PATH": "/usr/bin:/bin"})
    assert can_start(findings) is change.starts, [str(finding) for finding in findings]
    if change.starts:
        start(connect, tmp_path)
    else:
        with pytest.raises(RefusedError):
            start(connect, tmp_path)


def test_deprecated_names_are_hadoops(connect: Connect, tmp_path: Path) -> None:
    """Each old name sets what Hadoop says it sets."""
    write(tmp_path, Change(True))
    values = {old: f"value-{number}" for number, old in enumerate(NEW_NAMES)}
    harmless = {old: value for old, value in values.items() if "mapping" not in old}
    (tmp_path / "core-site.xml").write_text(document(harmless))
    site = SiteConfiguration.load(tmp_path)
    rm = connect(tmp_path)
    rm.start(tmp_path, {"fs.defaultFS": "file:///"})
    hadoop = rm.configuration()
    told = {new: hadoop[new] for old in harmless for new in NEW_NAMES[old] if new != "fs.defaultFS"}
    assert told == {new: site.raw(new) for new in told}
    assert len(told) >= 12


def test_defaults_and_names_are_hadoops(connect: Connect, tmp_path: Path) -> None:
    """The catalogue's defaults are those of 3.4.2, and none of Hadoop's own keys looks misspelt."""
    write(tmp_path, Change(True))
    (tmp_path / "yarn-site.xml").write_text("<configuration/>")
    rm = connect(tmp_path)
    rm.start(tmp_path, {})
    hadoop = rm.configuration()
    of_harness = {
        "yarn.nm.liveness-monitor.expiry-interval-ms",
        "yarn.am.liveness-monitor.expiry-interval-ms",
        "yarn.resourcemanager.max-completed-applications",
        "yarn.resource-types",
        "yarn.scheduler.capacity.resource-calculator",
        "yarn.resourcemanager.monitor.capacity.preemption.monitoring_interval",
    }
    stated = {
        name: key.default
        for name, key in HADOOP_KEYS.items()
        if key.default and name in hadoop and name not in of_harness
    }
    assert stated == {name: hadoop[name] for name in stated}
    assert len(stated) > 25
    assert {key: misspelt(key) for key in hadoop if misspelt(key)} == {}
    assert all(key.form is not Form.FLAG or key.default for key in HADOOP_KEYS.values())
