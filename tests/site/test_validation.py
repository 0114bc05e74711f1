"""Whether a cluster could start: the verdicts of a real ResourceManager, and each finding."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gandiva_core.model.errors import InputError
from gandiva_core.site.advice import NODE_MANAGER, RESOURCE_MANAGER
from gandiva_core.site.findings import Finding, Severity
from gandiva_core.site.validation import Role, can_start, validate
from tests.site.sites import CHANGES, GPU_AMOUNT, OWN, Change, write

Write = Callable[..., Path]
ENVIRONMENT = {"PATH": os.environ["PATH"]}
RECOVERY = {
    "yarn.resourcemanager.recovery.enabled": "true",
    # What a shop is only told about.
    "yarn.nm.liveness-monitor.expiry-interval-ms": "60000",
    "yarn.acl.enable": "true",
    "hadoop.http.authentication.simple.anonymous.allowed": "false",
    "yarn.webapp.enable-rest-app-submissions": "false",
}


def findings(folder: Path, change: Change, *roles: Role) -> tuple[Finding, ...]:
    return validate(write(folder, change), roles or (Role.RM,), ENVIRONMENT)


def is_advice(finding: Finding) -> bool:
    advised = {advice.key for advice in (*RESOURCE_MANAGER, *NODE_MANAGER)}
    return finding.severity is Severity.INFO and finding.subject in advised


def one(found: tuple[Finding, ...], part: str) -> Finding:
    (finding,) = (finding for finding in found if part in finding.subject)
    return finding


@pytest.mark.parametrize("name", CHANGES)
def test_the_verdict_is_the_resource_managers(tmp_path: Path, name: str) -> None:
    """tests/yarn/test_start_verdicts.py starts one with each of these."""
    found = findings(tmp_path, CHANGES[name])
    assert can_start(found) is CHANGES[name].starts
    for finding in found:
        assert finding.advice
        assert finding.expected
        assert "\n" not in str(finding)
        assert finding.place.startswith(str(tmp_path))


def test_a_good_site_has_nothing_to_say(tmp_path: Path) -> None:
    assert findings(tmp_path, Change(True, yarn=RECOVERY)) == ()


def test_what_we_would_ship_otherwise_is_told_and_stops_nothing(tmp_path: Path) -> None:
    """FAULTS §3, of a site that says nothing about it."""
    found = findings(tmp_path, Change(True))
    told = {finding.subject: finding.found for finding in found if is_advice(finding)}
    assert told == {
        "yarn.nm.liveness-monitor.expiry-interval-ms": "not set, so 600000",
        "yarn.acl.enable": "not set, so false",
        "hadoop.http.authentication.simple.anonymous.allowed": "not set, so true",
        "yarn.webapp.enable-rest-app-submissions": "not set, so true",
    }
    assert can_start(found)


def test_errors_come_first_then_files_and_lines(tmp_path: Path) -> None:
    change = Change(False, {"root.a.state": "on", "root.a.priority": "x", "root.a.capcity": "1"})
    found = findings(tmp_path, change)
    ranks = [(tuple(Severity).index(finding.severity), finding.place) for finding in found]
    assert ranks == sorted(ranks)
    assert [finding.severity.value for finding in found][:2] == ["error", "error"]


@pytest.mark.parametrize(
    ("mode", "severity"), [("observe", "warning"), ("place", "error"), ("full", "error")]
)
def test_gpus_that_nobody_counts_stop_a_mode_that_hands_them_out(
    tmp_path: Path, mode: str, severity: str
) -> None:
    """H03: "yarn.io/gpu not in yarn.resource-types"; another vendor's types stay."""
    change = Change(False, yarn={OWN + "mode": mode}, types="a.com/ve,b.com/cmp")
    finding = one(findings(tmp_path, change), "yarn.resource-types")
    assert (finding.severity, finding.found) == (severity, "yarn.io/gpu not in yarn.resource-types")
    assert finding.place.endswith("resource-types.xml:2")


