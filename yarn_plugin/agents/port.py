"""Where agents dial in, as a site's files have it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gandiva_core.config.keys import BY_NAME, PREFIX
from gandiva_core.model.errors import InputError
from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.credentials import Credentials, Tls
from gandiva_core.site.tokens import read_token

_AGENTS = PREFIX + "agents."
PORT = _AGENTS + "port"
ADDRESS = _AGENTS + "address"
TOKEN = _AGENTS + "token-file"
OPERATIONS_TOKEN = PREFIX + "operations.token-file"
_TLS = tuple(_AGENTS + f"tls.{name}-file" for name in ("certificate", "key", "authority"))


class AgentsPort(msgspec.Struct, frozen=True):
    """An address and what has to be shown there.

    Attributes:
        operations_secret: the administrators', for `gandiva job` and `gandiva node`; empty for nobody.
    """

    address: str
    port: int
    credentials: Credentials
    operations_secret: str = ""


def read_agents_port(site: SiteConfiguration) -> AgentsPort | None:
    """None where the site has none.

    Raises:
        InputError: a port that is none, files that cannot be used, an address that nothing protects.
    """
    text = site.text(PORT, BY_NAME[PORT].default).strip()
    if not text.isdecimal() or int(text) > 65535:
        raise InputError(site.place(PORT), repr(text), "a port, or 0 for no agents")
    if text == "0":
        return None
    address = site.text(ADDRESS, BY_NAME[ADDRESS].default).strip()
    credentials = read_credentials(site)
    credentials.check_address(address, site.place(ADDRESS))
    return AgentsPort(address, int(text), credentials, read_operations_secret(site))


def read_operations_secret(site: SiteConfiguration) -> str:
    """The administrators' secret; empty where the site has none.

    Raises:
        InputError: a file that cannot be used.
    """
    file = site.text(OPERATIONS_TOKEN, "").strip()
    return read_token(Path(file), site.place(OPERATIONS_TOKEN)) if file else ""


def read_credentials(site: SiteConfiguration) -> Credentials:
    """The secret and the certificates, as far as the site has them.

    Raises:
        InputError: a file that cannot be used, or only some of the three for TLS.
    """
    token = site.text(TOKEN, "").strip()
    return Credentials(
        token=read_token(Path(token), site.place(TOKEN)) if token else "", tls=read_tls(site)
    )


def read_tls(site: SiteConfiguration) -> Tls | None:
    """The certificates; None where the site has none.

    Raises:
        InputError: only some of the three files.
    """
    files = [Path(file) if (file := site.text(key)) else None for key in _TLS]
    return Tls.of(files, [site.place(key) for key in _TLS])
