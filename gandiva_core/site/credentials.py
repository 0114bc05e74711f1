"""What both ends of a connection to the core show: a secret on loopback, certificates anywhere, else nothing goes."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Iterable, Sequence
from pathlib import Path

import grpc
import msgspec

from gandiva_core.model.errors import InputError
from gandiva_core.site.tokens import TOKEN_KEY, shown


class Tls(msgspec.Struct, frozen=True):
    """Files of one side of mutual TLS, all PEM."""

    certificate: Path
    key: Path
    authority: Path

    @classmethod
    def of(cls, files: Sequence[Path | None], places: Sequence[str]) -> Tls | None:
        """Certificate, key and authority; None where there is none of them.

        Args:
            files: the three.
            places: who names each, for the error.

        Raises:
            InputError: only some of them.
        """
        named = [file for file in files if file is not None]
        if not named:
            return None
        if len(named) < len(files):
            missing = next(place for place, file in zip(places, files, strict=True) if file is None)
            raise InputError(missing, "not set", "all three files of TLS, or none")
        return cls(*named)

    def of_server(self) -> grpc.ServerCredentials:
        """For a server's port; clients must show a certificate of the authority.

        Raises:
            InputError: files that cannot be read.
        """
        authority, key, certificate = self._contents()
        return grpc.ssl_server_credentials(
            [(key, certificate)], root_certificates=authority, require_client_auth=True
        )

    def of_client(self) -> grpc.ChannelCredentials:
        """For whoever dials.

        Raises:
            InputError: files that cannot be read.
        """
        return grpc.ssl_channel_credentials(*self._contents())

    def _contents(self) -> tuple[bytes, bytes, bytes]:
        try:
            return (
                self.authority.read_bytes(),
                self.key.read_bytes(),
                self.certificate.read_bytes(),
            )
        except OSError as error:
            raise InputError("certificates", str(error), "readable PEM files") from error


class Credentials(msgspec.Struct, frozen=True):
    """One end's.

    Attributes:
        token: the shared secret, empty where certificates alone do.
        tls: where None, the connection is in the clear, which only loopback may be.
    """

    token: str = ""
    tls: Tls | None = None

    def check_address(self, address: str, place: str) -> None:
        """Refuse an address that these do not protect.

        Args:
            address: a host's name or number.
            place: who names it, for the error.

        Raises:
            InputError: beyond loopback without TLS, or no credentials at all.
        """
        if self.tls is None and not self.token:
            raise InputError(place, "neither a token nor certificates", "one of them")
        if self.tls is None and not _is_loopback(address):
            raise InputError(place, f"{address} without TLS", "a loopback address, or certificates")

    def shown(self) -> tuple[tuple[str, str], ...]:
        """The metadata of a call that shows the secret, where there is one."""
        return shown(self.token) if self.token else ()

    def are_shown_in(self, metadata: Iterable[tuple[str, str | bytes]] | None) -> bool:
        """Whether a call's metadata has the secret; compared in constant time."""
        if not self.token:
            return True
        found = next((str(value) for key, value in metadata or () if key == TOKEN_KEY), "")
        return hmac.compare_digest(found.encode(), f"Bearer {self.token}".encode())


def _is_loopback(address: str) -> bool:
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
