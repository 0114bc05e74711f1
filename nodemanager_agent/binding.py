"""Who holds which device of this node: the ledger of both arms of an A/B (FAULTS; cases A13, D01, D03, D05). Pure.

A device changes hands only after its holder let go; until then, and while anything is unknown, it is not free. Several
hold one device only where each of them was told of the others, their users agree, and their memory fits (G-56).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

CONTEXT_MIB = 512
"""What each further process on a GPU costs (G-56)."""


class Claim(msgspec.Struct, frozen=True, omit_defaults=True):
    """A worker and the devices it is to have.

    Attributes:
        gpus: indices of the node's devices.
        asked: how many its container asked for.
        packed_with: container ids that may hold the same devices at the same time.
        user: whose it is; empty is nobody known.
        with_other_users: its queue allows it on a device with somebody else's.
        memory_peak_mib: device memory on each device; None is not known.
        uid: of its processes; -1 is not known.
        is_exclusive: its owner or its queue forbids to pack it.
    """

    container_id: str
    gpus: tuple[int, ...]
    asked: int
    packed_with: tuple[str, ...] = ()
    user: str = ""
    with_other_users: bool = False
    memory_peak_mib: int | None = None
    uid: int = -1
    is_exclusive: bool = False


class Obstacle(msgspec.Struct, frozen=True):
    """Why a claim cannot be had.

    Attributes:
        code: GPUS, DEVICE_LOST, DEVICE_BUSY, FORBIDDEN, USERS or MEMORY.
        holders: containers that would have to let go first; empty where that would not help.
    """

    code: str
    detail: str
    holders: frozenset[str] = frozenset()


class Binding:
    """The ledger.

    Args:
        memory_mib: of each device, by index.
        context_mib: what each process beside another costs on a device.
    """

    def __init__(self, memory_mib: Mapping[int, int], context_mib: int = CONTEXT_MIB) -> None:
        self._memory_mib = dict(memory_mib)
        self._context_mib = context_mib
        self._claims: dict[str, Claim] = {}
        self._closed: dict[int, str] = {}

    @property
    def claims(self) -> Mapping[str, Claim]:
        """What is held, by container."""
        return self._claims

    @property
    def closed(self) -> Mapping[int, str]:
        """Devices that are given to nobody, with the reason."""
        return self._closed

    def held_by(self, container_id: str) -> tuple[int, ...]:
        """Devices of a container, in its order."""
        claim = self._claims.get(container_id)
        return () if claim is None else claim.gpus

    def holders(self, gpu: int) -> list[Claim]:
        """Who holds a device."""
        return [claim for claim in self._claims.values() if gpu in claim.gpus]

    def obstacle(self, claim: Claim) -> Obstacle | None:
        """What stands in a claim's way; None where it may be had now."""
        if len(claim.gpus) != claim.asked or len(set(claim.gpus)) != len(claim.gpus):
            detail = f"devices {list(claim.gpus)} for a container that asked for {claim.asked}"
            return Obstacle("GPUS", detail)
        unknown = [gpu for gpu in claim.gpus if gpu not in self._memory_mib]
        if unknown:
            return Obstacle("GPUS", f"no device {unknown[0]} on this node")
        for gpu in claim.gpus:
            if gpu in self._closed:
                return Obstacle("DEVICE_LOST", f"device {gpu}: {self._closed[gpu]}")
        found = (self._obstacle_on(gpu, claim) for gpu in claim.gpus)
        return next((each for each in found if each is not None), None)

    def take(self, claim: Claim) -> None:
        """Note a claim in which nothing stands in the way; it replaces the container's earlier one."""
        self._claims[claim.container_id] = claim

    def release(self, container_id: str) -> tuple[int, ...]:
        """The container let go of its devices; which they were."""
        claim = self._claims.pop(container_id, None)
        return () if claim is None else claim.gpus

    def measured(self, container_id: str, memory_peak_mib: int) -> None:
        """What a holder was seen to need; the most of it counts, since it may need that again."""
        claim = self._claims.get(container_id)
        if claim is not None and memory_peak_mib > (claim.memory_peak_mib or 0):
            self._claims[container_id] = msgspec.structs.replace(
                claim, memory_peak_mib=memory_peak_mib
            )

    def close(self, gpu: int, reason: str) -> None:
        """Give a device to nobody any more; who holds it goes on."""
        self._closed.setdefault(gpu, reason)

    def open(self, gpu: int) -> None:
        """A device is as it should be again."""
        self._closed.pop(gpu, None)

    def _obstacle_on(self, gpu: int, claim: Claim) -> Obstacle | None:
        others = [each for each in self.holders(gpu) if each.container_id != claim.container_id]
        unaware = frozenset(each.container_id for each in others if not _know(claim, each))
        if unaware:
            return Obstacle("DEVICE_BUSY", f"device {gpu} is held by {min(unaware)}", unaware)
        for other in others:
            refusal = _packing_obstacle(gpu, claim, other)
            if refusal is not None:
                return refusal
        return self._memory_obstacle(gpu, [claim, *others]) if others else None

    def _memory_obstacle(self, gpu: int, claims: Iterable[Claim]) -> Obstacle | None:
        needed_mib = -self._context_mib
        for each in claims:
            if each.memory_peak_mib is None:
                detail = f"device {gpu}: the memory of {each.container_id} is not known yet"
                return Obstacle("MEMORY", detail)
            needed_mib += each.memory_peak_mib + self._context_mib
        has_mib = self._memory_mib[gpu]
        if needed_mib > has_mib:
            return Obstacle("MEMORY", f"device {gpu}: {needed_mib} MiB on {has_mib} MiB")
        return None


def _know(claim: Claim, holder: Claim) -> bool:
    """Whether a newcomer is packed with a holder: one that was given a device for itself alone is in nobody's list."""
    return holder.container_id in claim.packed_with


def _packing_obstacle(gpu: int, claim: Claim, other: Claim) -> Obstacle | None:
    """Why two who know of each other do not share a device all the same."""
    exclusive = next((each.container_id for each in (claim, other) if each.is_exclusive), None)
    if exclusive is not None:
        return Obstacle("FORBIDDEN", f"the owner or the queue of {exclusive} forbids to pack it")
    if not _may_meet(claim, other):
        return Obstacle("USERS", f"device {gpu} is held by another user's worker")
    if set(claim.gpus) != set(other.gpus):
        detail = f"{other.container_id} has devices {list(other.gpus)}: all are shared, or none"
        return Obstacle("GPUS", detail)
    return None


def _may_meet(one: Claim, other: Claim) -> bool:
    """One user by the core's word, and by the kernel's where it is known; or both queues allow others."""
    if one.with_other_users and other.with_other_users:
        return True
    are_same_uid = -1 in (one.uid, other.uid) or one.uid == other.uid
    return bool(one.user) and one.user == other.user and are_same_uid
