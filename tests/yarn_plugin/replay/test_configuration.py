"""What a run's ResourceManager is started with; no JVM needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from gandiva_core.model.cluster import Cluster, QueueLimit
from gandiva_core.model.errors import InputError
from gandiva_core.model.units import QueueName
from gandiva_core.runtime.ports import Arm, RunSetup
from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.queues import read_queues
from gandiva_core.site.shares import gpu_limits
from tests.builders import cluster
from yarn_plugin.replay import configuration
from yarn_plugin.replay.configuration import (
    BUILT_IN,
    GANDIVA_CLASS,
    HEIGHT_MAX,
    SCHEDULER_CLASS,
    STOCK_CLASS,
    prepare,
)


def stock(name: str = "capacity") -> Arm:
    return Arm(name, name, {}, is_stock=True)


def policy(name: str = "gandiva") -> Arm:
    return Arm(name, name.partition(":")[0], {}, is_stock=False)


def setup(
    arm: Arm,
    work_dir: Path,
    *,
    on: Cluster | None = None,
    height: int = 4,
    site: Path | None = None,
) -> RunSetup:
    conf_dir = None if site is None else str(site)
    return RunSetup(arm, on or cluster(2), 1, height, str(work_dir), conf_dir)


def test_arms_differ_in_the_scheduler_class_only(tmp_path: Path) -> None:
    ours = prepare(setup(policy(), tmp_path / "a"))
    theirs = prepare(setup(stock(), tmp_path / "b", height=1))
    assert dict(ours.properties) == {SCHEDULER_CLASS: GANDIVA_CLASS}
    assert dict(theirs.properties) == {SCHEDULER_CLASS: STOCK_CLASS}
    for file in ours.conf_dir.iterdir():
        assert file.read_bytes() == (theirs.conf_dir / file.name).read_bytes()


def test_a_height_that_is_not_the_usual_one_is_told_to_the_plug_in(tmp_path: Path) -> None:
    assert prepare(setup(policy(), tmp_path, height=1)).properties[HEIGHT_MAX] == "1"


def test_the_built_in_files_count_gpus_and_have_one_queue(tmp_path: Path) -> None:
    """A02: without the DominantResourceCalculator a stock arm would be no baseline."""
    made = prepare(setup(policy(), tmp_path))
    site = SiteConfiguration.load(BUILT_IN)
    assert site.text("yarn.scheduler.capacity.resource-calculator").endswith(
        "DominantResourceCalculator"
    )
    assert site.texts("yarn.resource-types") == ("yarn.io/gpu",)
    assert made.queues == (
        QueueLimit(QueueName("root"), 8.0, 8.0),
        QueueLimit(QueueName("root.default"), 8.0, 8.0, "root"),
    )


def test_a_cluster_files_queues_become_percentages_and_back(tmp_path: Path) -> None:
    queues = (
        QueueLimit(QueueName("root"), 8.0, 8.0),
        QueueLimit(QueueName("root.a"), 2.0, 6.0, "root"),
        QueueLimit(QueueName("root.b"), 6.0, 8.0, "root"),
        QueueLimit(QueueName("root.b.c"), 6.0, 8.0, "root.b"),
    )
    on = Cluster("c", cluster(2).servers, queues)
    made = prepare(setup(stock(), tmp_path, on=on))
    site = SiteConfiguration.load(made.conf_dir)
    assert site.text("yarn.scheduler.capacity.root.a.capacity") == "25"
    assert site.text("yarn.scheduler.capacity.root.a.maximum-capacity") == "75"
    assert site.texts("yarn.scheduler.capacity.root.queues") == ("a", "b")
    assert gpu_limits(read_queues(site), {"": 8}) == queues


def test_a_queue_without_a_parent_is_an_input_error(tmp_path: Path) -> None:
    on = Cluster("c", cluster(2).servers, (QueueLimit(QueueName("root.x.y"), 1.0, 1.0, "root.x"),))
    with pytest.raises(InputError, match=r"root\.x"):
        prepare(setup(stock(), tmp_path, on=on))


def a_site(folder: Path) -> Path:
    folder.mkdir()
    for file in BUILT_IN.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def test_a_sites_folder_is_never_written_to(tmp_path: Path) -> None:
    site = a_site(tmp_path / "site")
    before = {file.name: file.stat().st_mtime_ns for file in site.iterdir()}
    made = prepare(setup(stock(), tmp_path / "work", site=site))
    assert {file.name for file in made.conf_dir.iterdir()} == set(before)
    assert {file.name: file.stat().st_mtime_ns for file in site.iterdir()} == before


def test_only_what_a_resource_manager_reads_is_copied(tmp_path: Path) -> None:
    """A site's folder holds passwords, keys and links to nowhere beside its configuration."""
    site = a_site(tmp_path / "site")
    (site / "ssl-server.xml").write_text("<configuration>secret</configuration>", encoding="utf-8")
    (site / "keystore").mkdir()
    (site / "dangling.xml").symlink_to(tmp_path / "nowhere")
    (site / "more").mkdir()
    (site / "more" / "empty.xml").write_text("<configuration/>", encoding="utf-8")
    (site / "core-site.xml").write_text(
        '<configuration xmlns:xi="http://www.w3.org/2001/XInclude">'
        '<xi:include href="more/empty.xml"/></configuration>',
        encoding="utf-8",
    )
    made = prepare(setup(stock(), tmp_path / "work", site=site))
    copied = {
        str(file.relative_to(made.conf_dir)) for file in made.conf_dir.rglob("*") if file.is_file()
    }
    expected = {file.name for file in BUILT_IN.iterdir()} | {"core-site.xml", "more/empty.xml"}
    assert copied == expected


