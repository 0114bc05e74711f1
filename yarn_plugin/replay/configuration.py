"""The configuration of one run: the same files for every arm; what an arm changes is a handful of named keys."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

import msgspec

from gandiva_core.config.settings import Settings
from gandiva_core.model.cluster import Cluster, QueueLimit
from gandiva_core.model.errors import InputError
from gandiva_core.runtime.ports import Arm, RunSetup
from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.queues import leaves, read_queues
from gandiva_core.site.shares import gpu_limits

SCHEDULER_CLASS = "yarn.resourcemanager.scheduler.class"
STOCK_CLASS = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler"
GANDIVA_CLASS = "org.gandiva.yarn.GandivaScheduler"
HEIGHT_MAX = "yarn.scheduler.gandiva.height.max"
QUEUE = "yarn.scheduler.capacity."
PREEMPTION = "yarn.resourcemanager.monitor.capacity.preemption."

PARITY_QUEUES = ("root.even", "root.odd")
"""The two queues of `capacity-preempt`; a job's place in the order of arrival decides (DESIGN §7)."""

BUILT_IN = Path(__file__).resolve().parent.parent / "conf"
_SITE_FILE = "yarn-site.xml"
_QUEUE_FILE = "capacity-scheduler.xml"


class RunConfiguration(msgspec.Struct, frozen=True):
    """What a ResourceManager is started with.

    Attributes:
        conf_dir: its files.
        properties: keys set over them.
        queues: limits of its queue tree in physical GPUs, as the files and properties say.
    """

    conf_dir: Path
    properties: Mapping[str, str]
    queues: tuple[QueueLimit, ...]


def prepare(setup: RunSetup) -> RunConfiguration:
    """Write a run's files into its work folder.

    Raises:
        InputError: for a stock arm that a ResourceManager cannot run, or files that no ResourceManager would take.
    """
    target = Path(setup.work_dir) / "conf"
    source = BUILT_IN if setup.conf_dir is None else Path(setup.conf_dir)
    _copy_read_files(source, target)
    if not (target / _SITE_FILE).exists():
        (target / _SITE_FILE).write_text("<configuration>\n</configuration>\n", encoding="utf-8")
    if setup.conf_dir is None and setup.cluster.queues:
        (target / _QUEUE_FILE).write_text(
            _with_properties(target / _QUEUE_FILE, queue_properties(setup.cluster)),
            encoding="utf-8",
        )
    site = SiteConfiguration.load(target)
    properties = arm_properties(setup, site)
    gpus: Counter[str] = Counter()
    for server in setup.cluster.servers:
        gpus[server.partition] += server.gpus
    queues = () if _prescribes_queues(setup.arm) else gpu_limits(read_queues(site), gpus)
    return RunConfiguration(target, properties, queues)


def _copy_read_files(source: Path, target: Path) -> None:
    """Copy what a ResourceManager reads, and nothing else: a site's folder holds passwords and keys too.

    The target is emptied first: a file that an earlier run left there would count.
    """
    files = SiteConfiguration.load(source).files
    try:
        shutil.rmtree(target, ignore_errors=True)
        for file in files:
            if file.is_relative_to(source):  # one included by an absolute path is read where it is
                copy = target / file.relative_to(source)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, copy)
    except OSError as error:
        found = error.strerror or "cannot be copied"
        raise InputError(str(error.filename or source), found, "a file to copy") from error


def arm_properties(setup: RunSetup, site: SiteConfiguration) -> dict[str, str]:
    """The keys that an arm sets; between `capacity` and a policy only the scheduler class differs.

    Raises:
        InputError: as `prepare`.
    """
    arm = setup.arm
    if not arm.is_stock:
        usual = setup.height_max == Settings().height_max
        own = {} if usual else {HEIGHT_MAX: str(setup.height_max)}
        return {SCHEDULER_CLASS: GANDIVA_CLASS, **own}
    if arm.base == "capacity":
        return {SCHEDULER_CLASS: STOCK_CLASS}
    if arm.base == "capacity-fair":
        fair = {
            f"{QUEUE}{queue.path}.ordering-policy": "fair" for queue in leaves(read_queues(site))
        }
        return {SCHEDULER_CLASS: STOCK_CLASS, **fair}
    if arm.base == "capacity-preempt":
        if setup.conf_dir is not None:
            expected = "another arm: this one prescribes its own two queues"
            raise InputError("--arms", f"{arm.name} with --conf-dir", expected)
        return {SCHEDULER_CLASS: STOCK_CLASS, **preemption_properties()}
    expected = "an arm that a ResourceManager runs; this one needs --engine sim"
    raise InputError("--arms", f"{arm.name} on --engine yarn", expected)


def _prescribes_queues(arm: Arm) -> bool:
    return arm.is_stock and arm.base == "capacity-preempt"


def preemption_properties() -> dict[str, str]:
    """Two fair queues with half of the cluster each, free to use all of it until the other wants its half back."""
    properties = {
        "yarn.resourcemanager.scheduler.monitor.enable": "true",
        f"{QUEUE}root.queues": ",".join(queue.removeprefix("root.") for queue in PARITY_QUEUES),
        f"{PREEMPTION}total_preemption_per_round": "1.0",
        f"{PREEMPTION}natural_termination_factor": "1.0",
    }
    for queue in PARITY_QUEUES:
        properties[f"{QUEUE}{queue}.capacity"] = "50"
        properties[f"{QUEUE}{queue}.maximum-capacity"] = "100"
        properties[f"{QUEUE}{queue}.user-limit-factor"] = "2"
        properties[f"{QUEUE}{queue}.ordering-policy"] = "fair"
    return properties


def queue_properties(cluster: Cluster) -> dict[str, str]:
    """A cluster file's queues as the CapacityScheduler's percentages of their parents.

    Raises:
        InputError: for a queue whose parent is not there or has no GPU.
    """
    gpus = {"root": float(cluster.gpus), **{str(q.name): q.guaranteed_gpus for q in cluster.queues}}
    most = {"root": float(cluster.gpus), **{str(q.name): q.max_gpus for q in cluster.queues}}
    properties: dict[str, str] = {}
    children: dict[str, list[str]] = {}
    for queue in cluster.queues:
        if queue.name == "root":
            continue
        parent = queue.parent or "root"
        if not gpus.get(parent):
            place = f"cluster {cluster.name}: queue {queue.name}"
            raise InputError(place, f"parent {parent!r}", "a queue with GPUs")
        children.setdefault(parent, []).append(str(queue.name).rpartition(".")[2])
        share, limit = queue.guaranteed_gpus / gpus[parent], queue.max_gpus / most[parent]
        properties[f"{QUEUE}{queue.name}.capacity"] = _percent(share)
        properties[f"{QUEUE}{queue.name}.maximum-capacity"] = _percent(max(share, limit))
    for parent, names in children.items():
        properties[f"{QUEUE}{parent}.queues"] = ",".join(names)
    return properties


def _percent(ratio: float) -> str:
    return f"{100.0 * ratio:.6f}".rstrip("0").rstrip(".")


def _with_properties(file: Path, properties: Mapping[str, str]) -> str:
    """The file's text with properties added at its end, where they win."""
    added = "".join(
        f"  <property><name>{escape(key)}</name><value>{escape(value)}</value></property>\n"
        for key, value in properties.items()
    )
    head, end, tail = file.read_text(encoding="utf-8").rpartition("</configuration>")
    return f"{head}{added}{end}{tail}"
