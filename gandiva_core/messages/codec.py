"""Messages as JSON: one encoder for all of them, shared by journal, bridge and agents, and the decoder of events."""

from __future__ import annotations

import msgspec

from gandiva_core.messages.decisions import Decision
from gandiva_core.messages.effects import Effect
from gandiva_core.messages.events import Event
from gandiva_core.model.errors import InputError

_ENCODER = msgspec.json.Encoder()
_EVENT = msgspec.json.Decoder(Event)


def encode(message: Event | Decision | Effect) -> bytes:
    """One message as compact JSON; the same message gives the same bytes (C-6)."""
    return _ENCODER.encode(message)


def decode_event(data: bytes, place: str) -> Event:
    """Read an event.

    Raises:
        InputError: naming `place`, where the bytes are no event of this version.
    """
    try:
        return _EVENT.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(place, str(error), "an event") from error