def test_nothing_of_an_earlier_run_counts(tmp_path: Path) -> None:
    site = a_site(tmp_path / "site")
    (site / "core-site.xml").write_text(
        "<configuration><property><name>x.y</name><value>1</value></property></configuration>",
        encoding="utf-8",
    )
    for file in site.iterdir():
        file.chmod(0o444)
    first = prepare(setup(stock(), tmp_path / "work", site=site))
    assert SiteConfiguration.load(first.conf_dir).get("x.y") == "1"
    again = prepare(setup(stock(), tmp_path / "work"))
    assert again.conf_dir == first.conf_dir
    assert SiteConfiguration.load(again.conf_dir).get("x.y") is None


def test_no_such_folder_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        prepare(setup(stock(), tmp_path, site=tmp_path / "nowhere"))


def test_fair_is_set_on_every_leaf(tmp_path: Path) -> None:
    queues = tuple(QueueLimit(QueueName(f"root.{name}"), 4.0, 8.0, "root") for name in "ab")
    on = Cluster("c", cluster(2).servers, queues)
    made = prepare(setup(stock("capacity-fair"), tmp_path, on=on))
    assert [key for key, value in made.properties.items() if value == "fair"] == [
        "yarn.scheduler.capacity.root.a.ordering-policy",
        "yarn.scheduler.capacity.root.b.ordering-policy",
    ]


def test_preempting_prescribes_its_queues_and_takes_no_site(tmp_path: Path) -> None:
    made = prepare(setup(stock("capacity-preempt"), tmp_path / "a"))
    assert made.properties["yarn.scheduler.capacity.root.queues"] == "even,odd"
    assert made.queues == ()
    with pytest.raises(InputError, match="its own two queues"):
        prepare(setup(stock("capacity-preempt"), tmp_path / "b", site=BUILT_IN))


def test_back_fill_is_for_the_simulator(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--engine sim"):
        prepare(setup(stock("exclusive-backfill"), tmp_path))


def test_values_are_escaped_in_xml(tmp_path: Path) -> None:
    file = tmp_path / "x.xml"
    file.write_text("<configuration>\n</configuration>\n", encoding="utf-8")
    text = configuration._with_properties(file, {"a&b": "<c>"})
    assert "<name>a&amp;b</name><value>&lt;c&gt;</value>" in text
    assert text.endswith("</configuration>\n")
