"""Every message survives the journey as JSON, as journals have it; what is no entry of one is `runtime.reading`'s."""

from __future__ import annotations

from typing import get_args

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gandiva_core.messages.decisions import Decision, Remember
from gandiva_core.messages.effects import Effect
from gandiva_core.messages.events import Event

FINITE = st.floats(allow_nan=False, allow_infinity=False)
st.register_type_strategy(float, FINITE)
WHOLE = st.integers(min_value=-(2**62), max_value=2**62)
st.register_type_strategy(int, WHOLE)


@given(st.one_of(*(st.from_type(kind) for kind in get_args(Event))))
def test_an_event_comes_back_equal(event: Event) -> None:
    assert msgspec.json.decode(msgspec.json.encode(event), type=Event) == event


REMEMBERED = st.builds(Remember, st.text(), st.dictionaries(st.text(), FINITE))
OTHERS = (st.from_type(kind) for kind in get_args(Decision) if kind is not Remember)


@given(st.one_of(REMEMBERED, *OTHERS))
def test_a_decision_comes_back_equal(decision: Decision) -> None:
    assert msgspec.json.decode(msgspec.json.encode(decision), type=Decision) == decision


@given(st.one_of(*(st.from_type(kind) for kind in get_args(Effect))))
def test_an_effect_comes_back_equal(effect: Effect) -> None:
    assert msgspec.json.decode(msgspec.json.encode(effect), type=Effect) == effect
