"""Whether a cluster could start with a site's files, and everything else to say about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path

from gandiva_core.model.errors import InputError
from gandiva_core.site.advice import NODE_MANAGER, RESOURCE_MANAGER, check_advice
from gandiva_core.site.baseline import check_calculator
from gandiva_core.site.configuration import CLIENT_FILES, FILES, NODE_FILES, SiteConfiguration
from gandiva_core.site.findings import Finding, Severity, from_problem
from gandiva_core.site.own_keys import (
    GPU_MODES,
    MODE,
    check_adoption,
    check_core,
    check_own_keys,
    text_of,
)
from gandiva_core.site.queue_start import check_queue_start
from gandiva_core.site.queues import check_queues, read_queues
from gandiva_core.site.resource_types import check_resource_types, has_gpu
from gandiva_core.site.spelling import check_spelling
from gandiva_core.site.start import (
    check_allocation_bounds,
    check_client,
    check_labels,
    check_node,
    check_scheduler,
    check_values,
)
from gandiva_core.site.switches import check_switches

ORDER = tuple(Severity)
_REFUSES = "the ResourceManager refuses to start: correct it"


class Role(StrEnum):
    """Whose configuration a folder is."""

    RM = "rm"
    NM = "nm"
    CLIENT = "client"


READ_BY: Mapping[Role, tuple[str, ...]] = {
    Role.RM: FILES,
    Role.NM: NODE_FILES,
    Role.CLIENT: CLIENT_FILES,
}


def validate(
    conf_dir: Path, roles: Iterable[Role], environment: Mapping[str, str]
) -> tuple[Finding, ...]:
    """Every finding once, errors first, then by place.

    Args:
        conf_dir: a Hadoop configuration folder.
        roles: whose it is; several where one folder serves all.
        environment: of the process that will read it.

    Raises:
        InputError: a file that cannot be read.
    """
    found: dict[Finding, None] = {}
    for role in roles:
        site = SiteConfiguration.load(conf_dir, environment, READ_BY[role])
        checks = {Role.RM: _resource_manager, Role.NM: _node, Role.CLIENT: _client}[role]
        found |= dict.fromkeys(checks(site, environment))
    return tuple(sorted(found, key=_rank))


def can_start(findings: Iterable[Finding]) -> bool:
    """Whether nothing of it stops a start."""
    return all(finding.severity is not Severity.ERROR for finding in findings)


def _rank(finding: Finding) -> tuple[int, str, int, str]:
    file, _, line = finding.place.rpartition(":")
    number = int(line) if line.isdigit() else 0
    return ORDER.index(finding.severity), file, number, finding.subject


def _resource_manager(site: SiteConfiguration, environment: Mapping[str, str]) -> Iterator[Finding]:
    yield from site.findings
    yield from check_own_keys(site, environment)
    yield from check_core(site, environment)
    yield from _gpu_mode(site)
    yield from check_calculator(site)
    yield from check_scheduler(site)
    yield from check_values(site)
    yield from check_allocation_bounds(site)
    yield from check_advice(site, RESOURCE_MANAGER)
    try:
        tree = read_queues(site)
    except InputError as problem:
        yield from_problem(problem, _REFUSES)
        yield from check_spelling(site, {})
        return
    for check in (
        check_queues,
        check_queue_start,
        check_labels,
        check_adoption,
        check_switches,
        check_spelling,
    ):
        yield from check(site, tree)


def _gpu_mode(site: SiteConfiguration) -> Iterator[Finding]:
    """Types; that GPUs are not declared stops a start only where the core is to hand them out (H03)."""
    is_needed = text_of(site, MODE).lower() in GPU_MODES
    for finding in check_resource_types(site):
        is_absence = not has_gpu(site) and "not in" in finding.found
        if is_absence and not is_needed:
            yield _weaker(finding)
        else:
            yield finding


def _weaker(finding: Finding) -> Finding:
    return Finding(
        Severity.WARNING,
        finding.place,
        finding.subject,
        finding.found,
        finding.expected,
        finding.advice,
    )


def _node(site: SiteConfiguration, environment: Mapping[str, str]) -> Iterator[Finding]:
    del environment  # a NodeManager reads none of our variables
    yield from site.findings
    yield from check_resource_types(site)
    yield from check_values(site)
    yield from check_node(site)
    yield from check_advice(site, NODE_MANAGER)
    yield from check_spelling(site, {})


def _client(site: SiteConfiguration, environment: Mapping[str, str]) -> Iterator[Finding]:
    del environment
    yield from site.findings
    yield from check_resource_types(site)
    yield from check_client(site)
    yield from check_spelling(site, {})
