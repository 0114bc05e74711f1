"""A site's folder, made from a few lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gandiva_core.site.configuration import SiteConfiguration

WriteSite = Callable[..., Path]
LoadSite = Callable[..., SiteConfiguration]
QUEUES = "capacity-scheduler.xml"


@pytest.fixture
def write_site(tmp_path: Path) -> WriteSite:
    """Writes files: name to body, or to its properties."""

    def write(files: dict[str, str | dict[str, str]]) -> Path:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else document(content))
        return tmp_path

    return write


@pytest.fixture
def load_site(write_site: WriteSite) -> LoadSite:
    """Writes and loads."""

    def load(files: dict[str, str | dict[str, str]]) -> SiteConfiguration:
        return SiteConfiguration.load(write_site(files))

    return load


def document(properties: dict[str, str]) -> str:
    """A configuration file, one property a line after the first line."""
    body = "\n".join(
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in properties.items()
    )
    return f"<configuration>\n{body}\n</configuration>\n"
