"""Area (h) of the cases: real sites' traits, and what Hadoop 3.4.2 made of them.

Each test runs twice: on small files of our own with the same trait, and on the saved files where they are there. What
needs a running ResourceManager is in tests/yarn/test_site_cases.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gandiva_core.model.errors import InputError
from gandiva_core.site.baseline import calculator, check_site, require_valid_baseline
from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.findings import Severity
from gandiva_core.site.hadoop_xml import read_file
from gandiva_core.site.queues import leaves, read_queues
from gandiva_core.site.resource_types import UNLIMITED, declared, gpu_maximum_allocation, has_gpu
from gandiva_core.site.shares import check_partitions, gpu_limits, shares
from gandiva_core.site.validation import Role, can_start, validate
from tests.site.conftest import document
from tests.site.own_cases import CASES

Case = Callable[[str], Path]
AM_PERCENT = "yarn.scheduler.capacity.maximum-am-resource-percent"
OWN, SAVED = "own", "saved"


@pytest.fixture(params=[OWN, SAVED])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    """The folder of one case: our own files, or the saved ones."""

    def own(name: str) -> Path:
        folder = tmp_path / name
        for file, content in CASES[name].items():
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else document(dict(content)))
        return folder

    def saved(name: str) -> Path:
        shared: Path = request.getfixturevalue("shared_dir")
        folder = shared / "cases" / "conf" / name
        if not folder.is_dir():
            pytest.skip(f"no case {name} in ../shared")
        return folder

    return own if request.param == OWN else saved


def told(folder: Path, severity: Severity, *roles: Role) -> list[str]:
    """What `gandiva config validate` says of one severity, a line each."""
    found = validate(folder, roles or (Role.RM,), {"PATH": "/usr/bin:/bin"})
    return [str(finding) for finding in found if finding.severity is severity]


def starts(folder: Path) -> bool:
    """Its verdict."""
    return can_start(validate(folder, [Role.RM], {"PATH": "/usr/bin:/bin"}))


def short_shares(folder: Path, partition: str = "") -> dict[str, tuple[float, float]]:
    tree = read_queues(SiteConfiguration.load(folder))
    return {
        path.rpartition(".")[2]: (share.guaranteed_ratio, share.maximum_ratio)
        for path, share in shares(tree, 16, partition).items()
    }


def test_H01_one_queue_owns_the_gpu_label(case: Case) -> None:
    site = SiteConfiguration.load(case("H01"))
    found = short_shares(case("H01"))
    names = ("gpus", "launchers", "default", "production", "essential")
    assert [found[name][0] for name in names] == pytest.approx([0.02, 0.03, 0.35, 0.5, 0.1])
    assert all(found[name][1] == 1.0 for name in names)
    assert short_shares(case("H01"), "GPU")["gpus"] == (1.0, 1.0)
    assert site.flag("yarn.resourcemanager.scheduler.monitor.enable", False)
    require_valid_baseline(site)
    checked = [str(finding) for finding in check_partitions(read_queues(site), {"": 0, "GPU": 16})]
    assert any("root.gpus" in line and "wait for ever" in line for line in checked)
    assert starts(case("H01"))
    (line,) = (line for line in told(case("H01"), Severity.WARNING) if "wait for ever" in line)
    assert "root.gpus.default-node-label-expression: found not set, expected GPU" in line


def test_H02_two_kinds_of_gpu_as_labels(case: Case) -> None:
    site = SiteConfiguration.load(case("H02"))
    tree = read_queues(site)
    halves = short_shares(case("H02"))
    assert (halves["gpu4"], halves["gpu1"]) == ((0.5, 1.0), (0.5, 1.0))
    assert short_shares(case("H02"), "nvidia2080")["gpu4"] == (1.0, 1.0)
    assert short_shares(case("H02"), "quadro2000")["gpu1"] == (1.0, 1.0)
    assert has_gpu(site)
    assert {queue.default_label for queue in leaves(tree)} == {"nvidia2080", "quadro2000"}
    assert "root.default" not in tree
    assert starts(case("H02"))
    (line,) = (line for line in told(case("H02"), Severity.WARNING) if "aux-service:" in line)
    assert "expected yarn.nodemanager.aux-services" in line
    backup = {item.name for item in read_file(case("H02") / "capacity-scheduler.xml.bak")}
    assert "yarn.scheduler.capacity.root.default.maximum-application-lifetime" in backup


def test_H03_other_vendors_devices_and_the_fair_scheduler(case: Case) -> None:
    site = SiteConfiguration.load(case("H03"))
    assert declared(site) == ("memory-mb", "vcores", "nec.com/ve", "cmp.com/cmp")
    assert list(read_file(case("H03") / "node-resources.xml")) == []
    with pytest.raises(InputError, match=r"yarn\.io/gpu not in yarn\.resource-types"):
        require_valid_baseline(site)
    lines = told(case("H03"), Severity.WARNING)
    assert any("found yarn.io/gpu not in yarn.resource-types" in line for line in lines)
    assert any("FairScheduler, expected org.gandiva.yarn.GandivaScheduler" in li for li in lines)


def test_H04_a_mandatory_type_declared_again(case: Case) -> None:
    site = SiteConfiguration.load(case("H04"))
    assert site.whole("yarn.scheduler.minimum-allocation-mb", 1024) == 1024
    (finding,) = site.findings
    assert "yarn-site.xml:" in finding.place
    assert finding.subject == "yarn.scheduler.minimum-allocation-mb"
    with pytest.raises(
        InputError, match=r"resource-types\.xml:2: yarn\.resource-types: .*memory-mb"
    ):
        require_valid_baseline(site)
    errors = told(case("H04"), Severity.ERROR)
    assert any("resource-types.xml:2: yarn.resource-types: found memory-mb" in e for e in errors)


def test_H06_settings_for_a_queue_that_is_not_listed(case: Case) -> None:
    site = SiteConfiguration.load(case("H06"))
    found = short_shares(case("H06"))
    assert [found[name][0] for name in "abc"] == pytest.approx([0.3, 0.3, 0.4])
    assert any("root.default" in finding.text for finding in check_site(site, {"": 16}))
    assert "root.default" not in read_queues(site)
    assert starts(case("H06"))
    orphans = [line for line in told(case("H06"), Severity.WARNING) if "no queues key" in line]
    assert len(orphans) == 1


def test_H08_a_queue_list_over_several_lines(case: Case) -> None:
    found = short_shares(case("H08"))
    assert [found[name][0] for name in ("default", "vc1", "vc2")] == pytest.approx(
        [0.6, 0.25, 0.15]
    )
    assert SiteConfiguration.load(case("H08")).number(AM_PERCENT, 0.1) == 1.0


def test_H09_thirds(case: Case) -> None:
    site = SiteConfiguration.load(case("H09"))
    found = short_shares(case("H09"))
    names = ("u1", "u2", "u3", "default", "u4", "u5")
    expected = [0.199998, 0.200004, 0.199998, 0.2, 0.1, 0.1]
    assert [found[name][0] for name in names] == pytest.approx(expected)
    assert site.number(AM_PERCENT, 0.1) == 0.5
    assert calculator(site).endswith("DefaultResourceCalculator")
    assert any("fair-scheduler.xml" in finding.subject for finding in site.findings)
    assert starts(case("H09"))


def test_H10_only_a_fair_scheduler_file(case: Case) -> None:
    with pytest.raises(InputError, match=r"only fair-scheduler\.xml"):
        SiteConfiguration.load(case("H10"))
    with pytest.raises(InputError, match=r"only fair-scheduler\.xml"):
        validate(case("H10"), [Role.RM], {})


def test_H11_the_default_calculator_is_no_baseline(case: Case) -> None:
    """A02 too."""
    site = SiteConfiguration.load(case("H11"))
    assert site.number(AM_PERCENT, 0.1) == 0.25
    decommission = "yarn.resourcemanager.nodemanager-graceful-decommission-timeout-secs"
    assert site.whole(decommission, 3600) == 86400
    assert site.whole("yarn.resourcemanager.am.max-attempts", 2) == 10
    with pytest.raises(InputError, match=r"yarn\.io/gpu not in yarn\.resource-types"):
        require_valid_baseline(site)
    for lines in ([str(f) for f in check_site(site, {"": 4})], told(case("H11"), Severity.WARNING)):
        (line,) = (line for line in lines if "yarn.scheduler.capacity.resource-calculator" in line)
        assert "capacity-scheduler.xml:" in line
    assert starts(case("H11"))


def test_H12_set_twice_and_misspelt(case: Case) -> None:
    site = SiteConfiguration.load(case("H12"))
    assert calculator(site).endswith("DominantResourceCalculator")
    assert site.whole("yarn.scheduler.minimum-allocation-mb", 1024) == 1024
    lines = told(case("H12"), Severity.WARNING)
    assert any("set twice" in line for line in lines)
    assert any("minimun-allocation-mb" in line and "minimum-all" in line for line in lines)
    assert starts(case("H12"))


def test_H15_nested_queues_and_a_reference(case: Case) -> None:
    site = SiteConfiguration.load(case("H15"))
    found = short_shares(case("H15"))
    assert found["fruit"][1] == pytest.approx(0.5)
    assert found["apples"] == pytest.approx((0.2, 0.5))
    assert found["bananas"] == pytest.approx((0.1, 0.25))
    assert found["oranges"] == pytest.approx((0.1, 0.3))
    assert site.whole("yarn.scheduler.increment-allocation-mb", 0) == 32
    assert site.whole("yarn.resource-types.memory-mb.increment-allocation", 0) == 32


def test_H17_a_symbolic_link_stored_as_text(case: Case) -> None:
    with pytest.raises(InputError) as caught:
        SiteConfiguration.load(case("H17"))
    assert caught.value.place.endswith("capacity-scheduler.xml:1")
    assert "../conf.simple/capacity-scheduler.xml" in caught.value.found
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"capacity-scheduler\.xml:1: found .*a path"):
        validate(case("H17"), [Role.RM], {})


def test_H18_map_reduce_1_keys(case: Case) -> None:
    for read in (read_queues, require_valid_baseline):
        with pytest.raises(InputError, match="MapReduce 1 keys"):
            read(SiteConfiguration.load(case("H18")))
    (line,) = told(case("H18"), Severity.ERROR)
    assert "capacity-scheduler.xml:" in line
    assert "MapReduce 1 keys" in line


def test_H19_names_with_trailing_blanks(case: Case) -> None:
    """A02 too."""
    site = SiteConfiguration.load(case("H19"))
    found = short_shares(case("H19"))
    assert found["default"] == pytest.approx((0.4, 0.6))
    assert found["hive"] == pytest.approx((0.6, 0.8))
    assert site.get("yarn.scheduler.capacity.root.hive.maximum-application-lifetime") == "-1"


def test_A02_gpus_declared_but_not_counted(case: Case, tmp_path: Path) -> None:
    """H19's queue file beside a declaration of GPUs."""
    (tmp_path / "capacity-scheduler.xml").write_text(
        (case("H19") / "capacity-scheduler.xml").read_text()
    )
    (tmp_path / "resource-types.xml").write_text((case("H02") / "resource-types.xml").read_text())
    site = SiteConfiguration.load(tmp_path)
    with pytest.raises(InputError, match=r"capacity-scheduler\.xml:\d+: .*resource-calculator"):
        require_valid_baseline(site)
    warnings = [f for f in check_site(site, {"": 2}) if "resource-calculator" in f.subject]
    assert len(warnings) == 1
    lines = [str(f) for f in validate(tmp_path, [Role.RM], {}) if "resource-calculator" in str(f)]
    assert len(lines) == 1
    # Hadoop 3.4 does not start with it once a type is declared: tests/yarn/test_start_verdicts.py.
    assert lines[0].startswith("error: ")


