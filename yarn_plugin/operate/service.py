"""The method of the core's port that people's commands call; one request, one reply."""

from __future__ import annotations

import asyncio
import queue
from typing import Any

import grpc
import msgspec

from gandiva_core.messages.agents import encode
from gandiva_core.messages.operations import REQUEST_BYTES_MAX, Operation, decode_operation
from yarn_plugin.operate.callers import caller_of
from yarn_plugin.operate.operations import Operations

ANSWER_S_MAX = 10.0
"""The core takes turns many times a second; where it does not, the caller hears so."""


class OperateService:
    """Checks who asks and hands on what is asked.

    Args:
        operations: who answers.
        secret: the administrators'; empty lets nobody in.
    """

    def __init__(self, operations: Operations, secret: str) -> None:
        self._operations = operations
        self._secret = secret

    def handler(self) -> Any:
        """For the server."""
        return grpc.unary_unary_rpc_method_handler(self.operate)

    async def operate(self, request: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
        """Answer a request; refused ones end with a status of gRPC."""
        caller = caller_of(context.invocation_metadata(), self._secret)
        if caller is None:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "no valid token")
            raise AssertionError  # abort raises
        operation = _decoded(request)
        if operation is None:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no such request")
            raise AssertionError  # abort raises
        try:
            answer = asyncio.wrap_future(self._operations.ask(caller, operation))
            return encode(await asyncio.wait_for(answer, ANSWER_S_MAX))
        except queue.Full:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many requests wait")
        except TimeoutError:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the core has no session")
        raise AssertionError  # abort raises


def _decoded(request: bytes) -> Operation | None:
    if len(request) > REQUEST_BYTES_MAX:
        return None
    try:
        return decode_operation(request)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
