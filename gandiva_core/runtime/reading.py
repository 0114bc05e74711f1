"""Reading a journal back, whole or cut: every fault is one line naming file and line."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

import msgspec
import zstandard

from gandiva_core.model.errors import InputError
from gandiva_core.runtime.journal import FORMAT_VERSION, Entry, Header, Trailer

T = TypeVar("T")

_TRAILER_START = b'{"kind":"trailer"'
_CHUNK = 1 << 20


class _Format(msgspec.Struct, frozen=True):
    """As much of a header as every version has."""

    kind: str
    format_version: int


class JournalReader:
    """Iterates over (line number, entry); `header` is there at once, `trailer` and `sha256` after the last entry.

    Args:
        path: ``.jsonl.zst`` or a plain ``.jsonl`` segment.
        is_open_ended: accept a journal without a trailer, as a crash leaves it; a cut last line is dropped.

    Raises:
        InputError: the file cannot be read, is cut, garbled, of an unknown version, or was changed.
    """

    def __init__(self, path: Path, *, is_open_ended: bool = False) -> None:
        self._path = path
        self._is_open_ended = is_open_ended
        self._hash = hashlib.sha256()
        self._lines = self._read_lines()
        self._entries = msgspec.json.Decoder(Entry)
        self.trailer: Trailer | None = None
        self.sha256 = ""
        self.header = self._read_header()

    def __iter__(self) -> Iterator[tuple[int, Entry]]:
        count = 0
        for number, line in self._lines:
            if self._is_open_ended and not line.endswith(b"\n"):
                return
            if line.startswith(_TRAILER_START):
                self._read_trailer(number, line, count)
                return
            entry = self._decode(self._entries, number, line, "an entry")
            self._hash.update(line)
            count += 1
            yield number, entry
        if not self._is_open_ended:
            raise InputError(self._place(count + 2), "the end of the file", "a trailer: it was cut")

    def _place(self, number: int) -> str:
        return f"{self._path}:{number}"

    def _read_header(self) -> Header:
        number, line = next(self._lines, (1, b""))
        expected = f"the header of a journal of format {FORMAT_VERSION}"
        found = self._decode(msgspec.json.Decoder(_Format), number, line, expected)
        if found.kind != "header":
            raise InputError(self._place(number), f"a line of kind {found.kind!r}", expected)
        if found.format_version != FORMAT_VERSION:
            raise InputError(self._place(number), f"format {found.format_version}", expected)
        header = self._decode(msgspec.json.Decoder(Header), number, line, expected)
        self._hash.update(line)
        return header

    def _read_trailer(self, number: int, line: bytes, count: int) -> None:
        trailer = self._decode(msgspec.json.Decoder(Trailer), number, line, "a trailer")
        body = self._hash.hexdigest()
        if (trailer.entries, trailer.body_sha256) != (count, body):
            raise InputError(
                self._place(number),
                f"{count} entries with sha256 {body[:12]}…",
                f"{trailer.entries} with {trailer.body_sha256[:12]}…: it was changed",
            )
        extra = next(self._lines, None)
        if extra is not None:
            raise InputError(self._place(extra[0]), "a line after the trailer", "the end")
        self._hash.update(line)
        self.trailer = trailer
        self.sha256 = self._hash.hexdigest()

    def _decode(
        self, decoder: msgspec.json.Decoder[T], number: int, line: bytes, expected: str
    ) -> T:
        if not line.endswith(b"\n"):
            found = "a line that is cut" if line else "an empty file"
            raise InputError(self._place(number), found, expected)
        try:
            return decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(self._place(number), str(error), expected) from error

    def _read_lines(self) -> Iterator[tuple[int, bytes]]:
        number = 0
        try:
            with self._path.open("rb") as file, _plain(self._path, file) as plain:
                for number, line in enumerate(plain, start=1):
                    yield number, line
        except zstandard.ZstdError as error:
            raise InputError(
                self._place(number + 1), str(error), "a whole zstandard file"
            ) from error
        except OSError as error:
            raise InputError(str(self._path), error.strerror or str(error), "a journal") from error


def _plain(path: Path, file: BinaryIO) -> BinaryIO:
    if path.suffix != ".zst":
        return file
    frame = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=False)
    return cast("BinaryIO", io.BufferedReader(cast("io.RawIOBase", frame), _CHUNK))
