"""A stock scheduler that does not count GPUs is no baseline."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gandiva_core.model.errors import InputError
from gandiva_core.site.baseline import (
    CALCULATOR_KEY,
    DEFAULT_CALCULATOR,
    DOMINANT_CALCULATOR,
    check_site,
    require_valid_baseline,
)
from gandiva_core.site.configuration import SiteConfiguration

Load = Callable[[dict[str, str | dict[str, str]]], SiteConfiguration]
QUEUES = {
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
}
GOOD = QUEUES | {CALCULATOR_KEY: DOMINANT_CALCULATOR}
TYPES = {"yarn.resource-types": "yarn.io/gpu"}


def test_a_site_that_counts_gpus_is_accepted_without_a_word(load_site: Load) -> None:
    site = load_site({"capacity-scheduler.xml": GOOD, "resource-types.xml": TYPES})
    require_valid_baseline(site)
    assert list(check_site(site, {"": 4})) == []


@pytest.mark.parametrize("calculator", [{}, {CALCULATOR_KEY: DEFAULT_CALCULATOR}])
def test_the_default_calculator_is_refused(load_site: Load, calculator: dict[str, str]) -> None:
    """A02."""
    site = load_site({"capacity-scheduler.xml": QUEUES | calculator, "resource-types.xml": TYPES})
    with pytest.raises(InputError, match="invalid baseline") as caught:
        require_valid_baseline(site)
    assert CALCULATOR_KEY in caught.value.place
    assert "DefaultResourceCalculator" in caught.value.found
    (finding,) = check_site(site, {"": 4})
    assert finding.subject == CALCULATOR_KEY


@pytest.mark.parametrize("types", ["a.com/ve", "memory-mb,yarn.io/gpu"])
def test_undeclared_gpus_are_refused(load_site: Load, types: str) -> None:
    """H03, H04."""
    files: dict[str, str | dict[str, str]] = {
        "capacity-scheduler.xml": GOOD,
        "resource-types.xml": {"yarn.resource-types": types},
    }
    with pytest.raises(InputError, match=r"invalid baseline: .*resource-types\.xml:2"):
        require_valid_baseline(load_site(files))


def test_nothing_declared_at_all_is_refused(load_site: Load) -> None:
    with pytest.raises(InputError, match="nothing set"):
        require_valid_baseline(load_site({"capacity-scheduler.xml": GOOD}))


def test_another_scheduler_class_is_told(load_site: Load) -> None:
    """H03: the site runs the FairScheduler."""
    fair = {"yarn.resourcemanager.scheduler.class": "org.example.FairScheduler"}
    files: dict[str, str | dict[str, str]] = {
        "capacity-scheduler.xml": GOOD,
        "resource-types.xml": TYPES,
        "yarn-site.xml": fair,
    }
    (finding,) = check_site(load_site(files), {"": 4})
    assert "a replay sets the class of its arms" in finding.text
