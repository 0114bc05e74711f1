"""Messages as JSON: one encoder and one decoder a kind, shared by journal, bridge and agents."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from gandiva_core.messages.decisions import Decision
from gandiva_core.messages.effects import Effect
from gandiva_core.messages.events import Event
from gandiva_core.model.errors import InputError

T = TypeVar("T")

_ENCODER = msgspec.json.Encoder()
_EVENT = msgspec.json.Decoder(Event)
_DECISION = msgspec.json.Decoder(Decision)
_EFFECT = msgspec.json.Decoder(Effect)


def encode(message: Event | Decision | Effect) -> bytes:
    """One message as compact JSON; the same message gives the same bytes (C-6)."""
    return _ENCODER.encode(message)


def decode_event(data: bytes, place: str) -> Event:
    """Read an event.

    Raises:
        InputError: naming `place`, where the bytes are no event of this version.
    """
    return _decode(_EVENT, data, place, "an event")


def decode_decision(data: bytes, place: str) -> Decision:
    """Read a decision; errors as `decode_event`."""
    return _decode(_DECISION, data, place, "a decision")


def decode_effect(data: bytes, place: str) -> Effect:
    """Read an effect; errors as `decode_event`."""
    return _decode(_EFFECT, data, place, "an effect")


def _decode(decoder: msgspec.json.Decoder[T], data: bytes, place: str, expected: str) -> T:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(place, str(error), expected) from error
