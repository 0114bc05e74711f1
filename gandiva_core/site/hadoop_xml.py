"""One Hadoop XML file, read event by event as Hadoop's own parser does (`Configuration.Parser`, 3.4.2).

Names are trimmed and values are not; a property without a value, also an empty one, is ignored; of two
name elements the last counts; `final` must be exactly ``true``; an include is read where it stands, so
that what follows it wins. Entities are refused: Hadoop would expand them, and no site needs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.sax import SAXParseException
from xml.sax.handler import ContentHandler, feature_namespaces
from xml.sax.xmlreader import AttributesNSImpl, Locator

import msgspec
from defusedxml import DefusedXmlException, sax

from gandiva_core.model.errors import InputError

EXPECTED = "a Hadoop configuration in XML"
LONGEST_SHOWN = 60
_TEXT_ELEMENTS = frozenset({"name", "value", "final", "source", "tag"})


class Property(msgspec.Struct, frozen=True):
    """A property as written.

    Attributes:
        value: None where there is none; Hadoop ignores such a property.
        file: the path as it was opened.
        line: of its opening tag, from 1.
        names: every name it was given; the last one is `name`.
    """

    name: str
    value: str | None
    is_final: bool
    file: str
    line: int
    names: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """``yarn-site.xml:12``."""
        return f"{self.file}:{self.line}"


class _Open:
    """The property being read: its parts arrive one by one."""

    def __init__(self, line: int, name: str | None, value: str | None, is_final: bool) -> None:
        self.line = line
        self.name = name
        self.value = value
        self.is_final = is_final
        self.names = [] if name is None else [name]


class _Handler(ContentHandler):
    """Collects properties; `include` is called for each xi:include that names a file."""

    def __init__(self, reader: _Reader, path: Path) -> None:
        super().__init__()
        self.properties: list[Property] = []
        self._reader = reader
        self._path = path
        self._locator: Locator | None = None
        self._text: list[str] | None = None
        self._open: _Open | None = None
        self._include_failed = False
        self._fallback_seen = False

    def setDocumentLocator(self, locator: Locator) -> None:  # noqa: N802 - the SAX interface's name
        self._locator = locator

    @property
    def line(self) -> int:
        """Where the parser is."""
        number = self._locator.getLineNumber() if self._locator else None
        return number or 1

    def startElementNS(  # noqa: N802 - the SAX interface's name
        self, name: tuple[str | None, str], qname: str | None, attrs: AttributesNSImpl
    ) -> None:
        del qname
        attributes = {key[1]: value for key, value in attrs.items()}
        match name[1]:
            case "property":
                self._open = _Open(
                    self.line,
                    attributes.get("name"),
                    attributes.get("value"),
                    attributes.get("final") == "true",
                )
            case "include":
                self._start_include(attributes.get("href"))
            case "fallback":
                self._fallback_seen = True
            case element if element in _TEXT_ELEMENTS:
                self._text = []

    def characters(self, content: str) -> None:
        if self._text is not None:
            self._text.append(content)

    def endElementNS(  # noqa: N802 - the SAX interface's name
        self, name: tuple[str | None, str], qname: str | None
    ) -> None:
        del qname
        match name[1]:
            case "property":
                self._end_property()
            case "include":
                self._end_include()
            case "name" | "value" | "final":
                self._end_text(name[1])

    def _end_text(self, element: str) -> None:
        text = "".join(self._text or ())
        if self._open is None or not text:
            return
        match element:
            case "name":
                self._open.name = text.strip()
                self._open.names.append(self._open.name)
            case "value":
                self._open.value = text
            case _:
                self._open.is_final = text == "true"

    def _end_property(self) -> None:
        opened, self._open = self._open, None
        in_unused_fallback = self._fallback_seen and not self._include_failed
        if opened is None or opened.name is None or in_unused_fallback:
            return
        self.properties.append(
            Property(
                name=opened.name,
                value=opened.value,
                is_final=opened.is_final,
                file=str(self._path),
                line=opened.line,
                names=tuple(opened.names),
            )
        )

    def _start_include(self, href: str | None) -> None:
        self._include_failed = self._fallback_seen = False
        if href is None:
            return
        place = f"{self._path}:{self.line}"
        target = self._reader.included(self._path, href, place)
        if target is None:
            self._include_failed = True
        else:
            self.properties.extend(self._reader.read(target, place))

    def _end_include(self) -> None:
        if self._include_failed and not self._fallback_seen:
            place = f"{self._path}:{self.line}"
            expected = "a file that is there, or an xi:fallback"
            raise InputError(place, "an xi:include of a file that is not there", expected)
        self._include_failed = self._fallback_seen = False


class _Reader:
    """Reads a file and what it includes; remembers the way, to see a circle."""

    def __init__(self, root: Path) -> None:
        self.files: list[Path] = []
        self._root = root
        self._open_files: list[Path] = []

    def read(self, path: Path, included_from: str | None = None) -> list[Property]:
        self.files.append(path)
        resolved = path.resolve()
        if resolved in self._open_files:
            found = f"{path.name}, which is being read already"
            raise InputError(included_from or str(path), found, "includes without a circle")
        handler = _Handler(self, path)
        parser = sax.make_parser()
        parser.setFeature(feature_namespaces, 1)
        parser.setContentHandler(handler)
        self._open_files.append(resolved)
        try:
            with path.open("rb") as stream:
                parser.parse(stream)
        except SAXParseException as problem:
            raise _not_xml(path, problem) from None
        except DefusedXmlException:
            raise InputError(f"{path}:{handler.line}", "an XML entity", EXPECTED) from None
        except OSError as problem:
            raise InputError(str(path), problem.strerror or "unreadable", EXPECTED) from None
        finally:
            self._open_files.pop()
        return handler.properties

    def included(self, base: Path, href: str, place: str) -> Path | None:
        """The file an include means: on the class path (the folder of the site) or beside its file.

        Returns:
            None where there is no such file; Hadoop then uses the fallback.

        Raises:
            InputError: an include over the network, which Hadoop would fetch and we do not.
        """
        parts = urlsplit(href)
        if parts.scheme not in ("", "file"):
            raise InputError(place, f"an xi:include of {href}", "an include of a local file")
        name = unquote(parts.path)
        candidates = (self._root / name, base.parent / name)
        return next((path for path in candidates if path.is_file()), None)


def read_file(
    path: Path, root: Path | None = None, files: list[Path] | None = None
) -> Iterator[Property]:
    """The properties of one file in their order, includes in place, before any overriding.

    Args:
        path: the file.
        root: the folder of the site, searched first for includes; the file's own by default.
        files: gets every file that was read, included ones too.

    Raises:
        InputError: no such file, not XML, an include that fails without a fallback, or an entity.
    """
    reader = _Reader(root or path.parent)
    properties = reader.read(path)
    if files is not None:
        files += reader.files
    yield from properties


def _not_xml(path: Path, problem: SAXParseException) -> InputError:
    """Says what is in the file instead; a symbolic link stored as text is a common case (H17)."""
    with path.open("rb") as stream:
        start = stream.read(512)
    text = start.decode("utf-8", errors="replace").strip()
    first = text.splitlines()[0][:LONGEST_SHOWN] if text else ""
    line = problem.getLineNumber() or 1
    if not text:
        found = "an empty file"
    elif "\0" in text or "\ufffd" in text:
        found = "binary data"
    elif "<" not in text and "/" in first and " " not in first:
        found = f"{first!r}, a path (a symbolic link stored as text?)"
    elif not text.startswith("<"):
        found = f"{first!r}"
    else:
        found = f"broken XML ({problem.getMessage()})"
    return InputError(f"{path}:{line}", found, EXPECTED)
