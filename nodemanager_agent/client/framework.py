"""What a framework's hook is asked by `rank.Rank`: to take a process's state off its device, and to put it back."""

from typing import Any, Dict, List, NamedTuple, Optional

from nodemanager_agent.client.continuity import Fingerprint
from nodemanager_agent.client.ring import Memory

Message = Dict[str, Any]
Figures = Dict[str, float]


class Refusal(Exception):  # noqa: N818 - it is an answer
    """Why something was not done: a code and a sentence. The rank is as it was before."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class Limits(NamedTuple):
    """What a rank can do; `reason` says why not."""

    methods: List[str]
    can_pack: bool = True
    can_move: bool = False
    can_resize: bool = False
    reason: str = ""


class Framework:
    """What a framework's hook does for `Rank`; this one has no device memory and is alone."""

    name = "none"
    rank = 0
    world_size = 1

    def limits(self) -> Limits:
        """What can be done with this process; asked again after each mini-batch that may have changed it."""
        return Limits([])

    def offload(self) -> Figures:
        """Copy what lies in device memory to the host and give the memory back.

        Raises:
            Refusal: it could not be done; everything is on the device as before.
        """
        raise Refusal("NOT_SUSPENDABLE", "no framework")

    def reload(self) -> Figures:
        """Bring it back, at the same identities.

        Raises:
            Refusal: there is no room on the device; the state stays on the host.
        """
        return {}

    def fingerprint(self, minibatches: int) -> Fingerprint:
        """Where this process stands now."""
        return Fingerprint(minibatches, "", "", "")

    def repair(self) -> bool:
        """Put back what the last `offload` recorded; False where it is not there any more."""
        return False

    def let_go(self) -> None:
        """What came back is checked: the host's copy may go."""

    def memory(self) -> Optional[Memory]:
        """Device memory at this boundary; None for not known."""
        return None

    def agree(self, is_wanted: bool) -> bool:
        """Called once a boundary by every rank of a gang: whether all of them stop at this one."""
        return is_wanted

    def settle(self, is_stopped: bool) -> bool:
        """All ranks have come to this stop: whether every one of them could."""
        return is_stopped

    def is_resuming(self) -> bool:
        """While stopped: whether another rank has gone on."""
        return False

    def regather(self) -> None:
        """Wait until all ranks have resumed."""
