"""Files over one another: last wins, final holds, and every value knows its file and line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gandiva_core.model.errors import InputError
from gandiva_core.site.configuration import CLIENT_FILES, NODE_FILES, SiteConfiguration
from gandiva_core.site.hadoop_xml import Property

Load = Callable[[dict[str, str | dict[str, str]]], SiteConfiguration]


def line(name: str, value: str, extra: str = "") -> str:
    return f"<property><name>{name}</name><value>{value}</value>{extra}</property>\n"


def test_a_later_file_wins_and_origin_is_known(load_site: Load) -> None:
    site = load_site({"core-site.xml": {"a": "1", "b": "1"}, "yarn-site.xml": {"a": "2"}})
    assert (site.get("a"), site.get("b"), site.get("c")) == ("2", "1", None)
    assert site.place("a").endswith("yarn-site.xml:2")
    assert site.place("b").endswith("core-site.xml:3")
    assert list(site.keys()) == ["a", "b"]


def test_in_one_file_the_last_wins_and_is_told(load_site: Load) -> None:
    """H12: the calculator set twice."""
    body = f"<configuration>\n{line('a', 'old')}{line('a', 'new')}</configuration>"
    site = load_site({"capacity-scheduler.xml": body})
    assert site.get("a") == "new"
    (finding,) = site.findings
    assert finding.found == "the key set twice in this file, 'old' in line 2"
    assert finding.advice == "this one wins: remove line 2"


def test_a_final_value_cannot_be_overridden(load_site: Load) -> None:
    core = f"<configuration>{line('a', '1', '<final>true</final>')}{line('a', '2')}</configuration>"
    site = load_site({"core-site.xml": core, "yarn-site.xml": {"a": "3"}})
    assert site.get("a") == "1"
    assert all("final" in finding.text for finding in site.findings)
    assert len(site.findings) == 2


def test_a_property_without_a_value_is_ignored_and_one_with_two_names_is_told(
    load_site: Load,
) -> None:
    """H04: `<name>…</name><name>1536</name>` leaves the default in force."""
    broken = (
        "<property>\n<name>yarn.scheduler.minimum-allocation-mb</name><name>1536</name></property>"
    )
    site = load_site({"yarn-site.xml": f"<configuration>\n{broken}{line('b', '')}</configuration>"})
    assert site.whole("yarn.scheduler.minimum-allocation-mb", 1024) == 1024
    (finding,) = site.findings
    assert finding.place.endswith("yarn-site.xml:2")
    assert "'yarn.scheduler.minimum-allocation-mb' and '1536' and no value" in finding.text


def test_references_reach_over_files_and_the_environment(write_site: Callable[..., Path]) -> None:
    """H15: an increment that refers to the minimum."""
    folder = write_site(
        {
            "core-site.xml": {"minimum": "32"},
            "yarn-site.xml": {"increment": "${minimum}", "home": "${env.PLACE:-none}"},
        }
    )
    site = SiteConfiguration.load(folder, environment={"PLACE": "here"})
    assert site.whole("increment", 0) == 32
    assert site.get("home") == "here"
    assert site.raw("increment") == "${minimum}"


def test_system_properties_come_before_keys() -> None:
    item = Property("a", "${user.name}", False, "f.xml", 1)
    other = Property("user.name", "key", False, "f.xml", 2)
    site = SiteConfiguration([item, other], system_properties={"user.name": "yarn"})
    assert site.get("a") == "yarn"


def test_lists_may_span_lines(load_site: Load) -> None:
    """H08."""
    site = load_site({"yarn-site.xml": {"queues": "\n  default, vc1,\n vc2\n"}})
    assert site.texts("queues") == ("default", "vc1", "vc2")
    assert site.texts("absent") == ()


def test_numbers_and_flags(load_site: Load) -> None:
    site = load_site(
        {"yarn-site.xml": {"n": " 7 ", "x": "2.5", "yes": "TRUE", "odd": "maybe", "word": "ten"}}
    )
    assert (site.whole("n", 0), site.number("x", 0.0), site.number("absent", 1.5)) == (7, 2.5, 1.5)
    assert (site.flag("yes", False), site.flag("odd", True), site.flag("none", False)) == (
        True,
        True,
        False,
    )
    for read in (site.number, site.whole):
        with pytest.raises(InputError, match=r"yarn-site\.xml:6: word: found 'ten'"):
            read("word", 0)


def test_located_feeds_the_settings(load_site: Load) -> None:
    site = load_site({"yarn-site.xml": {"yarn.scheduler.gandiva.height.max": "2", "other": "1"}})
    located = site.located("yarn.scheduler.gandiva.")
    assert located["yarn.scheduler.gandiva.height.max"].value == "2"
    assert len(located) == 1


def test_folders_that_are_no_site_are_refused(tmp_path: Path) -> None:
    """H10: only a fair-scheduler.xml."""
    with pytest.raises(InputError, match="no such folder"):
        SiteConfiguration.load(tmp_path / "absent")
    with pytest.raises(InputError, match="at least one of"):
        SiteConfiguration.load(tmp_path)
    (tmp_path / "fair-scheduler.xml").write_text("<allocations><pool/></allocations>")
    with pytest.raises(InputError, match=r"only fair-scheduler\.xml"):
        SiteConfiguration.load(tmp_path)
    with pytest.raises(InputError, match="a file"):
        SiteConfiguration.load(tmp_path / "fair-scheduler.xml")


def test_a_file_nobody_reads_is_told(load_site: Load) -> None:
    """H09."""
    site = load_site({"yarn-site.xml": {"a": "1"}, "fair-scheduler.xml": "<allocations/>"})
    (finding,) = site.findings
    assert "neither Gandiva nor the CapacityScheduler reads it" in finding.text
    assert str(finding).startswith("warning: ")


def test_a_deprecated_name_is_read_as_the_new_one(load_site: Load) -> None:
    """As Hadoop does while it reads: whichever of the two comes last wins."""
    old, new = "yarn.resourcemanager.zk-address", "hadoop.zk.address"
    site = load_site({"yarn-site.xml": {old: "zk1:2181", "a": f"${{{old}}}"}})
    assert (site.get(new), site.get(old), site.get("a")) == ("zk1:2181",) * 3
    assert list(site.keys()) == [new, "a"]
    (finding,) = site.findings
    assert (finding.subject, finding.expected) == (old, new)
    later = load_site({"core-site.xml": {new: "zk1"}, "yarn-site.xml": {old: "zk2"}})
    assert later.get(new) == "zk2"


def test_each_daemon_reads_its_own_files(write_site: Callable[..., Path]) -> None:
    folder = write_site(
        {"node-resources.xml": {"a": "node"}, "capacity-scheduler.xml": {"a": "queues"}}
    )
    assert SiteConfiguration.load(folder).get("a") == "queues"
    assert SiteConfiguration.load(folder, names=NODE_FILES).get("a") == "node"
    with pytest.raises(InputError, match=r"at least one of core-site\.xml"):
        SiteConfiguration.load(folder, names=CLIENT_FILES)