@pytest.mark.parametrize(
    ("key", "value", "found", "expected"),
    [
        ("mode", "fulll", "'fulll'", "observe or place or full, default observe"),
        ("core.fallback", "never", "'never'", "wait or exclusive, default wait"),
        ("core.managed", "yes", "'yes'", "true or false, default true"),
        ("bridge.port", "-1", "'-1'", "a whole number, at least 0, default 0"),
        ("bridge.events.max", "0", "'0'", "a whole number, at least 1, default 100000"),
        ("height.max", "65", "'65'", "less than or equal to 64 (a whole number, default 4)"),
        ("hieght.max", "4", "an unknown key", f"{OWN}height.max?"),
        ("queues", "root.bb", "no queue root.bb", "root.b?"),
        ("queues", "root.b,nosuch", "no queue nosuch", "* or one of root, root.a, root.b"),
    ],
)
def test_our_own_keys(tmp_path: Path, key: str, value: str, found: str, expected: str) -> None:
    finding = one(findings(tmp_path, Change(False, yarn={OWN + key: value})), OWN + key)
    assert finding.severity is Severity.ERROR
    assert (finding.found, finding.expected) == (found, expected)
    assert finding.place.endswith("yarn-site.xml:3")


@pytest.mark.parametrize("value", ["*", "root", "root.a, root.b", "b"])
def test_adopted_queues_are_paths_or_short_names_of_leaves(tmp_path: Path, value: str) -> None:
    change = Change(True, yarn=RECOVERY | {OWN + "queues": value, OWN + "mode": "Place"})
    assert findings(tmp_path, change) == ()


def test_adopted_partitions_are_compared_with_the_labels_of_queues(tmp_path: Path) -> None:
    """Labels are made with rmadmin: one that no queue knows may still come, so it is a warning."""
    label = {"root.a.accessible-node-labels.g.capacity": "100"}
    for value, is_told in (("g,DEFAULT", False), ("*", False), ("h", True)):
        found = findings(tmp_path, Change(True, label, {OWN + "partitions": value}))
        told = [finding for finding in found if finding.subject == OWN + "partitions"]
        assert bool(told) is is_told
    assert (told[0].severity, told[0].expected) == (Severity.WARNING, "*, DEFAULT, g")


def test_a_variable_that_nobody_reads_is_told(tmp_path: Path) -> None:
    environment = ENVIRONMENT | {"GANDIVA_QUANTUM_S": "60", "GANDIVA_HEIGHT_MAX": "0"}
    environment["GANDIVA_DEBUG"] = "1"
    found = validate(write(tmp_path, Change(False)), [Role.RM], environment)
    told = {finding.place: finding for finding in found if "environment" in finding.place}
    assert told["environment"].subject == "GANDIVA_QUANTUM_S"
    assert told["environment"].expected == "GANDIVA_QUANTUM_MS?"
    assert told["environment"].severity is Severity.WARNING
    assert told["environment GANDIVA_HEIGHT_MAX"].severity is Severity.ERROR


def test_over_subscription_without_agents_is_named_dangerous(tmp_path: Path) -> None:
    change = Change(True, yarn={OWN + "oversubscribe-without-agent": "true"})
    finding = one(findings(tmp_path, change), "oversubscribe")
    assert finding.severity is Severity.WARNING
    assert "dangerous" in finding.advice


@pytest.mark.parametrize(
    ("key", "value", "severity", "expected"),
    [
        ("root.a.gandiva.slicng", "false", "error", "slicing?"),
        ("root.a.gandiva.colour", "false", "error", "one of slicing, packing, migration, growsh"),
        ("root.aa.gandiva.slicing", "false", "error", "root.a?"),
        ("a.gandiva.slicing", "false", "error", "root.a?"),
        ("root.a.gandiva.slicing", "off", "error", "true or false"),
    ],
)
def test_switches_of_queues(
    tmp_path: Path, key: str, value: str, severity: str, expected: str
) -> None:
    finding = one(findings(tmp_path, Change(True, {key: value})), key)
    assert finding.severity == severity
    assert finding.expected.startswith(expected)


def test_queues_that_come_by_themselves_are_queues(tmp_path: Path) -> None:
    grows = {"root.a.auto-queue-creation-v2.enabled": "true", "root.a.x.gandiva.slicing": "false"}
    grows |= {"queue-mappings": "u:joe:root.a.joe"}
    change = Change(True, grows, RECOVERY | {OWN + "queues": "root.a.joe"})
    assert findings(tmp_path, change) == ()


def test_a_short_name_of_several_queues_is_none(tmp_path: Path) -> None:
    keys = {"root.a.queues": "x", "root.b.queues": "x"}
    keys |= {"root.a.x.capacity": "100", "root.b.x.capacity": "100"}
    finding = one(findings(tmp_path, Change(False, keys, {OWN + "queues": "x"})), OWN + "queues")
    assert finding.found == "x, the name of several queues"
    assert finding.expected == "one of root.a.x, root.b.x"


