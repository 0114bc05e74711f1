"""C-3: a type without a rate of its own takes the general one."""

from __future__ import annotations

from gandiva_core.model.profile import ModelProfile
from gandiva_core.model.units import AcceleratorType


def test_a_rate_is_by_type_with_a_general_one() -> None:
    rates = {AcceleratorType(""): 2.0, AcceleratorType("P100"): 3.0}
    profile = ModelProfile("m", rates, 0.5, 1.0, 1.0, 1.0)
    assert profile.rate(AcceleratorType("P100")) == 3.0
    assert profile.rate(AcceleratorType("K80")) == 2.0
