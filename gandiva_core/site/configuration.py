"""A site's configuration: several files over one another, each value with the file and line it is from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from gandiva_core.config.reading import Located
from gandiva_core.model.errors import InputError
from gandiva_core.site.deprecation import new_names
from gandiva_core.site.expansion import expand
from gandiva_core.site.findings import Finding, Severity
from gandiva_core.site.hadoop_xml import Property, read_file

FILES = ("core-site.xml", "yarn-site.xml", "resource-types.xml", "capacity-scheduler.xml")
"""What a ResourceManager reads, in its order: a later file wins."""
NODE_FILES = ("core-site.xml", "yarn-site.xml", "resource-types.xml", "node-resources.xml")
"""What a NodeManager reads."""
CLIENT_FILES = ("core-site.xml", "yarn-site.xml", "resource-types.xml")
"""What a client reads, and an application master."""
ALL_FILES = (*NODE_FILES, "capacity-scheduler.xml")

READ_BY_OTHERS = {
    "fair-scheduler.xml": "a file of the FairScheduler; neither Gandiva nor the CapacityScheduler reads it",
}
NOT_SET = "not set"


class SiteConfiguration:
    """Values by key, as the ResourceManager would see them.

    A value is looked up by `get`, expanded; `raw` gives it as written, `place` where. Nothing is
    interpreted beyond text and numbers: queues are in `queues`, resource types in `resource_types`.

    Attributes:
        folder: where it was loaded from; empty where it was not.
        files: what was read there, included files too.
        findings: what to say about it.
    """

    def __init__(
        self,
        properties: Iterable[Property],
        environment: Mapping[str, str] | None = None,
        system_properties: Mapping[str, str] | None = None,
        folder: str = "",
    ) -> None:
        self.folder = folder
        self.files: tuple[Path, ...] = ()
        self.findings: list[Finding] = []
        self._environment = dict(environment or {})
        self._system_properties = dict(system_properties or {})
        self._values: dict[str, Property] = {}
        self._finals: set[str] = set()
        for item in properties:
            self._add(item)

    @classmethod
    def load(
        cls,
        conf_dir: Path,
        environment: Mapping[str, str] | None = None,
        names: Sequence[str] = FILES,
    ) -> SiteConfiguration:
        """Reads those of a daemon's files that are in a folder.

        Args:
            conf_dir: a Hadoop configuration folder.
            environment: for ``${env.NAME}``.
            names: the files, a later one wins.

        Raises:
            InputError: no such folder, none of the files in it, or a file that cannot be read.
        """
        if not conf_dir.is_dir():
            found = "a file" if conf_dir.exists() else "no such folder"
            raise InputError(str(conf_dir), found, "a folder with a Hadoop configuration")
        paths = [path for path in (conf_dir / name for name in names) if path.exists()]
        others = [name for name in READ_BY_OTHERS if (conf_dir / name).exists()]
        if not paths:
            found = f"only {', '.join(others)}" if others else "none of these"
            raise InputError(str(conf_dir), found, f"at least one of {', '.join(names)}")
        files: list[Path] = []
        properties = [item for path in paths for item in read_file(path, conf_dir, files)]
        site = cls(properties, environment, folder=str(conf_dir))
        site.files = tuple(dict.fromkeys(files))
        for name in others:
            site.findings.append(_read_by_others(conf_dir / name))
        return site

    def get(self, key: str) -> str | None:
        """The value with its references expanded; None where it is not set.

        Raises:
            InputError: references that go in a circle.
        """
        value = self.raw(key)
        if value is None:
            return None
        return expand(value, self._lookup, self._environment, self.describe(key))

    def raw(self, key: str) -> str | None:
        """The value as written; an old name means the new one."""
        item = self._values.get(next(iter(new_names(key)), key))
        return None if item is None else item.value

    def place(self, key: str) -> str:
        """File and line of the value in force; the folder where it is not set."""
        item = self._values.get(key)
        return item.place if item else self.folder or NOT_SET

    def describe(self, key: str) -> str:
        """Place and key, for an error's start."""
        return f"{self.place(key)}: {key}"

    def keys(self, prefix: str = "") -> Iterator[str]:
        """Keys that are set, in the order they first appeared."""
        return (key for key in self._values if key.startswith(prefix))

    def located(self, prefix: str) -> dict[str, Located]:
        """The values under a prefix with their places, for `config.reading.read_settings`."""
        found = ((key, self.get(key)) for key in self.keys(prefix))
        return {key: Located(value, self.place(key)) for key, value in found if value is not None}

    def text(self, key: str, default: str = "") -> str:
        """The value without surrounding blanks."""
        value = self.get(key)
        return default if value is None else value.strip()

    def texts(self, key: str) -> tuple[str, ...]:
        """A list: commas between, blanks and line breaks around each dropped, empty ones too."""
        parts = (part.strip() for part in self.text(key).split(","))
        return tuple(part for part in parts if part)

    def number(self, key: str, default: float) -> float:
        """A number.

        Raises:
            InputError: something else.
        """
        text = self.text(key)
        try:
            return float(text) if text else default
        except ValueError:
            raise InputError(self.describe(key), repr(text), "a number") from None

    def whole(self, key: str, default: int) -> int:
        """A whole number.

        Raises:
            InputError: something else.
        """
        text = self.text(key)
        try:
            return int(text) if text else default
        except ValueError:
            raise InputError(self.describe(key), repr(text), "a whole number") from None

    def flag(self, key: str, default: bool) -> bool:
        """True or false; anything else means the default, as in Hadoop."""
        return {"true": True, "false": False}.get(self.text(key).lower(), default)

    def _lookup(self, name: str) -> str | None:
        system = self._system_properties.get(name)
        return self.raw(name) if system is None else system

    def _add(self, item: Property) -> None:
        if item.value is None:
            # <value></value> is common and harmless: Hadoop's default holds.
            if len(item.names) > 1:
                found = f"names {_listed(item)} and no value"
                self._warn(item, found, "one name and a value", "Hadoop ignores it: mend it")
            return
        if len(item.names) > 1:
            self._warn(item, f"names {_listed(item)}", "one name", "the last one counts")
        newer = new_names(item.name)
        if newer:
            text = f"Hadoop reads it as {', '.join(newer)}: write that"
            self._warn(item, "a deprecated key", ", ".join(newer), text)
        for name in newer or (item.name,):
            self._set(name, item)

    def _set(self, name: str, item: Property) -> None:
        before = self._values.get(name)
        if name in self._finals and before is not None:
            found = f"a value that is ignored: {before.place} made the key final"
            self._warn(item, found, "the key once, or not final", "remove one of them")
            return
        if before is not None and before.file == item.file and before.value != item.value:
            found = f"the key set twice in this file, {before.value!r} in line {before.line}"
            self._warn(item, found, "it once", f"this one wins: remove line {before.line}")
        self._values[name] = item
        if item.is_final:
            self._finals.add(name)

    def _warn(self, item: Property, found: str, expected: str, advice: str) -> None:
        subject = item.names[0] if item.names else item.name
        self.findings.append(
            Finding(Severity.WARNING, item.place, subject, found, expected, advice)
        )


def _listed(item: Property) -> str:
    return " and ".join(repr(name) for name in item.names)


def _read_by_others(path: Path) -> Finding:
    advice = "nothing in it counts: write its queues into capacity-scheduler.xml"
    return Finding(
        Severity.WARNING,
        str(path),
        path.name,
        READ_BY_OTHERS[path.name],
        "no such file",
        advice,
    )
