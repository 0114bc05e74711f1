"""A command's way to the running core."""

from __future__ import annotations

import os
from pathlib import Path

import grpc
import msgspec

from gandiva_core.config.keys import BY_NAME
from gandiva_core.messages.agents import MESSAGE_BYTES_MAX, SERVICE, encode
from gandiva_core.messages.operations import METHOD, Operation, OperationReply, decode_reply
from gandiva_core.model.errors import GandivaError, InputError
from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.credentials import Credentials
from gandiva_core.site.tokens import read_token
from yarn_plugin.agents.port import ADDRESS, OPERATIONS_TOKEN, PORT, read_tls

ANSWER_S_MAX = 15.0


class CoreUnreachableError(GandivaError):
    """No core answers there."""


class NotAdmittedError(GandivaError):
    """The core does not know this token."""


class CoreAddress(msgspec.Struct, frozen=True):
    """Where the core is, and what is shown there."""

    target: str
    credentials: Credentials

    def call(self, operation: Operation) -> OperationReply:
        """Ask the core.

        Raises:
            CoreUnreachableError, NotAdmittedError.
        """
        with self._channel() as channel:
            ask = channel.unary_unary(f"/{SERVICE}/{METHOD}")
            metadata = self.credentials.shown()
            try:
                answer = ask(encode(operation), timeout=ANSWER_S_MAX, metadata=metadata)
            except grpc.RpcError as error:
                status, told = error.code(), f"{self.target}: {error.details()}"
                if status is grpc.StatusCode.UNAUTHENTICATED:
                    raise NotAdmittedError(told) from error
                raise CoreUnreachableError(f"no core answers at {told}") from error
        try:
            return decode_reply(answer)
        except msgspec.DecodeError as error:
            raise CoreUnreachableError(f"{self.target}: no answer of a core: {error}") from error

    def _channel(self) -> grpc.Channel:
        options = (("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),)
        tls = self.credentials.tls
        if tls is None:
            return grpc.insecure_channel(self.target, options=options)
        return grpc.secure_channel(self.target, tls.of_client(), options=options)


def core_address(conf_dir: Path, token_file: Path | None) -> CoreAddress:
    """The core of a site's files.

    Args:
        conf_dir: with yarn-site.xml.
        token_file: what to show; None for the administrators' file that the site names.

    Raises:
        InputError: the site has no port for this, or a file cannot be used.
    """
    site = SiteConfiguration.load(conf_dir, os.environ)
    port = site.text(PORT, BY_NAME[PORT].default)
    if port == "0":
        raise InputError(site.place(PORT), "no port", "a core with agents; their port is used")
    if token_file is None:
        named = site.text(OPERATIONS_TOKEN, "").strip()
        if not named:
            place = site.place(OPERATIONS_TOKEN)
            raise InputError(place, "not set", "a file of the core, or --token-file")
        token_file = Path(named)
    credentials = Credentials(read_token(token_file, "--token-file"), read_tls(site))
    address = site.text(ADDRESS, BY_NAME[ADDRESS].default)
    credentials.check_address(address, site.place(ADDRESS))
    return CoreAddress(f"{address}:{port}", credentials)
