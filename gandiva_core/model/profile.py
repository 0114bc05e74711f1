"""What a model does on a device: the tables of SPEC §2.9 as a type.

Used by the job model, never by a policy (G-54).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gandiva_core.model.placement import LocalityLevel
from gandiva_core.model.units import AcceleratorType


class ModelProfile(msgspec.Struct, frozen=True):
    """One row of the model table (C-9).

    Attributes:
        rate_per_s: mini-batches per second of the whole job at its requested size and best
            locality, by accelerator type; the entry ``""`` serves every type without its own.
        utilisation_ratio: busy fraction of a device while the job runs alone, 0 to 1.
        memory_peak_mib: device memory per GPU at its peak.
        memory_min_mib: device memory per GPU at the mini-batch boundary (G-42).
        checkpoint_mib: size of a checkpoint (G-73).
        locality_factor: rate relative to the best level, by level; a missing level counts as the
            next better one that is there.
        spread_factor: rate of a gang over k servers relative to one server, by k (G-71); a missing
            k counts as the largest known one below it.
        nic_factor: rate by number of concurrent split jobs on the worst server, from one on; the
            last value holds on (G-72).
        source: where the numbers come from: tags of SPEC §0.
    """

    name: str
    rate_per_s: Mapping[AcceleratorType, float]
    utilisation_ratio: float
    memory_peak_mib: float
    memory_min_mib: float
    checkpoint_mib: float
    locality_factor: Mapping[LocalityLevel, float] = {}
    spread_factor: Mapping[int, float] = {}
    nic_factor: tuple[float, ...] = (1.0,)
    source: str = "[D]"

    def rate(self, accelerator_type: AcceleratorType) -> float:
        """Mini-batches per second at the best placement on `accelerator_type`."""
        fallback = self.rate_per_s[AcceleratorType("")]
        return self.rate_per_s.get(accelerator_type, fallback)