def test_amounts_of_gpus_are_scaled_only_where_they_are_read_from_a_file(tmp_path: Path) -> None:
    amounts = {"root.a.capacity": GPU_AMOUNT, "root.b.capacity": GPU_AMOUNT}
    store = {"yarn.scheduler.configuration.store.class": "leveldb", OWN + "mode": "full"}
    finding = one(findings(tmp_path, Change(False, amounts, store)), "store.class")
    assert "root.a" in finding.advice
    assert can_start(findings(tmp_path, Change(True, amounts, store | {OWN + "height.max": "1"})))
    assert can_start(findings(tmp_path, Change(True, yarn=store)))


def test_the_token_file_is_looked_at(tmp_path: Path) -> None:
    """Its content is read by nobody here."""
    token = tmp_path / "token"
    token.write_text("x" * 32)
    key = OWN + "bridge.token-file"
    change = Change(True, yarn=RECOVERY | {key: str(token)})
    token.chmod(0o600)
    assert findings(tmp_path, change) == ()
    token.chmod(0o640)
    finding = one(findings(tmp_path, change), key)
    assert (finding.severity, finding.found) == (Severity.ERROR, f"{token} of mode 0640")
    assert "chmod 600" in finding.advice
    finding = one(findings(tmp_path, Change(False, yarn={key: str(tmp_path)})), key)
    assert finding.severity is Severity.ERROR


def test_a_core_that_nobody_can_start_is_told(tmp_path: Path) -> None:
    """Not an error: the ResourceManager lives on, and GPU asks wait."""
    missing = Change(True, yarn={OWN + "core.python": "/nonexistent/python"})
    assert one(findings(tmp_path, missing), "core.python").severity is Severity.WARNING
    closed = Change(True, yarn={OWN + "core.managed": "false"})
    assert "no core can connect" in one(findings(tmp_path, closed), "token-file").advice


def test_hadoops_own_switches(tmp_path: Path) -> None:
    """FAULTS §3: what concerns a start; the rest is worth knowing."""
    asynchronous = "schedule-asynchronously.enable"
    yarn = {
        "yarn.resourcemanager.scheduler.monitor.enable": "true",
        "yarn.resourcemanager.opportunistic-container-allocation.enabled": "true",
        "yarn.resourcemanager.scheduler.class": "org.example.Fair",
    }
    found = findings(tmp_path, Change(True, {asynchronous: "true"}, yarn))
    found = tuple(finding for finding in found if not is_advice(finding))
    severities = {
        finding.subject.rpartition("yarn.")[2]: finding.severity.value for finding in found
    }
    assert severities == {
        "resourcemanager.recovery.enabled": "warning",
        "resourcemanager.scheduler.class": "warning",
        "resourcemanager.scheduler.monitor.enable": "info",
        "resourcemanager.opportunistic-container-allocation.enabled": "info",
        f"scheduler.capacity.{asynchronous}": "info",
    }


def test_words_where_numbers_belong(tmp_path: Path) -> None:
    change = Change(False, yarn={"yarn.nm.liveness-monitor.expiry-interval-ms": "ten minutes"})
    assert one(findings(tmp_path, change), "expiry").severity is Severity.ERROR
    change = Change(True, yarn={"yarn.acl.enable": "yes"})
    assert one(findings(tmp_path, change), "acl").severity is Severity.WARNING


def test_a_misspelt_key_is_told_with_its_line(tmp_path: Path) -> None:
    """H12; and a queue's own, and one of ours outside of our prefix."""
    yarn = {"yarn.scheduler.minimun-allocation-mb": "500", "yarn.scheduler.gandvia.mode": "full"}
    found = findings(tmp_path, Change(True, {"root.a.maximun-capacity": "50"}, yarn))
    told = {finding.subject: finding.expected for finding in found if "unknown" in finding.found}
    assert told == {
        "yarn.scheduler.minimun-allocation-mb": "yarn.scheduler.minimum-allocation-mb",
        "yarn.scheduler.gandvia.mode": "yarn.scheduler.gandiva.mode",
        "yarn.scheduler.capacity.root.a.maximun-capacity": (
            "yarn.scheduler.capacity.root.a.maximum-capacity"
        ),
    }