def test_H20_includes(case: Case) -> None:
    plugins = "yarn.nodemanager.resource-plugins"
    relative = SiteConfiguration.load(case("H20a"))
    assert relative.get(plugins) == "yarn.io/gpu"
    assert relative.get(f"{plugins}.gpu.allowed-gpu-devices") == "0:0,1:1,2:2,3:4"
    assert relative.whole("yarn.scheduler.maximum-allocation-mb", 0) == 262144
    fallback = SiteConfiguration.load(case("H20b"))
    assert fallback.get(plugins) == "yarn.io/gpu"
    assert fallback.text(f"{plugins}.gpu.allowed-gpu-devices", "auto") == "auto"


def test_H21_absolute_resources(case: Case) -> None:
    plain = read_queues(SiteConfiguration.load(case("H21a")))
    limits = {str(limit.name): limit for limit in gpu_limits(plain, {"": 16})}
    assert limits["root.train"].guaranteed_gpus == 12
    assert (limits["root.batch"].guaranteed_gpus, limits["root.batch"].max_gpus) == (4, 8)
    assert shares(plain, 16)["root.batch"].maximum_ratio == 0.5
    labelled = read_queues(SiteConfiguration.load(case("H21d")))
    by_label = shares(labelled, 16, "gpunode")
    assert by_label["root.train"].guaranteed_ratio == 0.75
    assert by_label["root.batch"].guaranteed_ratio == 0.25
    default = shares(labelled, 409600, resource="memory-mb")
    assert default["root.train"].guaranteed_ratio == default["root.batch"].guaranteed_ratio == 0.5


def test_H23_old_key_names_do_nothing(case: Case) -> None:
    old = SiteConfiguration.load(case("H23b"))
    assert gpu_maximum_allocation(old) == UNLIMITED == 9223372036854775807
    unknown = [finding for finding in check_types(old) if "write yarn" in finding]
    assert len(unknown) == 2
    lines = told(case("H23b"), Severity.WARNING)
    assert (
        len([line for line in lines if "expected yarn.resource-types.yarn.io/gpu.m" in line]) == 2
    )
    assert gpu_maximum_allocation(SiteConfiguration.load(case("H23c"))) == 4


def check_types(site: SiteConfiguration) -> list[str]:
    from gandiva_core.site.resource_types import check_resource_types

    found = list(check_resource_types(site))
    assert all(finding.severity is Severity.WARNING for finding in found)
    return [finding.text for finding in found]
