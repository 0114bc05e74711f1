"""Whether the stock scheduler, run with this site's files, is a baseline that counts GPUs at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gandiva_core.model.errors import InputError
from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.findings import Finding, Severity
from gandiva_core.site.queues import MAP_REDUCE_1_PREFIX, PREFIX, check_queues, read_queues
from gandiva_core.site.resource_types import GPU, TYPES_KEY, check_resource_types, declared
from gandiva_core.site.shares import check_partitions

CALCULATOR_KEY = PREFIX + "resource-calculator"
SCHEDULER_KEY = "yarn.resourcemanager.scheduler.class"
DEFAULT_CALCULATOR = "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator"
DOMINANT_CALCULATOR = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
CAPACITY_SCHEDULER = (
    "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler"
)
GANDIVA_SCHEDULER = "org.gandiva.yarn.GandivaScheduler"


def calculator(site: SiteConfiguration) -> str:
    """The resource calculator in force."""
    return site.text(CALCULATOR_KEY, DEFAULT_CALCULATOR)


def require_valid_baseline(site: SiteConfiguration) -> None:
    """Refuses a site under which the stock scheduler would not count GPUs (cases A02, H03, H04, H18).

    Raises:
        InputError: the first reason, with file and line of the key to change: a queue file of another scheduler, then
            GPUs that are not declared, then the calculator.
    """
    if next(site.keys(MAP_REDUCE_1_PREFIX), None) is not None:
        read_queues(site)
    for finding in check_resource_types(site):
        if finding.severity is Severity.ERROR:
            listed = ",".join(site.texts(TYPES_KEY)) or "nothing set"
            raise InputError(
                f"invalid baseline: {finding.place}: {finding.subject}",
                f"{listed!r}: {finding.found}",
                f"{GPU} and no mandatory type",
            )
    _require_dominant(site)


def _require_dominant(site: SiteConfiguration) -> None:
    found = calculator(site)
    if found == DOMINANT_CALCULATOR:
        return
    origin = found.rpartition(".")[2]
    set_there = site.raw(CALCULATOR_KEY) is not None
    told = origin if set_there else f"nothing set, so {origin}"
    raise InputError(
        f"invalid baseline: {site.describe(CALCULATOR_KEY)}",
        f"{told}, which counts memory only and no GPU",
        DOMINANT_CALCULATOR,
    )


def check_calculator(site: SiteConfiguration) -> Iterator[Finding]:
    """A calculator that counts no GPU (case A02); with any type declared, Hadoop 3.4 does not even start with it."""
    found = calculator(site)
    if found == DOMINANT_CALCULATOR:
        return
    set_there = site.raw(CALCULATOR_KEY) is not None
    told = found if set_there else f"nothing set, so {found}"
    refuses = found == DEFAULT_CALCULATOR and len(declared(site)) > 2
    effect = "the ResourceManager refuses to start" if refuses else "GPUs are not counted"
    yield Finding(
        Severity.ERROR if refuses else Severity.WARNING,
        site.place(CALCULATOR_KEY),
        CALCULATOR_KEY,
        told,
        DOMINANT_CALCULATOR,
        f"{effect}: set it",
    )


def check_site(site: SiteConfiguration, gpus: Mapping[str, int]) -> Iterator[Finding]:
    """Everything to say about a site's files, reading and queues included.

    Args:
        site: the files.
        gpus: physical GPUs by partition.

    Raises:
        InputError: queues that Hadoop would not load either.
    """
    yield from site.findings
    yield from check_calculator(site)
    scheduler = site.text(SCHEDULER_KEY, CAPACITY_SCHEDULER)
    if scheduler not in (CAPACITY_SCHEDULER, GANDIVA_SCHEDULER):
        text = "a replay sets the class of its arms in its place"
        expected = f"{CAPACITY_SCHEDULER} or {GANDIVA_SCHEDULER}"
        place = site.place(SCHEDULER_KEY)
        yield Finding(Severity.WARNING, place, SCHEDULER_KEY, scheduler, expected, text)
    yield from check_resource_types(site)
    tree = read_queues(site)
    yield from check_queues(site, tree)
    yield from check_partitions(tree, gpus)
