"""What every policy must keep, as tests to inherit: subclass `PolicyConformance` and give it a policy.

Needs pytest and hypothesis, which the package itself does not.
"""

from __future__ import annotations

import pytest

# So that a failure in the suite shows the values, as in the author's own tests; before the suite is imported.
pytest.register_assert_rewrite("gandiva_core.conformance.suite")

from gandiva_core.conformance.suite import PolicyConformance  # noqa: E402
from gandiva_core.conformance.world import Delays, SmallWorld, Work  # noqa: E402

__all__ = ["Delays", "PolicyConformance", "SmallWorld", "Work"]
