"""HTTP to Hadoop's daemons: one session class, with time-outs that cannot be left out.

`requests` waits for ever by default, follows redirects anywhere and reads proxies and passwords from the
environment. None of that is wanted towards a ResourceManager, so every HTTP call of this project goes through
`HttpSession`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
from tenacity import (
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from gandiva_core.model.errors import GandivaError

CONNECT_S = 2.0
READ_S = 10.0
TRIES_MAX = 3
IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
"""Methods that may be sent again when it is not known what became of the first (RFC 9110, 9.2.2)."""

_BUSY = frozenset({502, 503, 504})


class HttpError(GandivaError):
    """A daemon did not answer, or refused; the message is one line for people.

    Attributes:
        status: of the answer; 0 where there was none.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(" ".join(message.split()))
        self.status = status


class _RetriedError(Exception):
    """What went wrong in a try that may be repeated."""

    def __init__(self, error: HttpError) -> None:
        super().__init__(str(error))
        self.error = error


class HttpSession(requests.Session):
    """A session that always ends.

    Args:
        connect_s, read_s: time-outs of each try; a call may set its own pair, not none.
        tries_max: of an idempotent call, where no answer came or a gateway answered that it is busy.
        wait_s: before the second try; doubled for each further one.
        hosts: other hosts that a redirect may lead to (the second ResourceManager of a pair).

    Nothing comes from the environment: no proxy, no ``.netrc``.
    """

    def __init__(
        self,
        connect_s: float = CONNECT_S,
        read_s: float = READ_S,
        tries_max: int = TRIES_MAX,
        wait_s: float = 0.2,
        hosts: Collection[str] = (),
    ) -> None:
        super().__init__()
        if min(connect_s, read_s) <= 0:
            raise ValueError("time-outs are seconds above 0")
        self.trust_env = False
        self._limits_s = (connect_s, read_s)
        self._tries_max = tries_max
        self._wait_s = wait_s
        self._hosts = frozenset(hosts)

    def request(self, method: str | bytes, url: str | bytes, *args: Any, **kwargs: Any) -> Any:
        """As of `requests.Session`, with time-outs, and repeated where that is safe.

        Raises:
            HttpError: no answer in time, no connection, or a redirect to a foreign host.
        """
        if len(args) > 6:  # `timeout` is the seventh after the url
            raise TypeError("give the time-out by its name")
        if kwargs.get("timeout") is None:
            kwargs["timeout"] = self._limits_s
        name = (method.decode() if isinstance(method, bytes) else method).upper()
        tries = self._tries_max if name in IDEMPOTENT else 1
        retrying = Retrying(
            stop=stop_after_attempt(tries),
            wait=wait_exponential(multiplier=self._wait_s, max=5.0)
            + wait_random(0.0, self._wait_s / 2),
            retry=retry_if_exception_type(_RetriedError),
            reraise=True,
        )
        try:
            return retrying(self._once, name, str(url), args, kwargs)
        except _RetriedError as last:
            raise last.error from last

    def get_json(self, url: str) -> Any:
        """What is at `url`, decoded.

        Raises:
            HttpError: as `request`; also for a status other than 200, or no JSON.
        """
        reply = self.request("GET", url, headers={"Accept": "application/json"})
        if reply.status_code != requests.codes.ok:
            raise HttpError(f"{url}: status {reply.status_code}, expected 200", reply.status_code)
        try:
            return reply.json()
        except requests.exceptions.JSONDecodeError as error:
            raise HttpError(f"{url}: no JSON: {error}", reply.status_code) from error

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Where a redirect leads; a standby sends to the active one, nobody sends elsewhere.

        Raises:
            HttpError: to a host that is neither the one that was asked nor one of `hosts`.
        """
        target = super().get_redirect_target(resp)
        if target is None:
            return None
        asked = urlsplit(resp.url)
        leads = urlsplit(urljoin(resp.url, target))
        if leads.hostname != asked.hostname and leads.hostname not in self._hosts:
            resp.close()
            raise HttpError(
                f"{resp.url}: a redirect to {leads.hostname}, which is no host of this cluster",
                resp.status_code,
            )
        return target

    def _once(self, method: str, url: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            reply = super().request(method, url, *args, **kwargs)
        except (requests.ConnectionError, requests.Timeout) as error:
            raise _RetriedError(HttpError(f"{url}: {_said(error)}")) from error
        except requests.RequestException as error:
            raise HttpError(f"{url}: {_said(error)}") from error
        if reply.status_code in _BUSY and method in IDEMPOTENT:
            raise _RetriedError(HttpError(f"{url}: status {reply.status_code}", reply.status_code))
        return reply


def _said(error: requests.RequestException) -> str:
    if isinstance(error, requests.ConnectTimeout):
        return "no connection in time"
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.ConnectionError):
        return "no connection"
    return str(error)
