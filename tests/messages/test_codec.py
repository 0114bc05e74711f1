"""Every message survives the journey as JSON; garbage gets a named error."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gandiva_core.messages.codec import decode_event, encode
from gandiva_core.messages.decisions import Decision, Remember
from gandiva_core.messages.effects import Effect
from gandiva_core.messages.events import Event
from gandiva_core.model.errors import InputError

FINITE = st.floats(allow_nan=False, allow_infinity=False)
st.register_type_strategy(float, FINITE)
WHOLE = st.integers(min_value=-(2**62), max_value=2**62)
st.register_type_strategy(int, WHOLE)


@given(st.one_of(*(st.from_type(kind) for kind in get_args(Event))))
def test_an_event_comes_back_equal(event: Event) -> None:
    assert decode_event(encode(event), "here") == event


REMEMBERED = st.builds(Remember, st.text(), st.dictionaries(st.text(), FINITE))
OTHERS = (st.from_type(kind) for kind in get_args(Decision) if kind is not Remember)


@given(st.one_of(REMEMBERED, *OTHERS))
def test_a_decision_comes_back_equal(decision: Decision) -> None:
    assert msgspec.json.decode(encode(decision), type=Decision) == decision


@given(st.one_of(*(st.from_type(kind) for kind in get_args(Effect))))
def test_an_effect_comes_back_equal(effect: Effect) -> None:
    assert msgspec.json.decode(encode(effect), type=Effect) == effect


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"kind":"JobSubmitted"}',
        b'{"kind":"Nonsense","at_s":1}',
        b'{"kind":"TimerFired","at_s":"soon","key":"k"}',
        b"[" * 100_000,
    ],
)
def test_garbage_names_the_place(data: bytes) -> None:
    with pytest.raises(InputError, match=r"journal:7.*expected an event"):
        decode_event(data, "journal:7")


@given(st.binary(max_size=200))
def test_no_bytes_lead_to_another_error(data: bytes) -> None:
    """FAULTS A13."""
    with pytest.raises(InputError, match=r"^x:1: "):
        decode_event(data, "x:1")