def test_a_queue_of_labelled_gpus_whose_applications_ask_elsewhere(tmp_path: Path) -> None:
    """H01."""
    label = {"root.a.accessible-node-labels.g.capacity": "100"}
    found = findings(tmp_path, Change(True, label))
    finding = one(found, "root.a.default-node-label-expression")
    assert (finding.severity, finding.expected) == (Severity.WARNING, "g")
    assert "wait for ever" in finding.advice
    assert one(found, "yarn.node-labels.enabled").severity is Severity.WARNING
    cured = label | {"root.a.default-node-label-expression": "g"}
    yarn = RECOVERY | {"yarn.node-labels.enabled": "true"}
    assert findings(tmp_path, Change(True, cured, yarn)) == ()


GOOD_NODE = {
    "yarn.nodemanager.sleep-delay-before-sigkill.ms": "30000",
    "yarn.nodemanager.recovery.supervised": "true",
    "yarn.nodemanager.resource-type.yarn.io/gpu": "4",
    "yarn.nodemanager.recovery.enabled": "true",
    "yarn.nodemanager.address": "node-1:8041",
}
PLUGINS = "yarn.nodemanager.resource-plugins"


def test_a_good_node_has_nothing_to_say(tmp_path: Path) -> None:
    assert findings(tmp_path, Change(True, yarn=GOOD_NODE), Role.NM) == ()


@pytest.mark.parametrize("mode", ["observe", "place", "full"])
def test_hadoops_own_gpu_plug_in_is_off_before_the_core_hands_out_gpus(
    tmp_path: Path, mode: str
) -> None:
    """DESIGN §4: it insists on one container a device."""
    keys = GOOD_NODE | {PLUGINS: "yarn.io/gpu", OWN + "mode": mode}
    finding = one(findings(tmp_path, Change(True, yarn=keys), Role.NM), PLUGINS)
    assert finding.severity.value == ("warning" if mode == "observe" else "error")
    fpga = GOOD_NODE | {PLUGINS: "yarn.io/fpga", OWN + "mode": mode}
    assert findings(tmp_path, Change(True, yarn=fpga), Role.NM) == ()


def test_what_a_node_lacks(tmp_path: Path) -> None:
    found = findings(tmp_path, Change(True), Role.NM)
    assert sum(map(is_advice, found)) == 2
    found = tuple(finding for finding in found if not is_advice(finding))
    assert {(finding.subject, finding.severity.value) for finding in found} == {
        ("yarn.nodemanager.resource-type.yarn.io/gpu", "warning"),
        ("yarn.nodemanager.recovery.enabled", "warning"),
    }
    port = GOOD_NODE | {"yarn.nodemanager.address": "node-1:0"}
    finding = one(findings(tmp_path, Change(False, yarn=port), Role.NM), "address")
    assert finding.severity is Severity.ERROR
    words = GOOD_NODE | {"yarn.nodemanager.resource-type.yarn.io/gpu": "four"}
    assert not can_start(findings(tmp_path, Change(False, yarn=words), Role.NM))


def test_a_node_reads_its_own_resources_file(tmp_path: Path, write_site: Write) -> None:
    gpus = {"yarn.nodemanager.resource-type.yarn.io/gpu": "4"}
    write_site({"node-resources.xml": gpus})
    found = findings(tmp_path, Change(True), Role.NM)
    assert not any("resource-type." in finding.subject for finding in found)


def test_a_client_knows_the_type_and_the_resource_manager(tmp_path: Path) -> None:
    """A12 iii: without the type a client's ask is refused by the client itself."""
    named = {"yarn.resourcemanager.hostname": "rm-1"}
    assert findings(tmp_path, Change(True, yarn=named), Role.CLIENT) == ()
    (finding,) = findings(tmp_path, Change(True), Role.CLIENT)
    assert finding.severity is Severity.INFO
    assert not can_start(findings(tmp_path, Change(False, types=""), Role.CLIENT))


def test_one_folder_for_all_is_told_once(tmp_path: Path) -> None:
    found = findings(tmp_path, Change(False, types="memory"), Role.RM, Role.NM, Role.CLIENT)
    assert len([finding for finding in found if finding.found == "memory"]) == 1


def test_what_cannot_be_read_is_no_finding(tmp_path: Path) -> None:
    """H17: exit code 3 of the command."""
    write(tmp_path, Change(True))
    (tmp_path / "yarn-site.xml").write_text("../conf.simple/yarn-site.xml\n")
    with pytest.raises(InputError, match=r"yarn-site\.xml:1: .*a path"):
        validate(tmp_path, [Role.RM], ENVIRONMENT)
