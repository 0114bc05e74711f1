"""Entry point `yarn` of `gandiva.engines`: a run in a real ResourceManager."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from gandiva_core.model.errors import InputError
from gandiva_core.model.job import JobSpec
from gandiva_core.runtime.ports import OpenedSubstrate, RunSetup, Substrate
from yarn_plugin.bridge.gateway import Gateway, GatewayError
from yarn_plugin.bridge.jvm import ReplayJvm
from yarn_plugin.replay.configuration import PARITY_QUEUES, RunConfiguration, prepare
from yarn_plugin.replay.faults import FaultPlan, ServerFault
from yarn_plugin.replay.ordered import OrderedSubstrate
from yarn_plugin.replay.preemption import PreemptionRounds
from yarn_plugin.replay.rm import RefusedError, ReplayedRm, ReplayError
from yarn_plugin.replay.stock import QueueRule, StockSubstrate, own_queue
from yarn_plugin.replay.wire import Started

Connect = Callable[[Path], ReplayedRm]
"""Brings a JVM that waits for its ResourceManager and logs to the file given."""

_FIXES = {
    "NO_JAVA": "a JDK 17 in JAVA_HOME or on PATH",
    "NOT_BUILT": "its jar and class path: run `make plugin`",
}


def open_engine(
    setup: RunSetup,
    faults: Sequence[ServerFault] = (),
    connect: Connect | None = None,
) -> OpenedSubstrate:
    """Start a ResourceManager for one run.

    Args:
        setup: arm, cluster, folders.
        faults: servers that leave and come back.
        connect: brings the JVM; None starts one that ends with the substrate.

    Raises:
        InputError: for an arm that no ResourceManager runs, bad configuration, no JDK, or a plug-in that is not built.
        ReplayError: where the JVM or the ResourceManager in it does not come up.
    """
    configuration = prepare(setup)
    rm = (connect or start_jvm)(Path(setup.work_dir) / "resourcemanager.log")
    try:
        started = _started(setup, configuration, rm)
        substrate = _substrate(setup, configuration, rm, FaultPlan(setup.cluster, faults))
    except BaseException:
        rm.close()
        raise
    versions = {
        "hadoop": started.hadoop_version,
        "java": started.java_version,
        "plugin": version("gandiva-yarn"),
    }
    return OpenedSubstrate(substrate, started.scheduler_class, versions)


def _started(setup: RunSetup, configuration: RunConfiguration, rm: ReplayedRm) -> Started:
    try:
        return rm.start(configuration.conf_dir, configuration.properties)
    except RefusedError as error:
        place = setup.conf_dir or str(configuration.conf_dir)
        expected = "a configuration that Hadoop's ResourceManager starts with"
        raise InputError(place, str(error), expected) from error


def start_jvm(log_file: Path) -> ReplayedRm:
    """A JVM that waits to be told which ResourceManager to start; it ends with `close`.

    Raises:
        InputError, ReplayError: as `open_engine`.
    """
    log_file.parent.mkdir(parents=True, exist_ok=True)
    jvm = ReplayJvm(log_file)
    try:
        jvm.__enter__()  # its end is `ReplayedRm.close`, which outlives this call
        gateway: Gateway = jvm.connect()
    except GatewayError as error:
        jvm.close()
        if error.kind in _FIXES:
            found = str(error).partition(": run ")[0]
            raise InputError("--engine yarn", found, _FIXES[error.kind]) from error
        raise ReplayError(f"--engine yarn: {error} (log: {log_file})") from error
    except BaseException:
        jvm.close()
        raise

    def end() -> None:
        gateway.close()
        jvm.close()

    return ReplayedRm(gateway, end, str(log_file))


def by_parity(number: int, _: JobSpec) -> str:
    """Jobs take turns between two queues (DESIGN §7, `capacity-preempt`)."""
    return PARITY_QUEUES[number % 2]


def _substrate(
    setup: RunSetup, configuration: RunConfiguration, rm: ReplayedRm, faults: FaultPlan
) -> Substrate:
    if not setup.arm.is_stock:
        return OrderedSubstrate(rm, setup.cluster, configuration.queues, faults)
    rounds = PreemptionRounds() if setup.arm.base == "capacity-preempt" else None
    rule: QueueRule = by_parity if rounds else own_queue
    return StockSubstrate(rm, setup.cluster, rule, rounds, faults)
