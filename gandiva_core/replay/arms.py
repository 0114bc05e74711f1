"""Arms of a comparison: ``capacity``, ``gandiva``, ``gandiva:-slicing`` (DESIGN §7 and §10)."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points

from gandiva_core.config.settings import Settings
from gandiva_core.messages.policy import Policy, PolicyFactory
from gandiva_core.model.errors import InputError
from gandiva_core.runtime.ports import Arm

STOCK_ARMS: Mapping[str, str] = {
    "capacity": "Hadoop's CapacityScheduler, FIFO inside the queue: the default and the headline",
    "capacity-fair": "the same with the fair ordering policy; may end in gang deadlocks",
    "capacity-preempt": "fair, two queues, jobs split by parity of arrival, with preemption",
    "exclusive-backfill": "gang-aware, exclusive, with back-fill; only on --engine sim",
}
"""The baselines of DESIGN §7: their substrate schedules by itself."""

BASELINE = "capacity"
"""What ratios divide by."""

POLICY_GROUP = "gandiva.policies"
"""Entry point group of policies: name → PolicyFactory."""


def policies() -> dict[str, EntryPoint]:
    """Installed policies by name, sorted; those of other packages too."""
    found = entry_points(group=POLICY_GROUP)
    return {entry.name: entry for entry in sorted(found, key=lambda entry: entry.name)}


def parse_arms(text: str) -> tuple[Arm, ...]:
    """Read ``--arms``: names with switches, separated by commas.

    Raises:
        InputError: for an unknown name, a malformed switch, an arm named twice, or no arm.
    """
    arms = tuple(parse_arm(part.strip()) for part in text.split(",") if part.strip())
    if not arms:
        raise InputError("--arms", "no arm", f"one or more of {known()}")
    names = [arm.name for arm in arms]
    for name in names:
        if names.count(name) > 1:
            raise InputError("--arms", f"{name!r} twice", "each arm once")
    return arms


def parse_arm(text: str) -> Arm:
    """Read one arm; errors as `parse_arms`. Whether a policy knows a switch is the policy's to say."""
    base, *switches = text.split(":")
    is_stock = base in STOCK_ARMS
    if not is_stock and base not in policies():
        raise InputError("--arms", repr(base), f"one of {known()}")
    if is_stock and switches:
        raise InputError("--arms", repr(text), f"{base!r} without switches: it has no mechanisms")
    values: dict[str, bool] = {}
    for switch in switches:
        mechanism = switch[1:]
        if switch[:1] not in {"+", "-"} or not mechanism:
            raise InputError("--arms", f"{switch!r} in {text!r}", "+MECHANISM or -MECHANISM")
        if mechanism in values:
            raise InputError("--arms", f"{mechanism!r} twice in {text!r}", "each switch once")
        values[mechanism] = switch[0] == "+"
    return Arm(name=text, base=base, switches=values, is_stock=is_stock)


def known() -> str:
    """Every arm there is, for messages."""
    return ", ".join([*STOCK_ARMS, *policies()])


def policy_factory(name: str) -> PolicyFactory:
    """The factory of a policy by name, without switches.

    Raises:
        InputError: unknown, or its package cannot be loaded.
    """
    entry = policies().get(name)
    if entry is None:
        raise InputError("policy", repr(name), f"one of {', '.join(policies())}")
    try:
        factory: PolicyFactory = entry.load()
    except (ImportError, AttributeError) as error:
        expected = f"a policy that loads from {entry.value}"
        raise InputError("policy", f"{name!r}: {error}", expected) from error
    return factory


def create_policy(arm: Arm, settings: Settings) -> Policy:
    """The policy of an arm.

    Raises:
        InputError: as `policy_factory`; also where the policy does not know a switch.
    """
    return policy_factory(arm.base)(settings, arm.switches)
