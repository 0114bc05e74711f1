"""What else of Hadoop's own keys decides whether a daemon starts, or starts as something other than it seems."""

from __future__ import annotations

from collections.abc import Iterator

from gandiva_core.site.baseline import CAPACITY_SCHEDULER, GANDIVA_SCHEDULER, SCHEDULER_KEY
from gandiva_core.site.capacities import NONE
from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.findings import Finding, Severity
from gandiva_core.site.hadoop_keys import HADOOP_KEYS, QUEUE_PREFIX, SCHEDULER_SUFFIXES, Form
from gandiva_core.site.own_keys import GPU_MODES, MODE, text_of
from gandiva_core.site.queue_start import is_number
from gandiva_core.site.queues import QueueTree, leaves
from gandiva_core.site.resource_types import GPU

RECOVERY = "yarn.resourcemanager.recovery.enabled"
ASYNCHRONOUS = QUEUE_PREFIX + "schedule-asynchronously.enable"
MONITOR = "yarn.resourcemanager.scheduler.monitor.enable"
OPPORTUNISTIC = "yarn.resourcemanager.opportunistic-container-allocation.enabled"
LABELS = "yarn.node-labels.enabled"
PLUGINS = "yarn.nodemanager.resource-plugins"
NODE_GPUS = f"yarn.nodemanager.resource-type.{GPU}"
NODE_RECOVERY = "yarn.nodemanager.recovery.enabled"
NODE_ADDRESS = "yarn.nodemanager.address"
AUX_SERVICES = "yarn.nodemanager.aux-services"

_CORRECT = "the daemon refuses to start: correct it"


def check_values(site: SiteConfiguration) -> Iterator[Finding]:
    """Words where numbers belong, and flags that are neither true nor false."""
    forms = {name: key.form for name, key in HADOOP_KEYS.items()}
    forms |= {f"{QUEUE_PREFIX}{suffix}": form for suffix, form in SCHEDULER_SUFFIXES.items()}
    for key, form in forms.items():
        text = site.text(key)
        if not text or form is Form.TEXT:
            continue
        place, found = site.place(key), repr(text)
        if form is Form.FLAG and text.lower() not in ("true", "false"):
            advice = "Hadoop takes its default: write one of the two"
            yield Finding(Severity.WARNING, place, key, found, "true or false", advice)
        elif form is not Form.FLAG and not is_number(text, form):
            yield Finding(Severity.ERROR, place, key, found, form.value, _CORRECT)


def check_allocation_bounds(site: SiteConfiguration) -> Iterator[Finding]:
    """Smallest and greatest container: above zero, and in this order."""
    for unit in ("mb", "vcores"):
        low, high = (f"yarn.scheduler.{end}-allocation-{unit}" for end in ("minimum", "maximum"))
        texts = [site.text(key, HADOOP_KEYS[key].default) for key in (low, high)]
        if not all(is_number(text, Form.WHOLE) for text in texts):
            continue  # told already
        smallest, greatest = (int(text, 0 if "x" in text.lower() else 10) for text in texts)
        if not 0 < smallest <= greatest:
            key = low if site.raw(low) is not None else high
            found = f"a minimum of {smallest} and a maximum of {greatest}"
            expected = "0 < minimum ≤ maximum"
            advice = f"the ResourceManager refuses to start: change {low} or {high}"
            yield Finding(Severity.ERROR, site.place(key), key, found, expected, advice)


def check_scheduler(site: SiteConfiguration) -> Iterator[Finding]:
    """Which scheduler it is, and how it runs."""
    found = site.text(SCHEDULER_KEY, CAPACITY_SCHEDULER)
    if found != GANDIVA_SCHEDULER:
        is_stock = found == CAPACITY_SCHEDULER
        advice = "Gandiva is not in force: set its class to use it, and restart the ResourceManager"
        if not is_stock:
            advice = f"{advice}; capacity-scheduler.xml is checked, but this class may not read it"
        severity = Severity.INFO if is_stock else Severity.WARNING
        place = site.place(SCHEDULER_KEY)
        yield Finding(severity, place, SCHEDULER_KEY, found, GANDIVA_SCHEDULER, advice)
    yield from _noted(
        site, RECOVERY, False, Severity.WARNING, "jobs do not outlive a restart: set true"
    )
    text = "supported; a replay sets it off, so that its order is the same each time"
    yield from _noted(site, ASYNCHRONOUS, True, Severity.INFO, text)
    text = "GPU containers are not killed by it: the core is asked to reclaim"
    yield from _noted(site, MONITOR, True, Severity.INFO, text)
    text = "such containers bypass every scheduler, so agents give them no GPU"
    yield from _noted(site, OPPORTUNISTIC, True, Severity.INFO, text)


