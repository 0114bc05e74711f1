"""A list of how to take back what was done, newest last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_MISSING = object()


class UndoLog:
    """Every change goes through a method here, or is followed by `note` with the call that reverses it."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[tuple[Callable[..., object], tuple[Any, ...]]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def note(self, reverse: Callable[..., object], *arguments: object) -> None:
        """A change was made; `reverse(*arguments)` takes it back."""
        self._entries.append((reverse, arguments))

    def write(self, holder: object, attribute: str, value: object) -> None:
        """Set an attribute."""
        self._entries.append((setattr, (holder, attribute, getattr(holder, attribute))))
        setattr(holder, attribute, value)

    def write_item(self, row: list[Any], index: int, value: object) -> None:
        """Set a list's item."""
        self._entries.append((row.__setitem__, (index, row[index])))
        row[index] = value

    def write_entry(self, mapping: dict[Any, Any], key: object, value: object) -> None:
        """Set a mapping's entry."""
        old = mapping.get(key, _MISSING)
        if old is _MISSING:
            self._entries.append((mapping.pop, (key,)))
        else:
            self._entries.append((mapping.__setitem__, (key, old)))
        mapping[key] = value

    def drop_entry(self, mapping: dict[Any, Any], key: object) -> None:
        """Remove a mapping's entry, which must exist; taking it back puts it last."""
        self._entries.append((mapping.__setitem__, (key, mapping.pop(key))))

    def rollback(self, length: int) -> None:
        """Take back everything after the log had `length` entries."""
        entries = self._entries
        while len(entries) > length:
            reverse, arguments = entries.pop()
            reverse(*arguments)

    def clear(self) -> None:
        """Nothing up to here will be taken back."""
        self._entries.clear()
