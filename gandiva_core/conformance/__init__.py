"""What every policy must keep, as tests to inherit: subclass `PolicyConformance` and give it a policy.

Needs pytest and hypothesis, which the package itself does not.
"""

from __future__ import annotations

from gandiva_core.conformance.suite import PolicyConformance
from gandiva_core.conformance.world import Delays, SmallWorld, Work

__all__ = ["Delays", "PolicyConformance", "SmallWorld", "Work"]
