"""What is in force, and how two sites differ."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gandiva_core.config.keys import KEYS
from gandiva_core.site.configuration import ALL_FILES, SiteConfiguration
from gandiva_core.site.effective import HIDDEN, differences, shown
from gandiva_core.site.hadoop_keys import SHOWN
from tests.site.conftest import document
from tests.site.sites import OWN, Change, write

Load = Callable[[dict[str, str | dict[str, str]]], SiteConfiguration]


def load(folder: Path, change: Change) -> SiteConfiguration:
    folder.mkdir(exist_ok=True)
    return SiteConfiguration.load(write(folder, change), {"HOME": "/srv/x"}, ALL_FILES)


def test_every_key_is_shown_with_its_origin(tmp_path: Path) -> None:
    yarn = {OWN + "mode": " full ", OWN + "core.log-dir": "${env.HOME}/logs", OWN + "tpyo": "1"}
    site = load(tmp_path / "a", Change(True, {"root.gandiva.packing": "false"}, yarn))
    environment = {"GANDIVA_QUANTUM_MS": "30000", "GANDIVA_MODE": "place"}
    found = {item.key: item for item in shown(site, environment)}
    names = {key.name for key in KEYS} | {key.name for key in SHOWN}
    assert names <= set(found)
    value = {key: (item.value, item.origin.rpartition("/")[2]) for key, item in found.items()}
    assert value[OWN + "mode"] == ("full", "yarn-site.xml:3")
    assert value[OWN + "core.log-dir"] == ("/srv/x/logs", "yarn-site.xml:4")
    assert value[OWN + "quantum-ms"] == ("30000", "environment GANDIVA_QUANTUM_MS")
    assert value[OWN + "height.max"] == ("4", "default")
    assert value[OWN + "bridge.token-file"] == ("", "not set")
    assert value[OWN + "tpyo"] == ("1", "yarn-site.xml:5 (an unknown key)")
    for queue in ("root", "root.a", "root.b"):
        key = f"yarn.scheduler.capacity.{queue}.gandiva.packing"
        assert value[key] == ("false", "capacity-scheduler.xml:6")
    assert value["yarn.scheduler.minimum-allocation-mb"] == ("1024", "Hadoop's default")
    assert value["yarn.resource-types"] == ("yarn.io/gpu", "resource-types.xml:2")


def test_a_site_without_queues_is_shown_all_the_same(load_site: Load) -> None:
    site = load_site({"yarn-site.xml": {OWN + "mode": "full"}})
    found = {item.key for item in shown(site, {})}
    assert OWN + "mode" in found
    assert not any(".gandiva.slicing" in key for key in found)


def test_only_values_in_force_differ(tmp_path: Path) -> None:
    left = load(tmp_path / "a", Change(True, yarn={OWN + "height.max": "4", "x": "${y}", "y": "1"}))
    right = load(tmp_path / "b", Change(True, {"root.a.state": "STOPPED"}, {"x": "1", "y": "1"}))
    assert [(a.key, a.value, b.value) for a, b in differences(left, right)] == [
        ("yarn.scheduler.capacity.root.a.state", "", "STOPPED")
    ]
    (pair,) = differences(left, right)
    assert pair[0].origin == "not set"
    assert pair[1].origin.endswith("b/capacity-scheduler.xml:6")
    assert list(differences(left, left)) == []


def test_hadoops_default_stated_is_no_difference(tmp_path: Path) -> None:
    left = load(tmp_path / "a", Change(True, yarn={"yarn.scheduler.maximum-allocation-mb": "8192"}))
    right = load(tmp_path / "b", Change(True))
    assert list(differences(left, right)) == []


def test_secrets_differ_and_stay_hidden(tmp_path: Path) -> None:
    key = "hadoop.security.credstore.java-keystore-provider.password"
    left, right = load(tmp_path / "a", Change(True)), load(tmp_path / "b", Change(True))
    (tmp_path / "b" / "core-site.xml").write_text(document({key: "tell nobody"}))
    right = SiteConfiguration.load(tmp_path / "b", {}, ALL_FILES)
    (pair,) = differences(left, right)
    assert (pair[0].value, pair[1].value) == ("", HIDDEN)