def check_labels(site: SiteConfiguration, tree: QueueTree) -> Iterator[Finding]:
    """Queues whose applications do not ask where their capacity is (case H01); labels that are off."""
    for queue in leaves(tree):
        labels = [
            label for label, limits in queue.limits.items() if label and limits.capacity != NONE
        ]
        if not labels or queue.default_label:
            continue
        key = f"{QUEUE_PREFIX}{queue.path}.default-node-label-expression"
        first = f"{QUEUE_PREFIX}{queue.path}.accessible-node-labels.{labels[0]}.capacity"
        advice = (
            "an application without a label expression asks in the default partition, and would wait "
            f"for ever where that has no GPU: set it to {labels[0]}, or let each application say it"
        )
        yield Finding(Severity.WARNING, site.place(first), key, "not set", labels[0], advice)
    used = [queue for queue in tree.values() if any(queue.limits)]
    if used and not site.flag(LABELS, False):
        advice = "the capacities of labels in the queue file count for nothing: set it true"
        yield Finding(Severity.WARNING, site.place(LABELS), LABELS, "false", "true", advice)


def check_node(site: SiteConfiguration) -> Iterator[Finding]:
    """A NodeManager under Gandiva: its own GPU plug-in off, its GPUs stated (DESIGN §4)."""
    if GPU in site.texts(PLUGINS):
        is_in_force = text_of(site, MODE).lower() in GPU_MODES
        advice = (
            "Hadoop's plug-in binds one container to a device and refuses the others: remove it before "
            f"mode place or full, and state the number in {NODE_GPUS}"
        )
        severity = Severity.ERROR if is_in_force else Severity.WARNING
        yield Finding(severity, site.place(PLUGINS), PLUGINS, GPU, f"no {GPU}", advice)
    elif not site.text(NODE_GPUS):
        advice = "the node offers no GPU: on a GPU node state how many it has"
        yield Finding(
            Severity.WARNING, site.place(NODE_GPUS), NODE_GPUS, "not set", "a number", advice
        )
    address = site.text(NODE_ADDRESS, HADOOP_KEYS[NODE_ADDRESS].default)
    if site.flag(NODE_RECOVERY, False) and address.endswith(":0"):
        advice = "the NodeManager refuses to recover on a port that changes: give it a fixed one"
        place = site.place(NODE_ADDRESS)
        yield Finding(Severity.ERROR, place, NODE_ADDRESS, address, "a fixed port", advice)
    text = "containers end with their NodeManager: set true, supervised too, and a fixed port"
    yield from _noted(site, NODE_RECOVERY, False, Severity.WARNING, text)


def check_client(site: SiteConfiguration) -> Iterator[Finding]:
    """A client finds its ResourceManager."""
    keys = ("yarn.resourcemanager.hostname", "yarn.resourcemanager.address")
    is_ha = site.flag("yarn.resourcemanager.ha.enabled", False)
    if not is_ha and not any(site.text(key) for key in keys):
        advice = "Hadoop takes 0.0.0.0, which is this machine: set it on other machines"
        place = site.place(keys[0])
        yield Finding(Severity.INFO, place, keys[0], "not set", "the host's name", advice)


def _noted(
    site: SiteConfiguration, key: str, noted: bool, severity: Severity, advice: str
) -> Iterator[Finding]:
    """A finding where a flag has the value to be noted."""
    default = HADOOP_KEYS[key].default == "true"
    value = site.flag(key, default)
    if value is noted:
        found = (
            str(value).lower() if site.raw(key) is not None else f"not set, so {default}".lower()
        )
        expected = str(not noted).lower()
        if severity is Severity.INFO:
            expected = "either"
        yield Finding(severity, site.place(key), key, found, expected, advice)
