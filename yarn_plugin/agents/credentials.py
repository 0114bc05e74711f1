"""Who may talk to the core as an agent: a shared secret on loopback, certificates anywhere, nobody without either."""

from __future__ import annotations

import hmac
import ipaddress
from pathlib import Path

import grpc
import msgspec

from gandiva_core.model.errors import InputError

TOKEN_KEY = "authorization"


class Tls(msgspec.Struct, frozen=True):
    """Files of one side of mutual TLS, all PEM."""

    certificate: Path
    key: Path
    authority: Path


class Credentials(msgspec.Struct, frozen=True):
    """What an agent has to show.

    Attributes:
        token: the shared secret, empty where certificates alone do.
        tls: where None, the connection is in the clear, which only loopback may be.
    """

    token: str = ""
    tls: Tls | None = None

    def check_address(self, address: str, place: str) -> None:
        """Refuse an address that these do not protect.

        Raises:
            InputError: beyond loopback without TLS, or no credentials at all.
        """
        if self.tls is None and not self.token:
            raise InputError(place, "neither a token nor certificates", "one of them")
        if self.tls is None and not _is_loopback(address):
            raise InputError(place, f"{address} without TLS", "a loopback address, or certificates")

    def are_shown_in(self, metadata: object) -> bool:
        """Whether a call's metadata has the secret; compared in constant time."""
        if not self.token:
            return True
        shown = next((str(v) for k, v in metadata or () if k == TOKEN_KEY), "")  # type: ignore[attr-defined]
        return hmac.compare_digest(shown.encode(), f"Bearer {self.token}".encode())

    def of_server(self) -> grpc.ServerCredentials | None:
        """For the server's port; clients must show a certificate of the authority."""
        if self.tls is None:
            return None
        pair = (self.tls.key.read_bytes(), self.tls.certificate.read_bytes())
        return grpc.ssl_server_credentials(
            [pair], root_certificates=self.tls.authority.read_bytes(), require_client_auth=True
        )


def _is_loopback(address: str) -> bool:
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
