"""A site's files as we read them and as Hadoop itself does, in the same ResourceManager."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.queues import PREFIX, read_queues
from gandiva_core.site.shares import shares
from yarn_plugin.bridge.jvm import PLUGIN_DIR
from yarn_plugin.replay.rm import ReplayedRm
from yarn_plugin.replay.wire import AddNode

pytestmark = pytest.mark.yarn
Connect = Callable[[Path], ReplayedRm]

YARN_SITE = """<configuration xmlns:xi="http://www.w3.org/2001/XInclude">
<property><name> test.trimmed
</name><value> v </value></property>
<property><name>test.twice</name><value>1</value></property>
<property><name>test.twice</name><value>2</value></property>
<property><name>test.final</name><value>1</value><final>true</final></property>
<property><name>test.final</name><value>2</value></property>
<property><name>test.empty</name><value></value></property>
<property><name>test.two</name><name>names</name></property>
<property><name>test.reference</name><value>a-${test.twice}-${test.missing}-${test.twice}</value></property>
<property><name>test.nested</name><value>${test.${test.key}}</value></property>
<property><name>test.key</name><value>twice</value></property>
<property><name>test.over</name><value>before</value></property>
<xi:include href="sub/more.xml"/>
<property><name>test.after</name><value>after</value></property>
<xi:include href="absent.xml"><xi:fallback>
<property><name>test.fallback</name><value>used</value></property></xi:fallback></xi:include>
<xi:include href="sub/more.xml"><xi:fallback>
<property><name>test.unused</name><value>never</value></property></xi:fallback></xi:include>
</configuration>"""
MORE = """<configuration>
<property><name>test.over</name><value>included</value></property>
<property><name>test.after</name><value>included</value></property>
</configuration>"""

TREES = {
    "percentages": {
        "root.queues": "a,b",
        "root.a.capacity": "30",
        "root.a.maximum-capacity": "60",
        "root.b.capacity": "70",
        "root.b.queues": "x,y,z",
        "root.b.x.capacity": "33.333",
        "root.b.y.capacity": "33.333",
        "root.b.z.capacity": "33.334",
        "root.b.z.maximum-capacity": "50",
    },
    "no maximum": {
        "root.queues": "a,b",
        "root.a.capacity": "1",
        "root.a.maximum-capacity": "-1",
        "root.b.capacity": "99",
        "root.b.maximum-capacity": "99.5",
    },
    "amounts": {
        "root.queues": "train,batch",
        "root.train.capacity": "[memory=307200,vcores=48,yarn.io/gpu=12]",
        "root.batch.capacity": "[memory=102400,vcores=16,yarn.io/gpu=4]",
        "root.batch.maximum-capacity": "[memory=204800,vcores=32,yarn.io/gpu=8]",
    },
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The built-in site's resource types, without its queues."""
    types = (PLUGIN_DIR / "conf" / "resource-types.xml").read_text()
    (tmp_path / "resource-types.xml").write_text(types)
    return tmp_path


def queue_file(keys: dict[str, str]) -> str:
    dominant = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
    every = {"resource-calculator": dominant} | keys
    body = "".join(
        f"<property><name>{PREFIX}{key}</name><value>{value}</value></property>\n"
        for key, value in every.items()
    )
    return f"<configuration>\n{body}</configuration>"


def test_every_value_is_the_one_hadoop_has(connect: Connect, folder: Path) -> None:
    """H04, H12, H20: overriding, final, includes, names. The harness tells values as written, references in place."""
    (folder / "sub").mkdir()
    (folder / "sub" / "more.xml").write_text(MORE)
    (folder / "yarn-site.xml").write_text(YARN_SITE)
    (folder / "capacity-scheduler.xml").write_text(queue_file(TREES["percentages"]))
    rm = connect(folder)
    rm.start(folder, {})
    hadoop = {key: value for key, value in rm.configuration().items() if key.startswith("test.")}
    site = SiteConfiguration.load(folder)
    ours = {key: site.raw(key) for key in site.keys("test.")}
    assert ours == hadoop
    assert ours["test.over"] == "included"
    assert ours["test.fallback"] == "used"


@pytest.mark.parametrize("name", TREES)
def test_every_share_is_the_one_hadoop_has(connect: Connect, folder: Path, name: str) -> None:
    """H09, H15, H21: Hadoop tells a queue's part of its parent, so those are multiplied down."""
    (folder / "yarn-site.xml").write_text("<configuration/>")
    (folder / "capacity-scheduler.xml").write_text(queue_file(TREES[name]))
    rm = connect(folder)
    rm.start(folder, {})
    rm.step(1.0, [AddNode(host="server-1", memory_mib=409600, vcores=64, gpus=16)])
    ours = shares(read_queues(SiteConfiguration.load(folder)), 16)
    queues: list[dict[str, Any]] = rm.query(queues=True)["queues"]
    hadoop = {"root": (1.0, 1.0)}
    for queue in queues[1:]:
        above = hadoop[queue["queue"].rpartition(".")[0]]
        relative = (queue["capacity"], queue["maximum_capacity"])
        hadoop[queue["queue"]] = (above[0] * relative[0], above[1] * relative[1])
    assert set(ours) == set(hadoop)
    for path, share in ours.items():
        assert (share.guaranteed_ratio, share.maximum_ratio) == pytest.approx(
            hadoop[path], abs=1e-5
        )
