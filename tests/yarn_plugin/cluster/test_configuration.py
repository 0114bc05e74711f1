"""The files of a cluster: loopback everywhere, GPUs counted, and between the two schedulers only theirs differs."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from gandiva_core.site.baseline import require_valid_baseline
from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.findings import Severity
from gandiva_core.site.validation import Role, validate
from yarn_plugin.cluster.configuration import as_xml, node_conf, scheduler_properties, write_all
from yarn_plugin.cluster.processes import CLUSTER_ID
from yarn_plugin.cluster.state import Cluster, Plan, StateFolder, addressed

ADDRESS = re.compile(r"(?:\d+\.){3}\d+")


def written(path: Path, scheduler: str, **properties: str) -> tuple[StateFolder, Cluster]:
    folder = StateFolder(path)
    named = {name.replace("_", "."): value for name, value in properties.items()}
    cluster = addressed(Plan(3, 4, scheduler, 2, named))
    write_all(folder, cluster, "/jars/a.jar:/jars/b.jar")
    return folder, cluster


def values(conf: Path) -> dict[str, str]:
    site = SiteConfiguration.load(conf)
    assert site.findings == []
    return {key: site.text(key) for key in site.keys("")}


@pytest.mark.parametrize("scheduler", ["capacity", "gandiva"])
def test_every_address_is_a_loopback_one(tmp_path: Path, scheduler: str) -> None:
    folder, cluster = written(tmp_path, scheduler)
    for conf in [folder.conf, *(node_conf(folder, node) for node in cluster.nodes)]:
        found = [match for text in values(conf).values() for match in ADDRESS.findall(text)]
        assert found
        assert all(address.startswith("127.") for address in found)


def test_the_stock_side_counts_gpus(tmp_path: Path) -> None:
    folder, _ = written(tmp_path, "capacity")
    require_valid_baseline(SiteConfiguration.load(folder.conf))


@pytest.mark.parametrize("scheduler", ["capacity", "gandiva"])
def test_validation_finds_nothing_worth_a_warning(tmp_path: Path, scheduler: str) -> None:
    """What `gandiva config validate` says of it, as docs/INSTALL.md begins."""
    folder, cluster = written(tmp_path, scheduler)
    environment = {"PATH": os.environ["PATH"]}
    node = node_conf(folder, cluster.nodes[0])
    roles = (Role.RM, folder.conf), (Role.CLIENT, folder.conf), (Role.NM, node)
    found = [item for role, conf in roles for item in validate(conf, [role], environment)]
    assert [str(item) for item in found if item.severity is not Severity.INFO] == []


def test_the_mode_is_full_unless_it_is_set(tmp_path: Path) -> None:
    """docs/CLUSTER.md: `--set` changes it."""
    key = "yarn.scheduler.gandiva.mode"
    folder, cluster = written(tmp_path / "a", "gandiva")
    assert values(folder.conf)[key] == "full"
    assert key not in scheduler_properties(folder, cluster)
    observing = addressed(Plan(1, 4, "gandiva", 2, {key: "observe"}))
    folder = StateFolder(tmp_path / "b")
    write_all(folder, observing, "/jars/a.jar")
    assert values(folder.conf)[key] == "observe"


def test_both_arms_have_the_same_agents_and_only_one_of_them_a_core(tmp_path: Path) -> None:
    """C-8, docs/LIVE.md: what differs between the arms of an A/B is who schedules, with the keys that only it reads."""
    found = []
    for scheduler in ("capacity", "gandiva"):
        folder = StateFolder(tmp_path / scheduler)
        cluster = addressed(Plan(1, 4, scheduler, 2, agents=True))
        write_all(folder, cluster, "/jars/a.jar")
        found.append(set(values(node_conf(folder, cluster.nodes[0])).items()))
    own = re.compile(r"yarn\.scheduler\.gandiva\.|yarn\.resourcemanager\.scheduler\.class$")
    prefix = "yarn.scheduler.gandiva.agent."
    stock, gandiva = ({each for each in items if own.match(each[0])} for items in found)
    assert {key for key, _ in stock ^ gandiva if key.startswith(prefix)} == {
        f"{prefix}without-core"
    }
    assert (f"{prefix}virtual-gpus", "4") in stock & gandiva
    assert (f"{prefix}without-core", "true") in stock
    # Beside those only what every cluster has for itself: ports, sockets, folders, its id.
    rest = [{key for key, _ in items if not own.match(key)} for items in found]
    assert rest[0] == rest[1]


def test_a_container_can_be_found_by_the_id_of_its_cluster(tmp_path: Path) -> None:
    """A supervised node that is stopped leaves its containers alone; `down` has to end them itself."""
    folder, cluster = written(tmp_path, "gandiva")
    for node in cluster.nodes:
        passed_on = values(node_conf(folder, node))["yarn.nodemanager.admin-env"].split(",")
        assert f"{CLUSTER_ID}={cluster.cluster_id}" in passed_on


def test_each_node_has_its_own_ports_and_folders(tmp_path: Path) -> None:
    folder, cluster = written(tmp_path, "capacity")
    own = ("address", "local-dirs", "log-dirs", "webapp.address", "localizer.address")
    for key in own:
        found = {values(node_conf(folder, n))[f"yarn.nodemanager.{key}"] for n in cluster.nodes}
        assert len(found) == 3
    assert {
        values(node_conf(folder, n))["yarn.nodemanager.resource-type.yarn.io/gpu"]
        for n in cluster.nodes
    } == {"4"}


def test_between_the_schedulers_only_the_scheduler_differs(tmp_path: Path) -> None:
    """DESIGN §7: one cluster, one configuration; the class and the plug-in's own keys are all."""
    stock, _ = written(tmp_path / "a", "capacity")
    ours, _ = written(tmp_path / "b", "gandiva")
    ports = re.compile(r":\d+$")

    def shape(folder: StateFolder) -> dict[str, str]:
        return {
            key: ports.sub("", value.replace(str(folder.path), "STATE"))
            for key, value in values(folder.conf).items()
        }

    one, other = shape(stock), shape(ours)
    differing = {key for key in one | other if one.get(key) != other.get(key)}
    assert differing == {
        "yarn.resourcemanager.scheduler.class",
        "yarn.scheduler.gandiva.height.max",
        "yarn.scheduler.gandiva.bridge.port",
        "yarn.scheduler.gandiva.mode",
        "yarn.scheduler.gandiva.core.managed",
        "yarn.scheduler.gandiva.core.python",
        "yarn.scheduler.gandiva.core.log-dir",
        "yarn.scheduler.gandiva.recovery.hold-ms",
    }


def test_only_a_core_that_somebody_else_starts_needs_a_token_of_the_cluster(
    tmp_path: Path,
) -> None:
    key = "yarn.scheduler.gandiva.bridge.token-file"
    folder, _ = written(tmp_path / "a", "gandiva")
    assert key not in values(folder.conf)
    folder, _ = written(tmp_path / "b", "gandiva", yarn_scheduler_gandiva_core_managed="false")
    assert values(folder.conf)[key] == str(folder.token)


def test_a_key_that_was_asked_for_goes_where_hadoop_looks_for_it(tmp_path: Path) -> None:
    folder, _ = written(tmp_path, "capacity", fs_trash_interval="5", yarn_x="<&>")
    assert "fs.trash.interval" in (folder.conf / "core-site.xml").read_text()
    assert values(folder.conf)["yarn.x"] == "<&>"


def test_text_is_escaped() -> None:
    assert "<value>a&lt;b&amp;c</value>" in as_xml({"k": "a<b&c"})
