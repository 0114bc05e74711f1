"""Hadoop's settings that we would ship otherwise (FAULTS §3): nothing refuses to start, so they are only told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.findings import Finding, Severity
from gandiva_core.site.hadoop_keys import HADOOP_KEYS, Form
from gandiva_core.site.queue_start import is_number


class Advice(msgspec.Struct, frozen=True):
    """One setting.

    Attributes:
        poor: the flag's value that is told; empty for a number.
        least: numbers below are told.
        most: numbers above are told.
        why: what follows from the poor value, and what to do.
    """

    key: str
    why: str
    poor: str = ""
    least: int | None = None
    most: int | None = None

    @property
    def expected(self) -> str:
        """What we would write."""
        if self.poor:
            return "false" if self.poor == "true" else "true"
        return f"at least {self.least}" if self.least is not None else f"at most {self.most}"

    def is_poor(self, text: str) -> bool:
        """Whether a value is told; what is no number is told elsewhere."""
        if self.poor:
            return text.lower() == self.poor
        if not is_number(text, Form.WHOLE):
            return False
        number = int(text, 0 if "x" in text.lower() else 10)
        too_small = self.least is not None and number < self.least
        return too_small or (self.most is not None and number > self.most)


RESOURCE_MANAGER = (
    Advice(
        "yarn.nm.liveness-monitor.expiry-interval-ms",
        "the GPUs of a lost node are nobody's for that long",
        most=60_000,
    ),
    Advice("yarn.acl.enable", "anybody may end anybody's jobs", poor="false"),
    Advice(
        "hadoop.http.authentication.simple.anonymous.allowed",
        "anybody may read, and submit, over HTTP",
        poor="true",
    ),
    Advice(
        "yarn.webapp.enable-rest-app-submissions",
        "without Kerberos anybody may run anything over HTTP",
        poor="true",
    ),
)
NODE_MANAGER = (
    Advice(
        "yarn.nodemanager.sleep-delay-before-sigkill.ms",
        "a job that is ended has no time for a checkpoint",
        least=30_000,
    ),
    Advice(
        "yarn.nodemanager.pmem-check-enabled",
        "a job that is suspended into host memory can take its neighbours with it",
        poor="false",
    ),
    Advice(
        "yarn.nodemanager.recovery.supervised",
        "containers end with a NodeManager that is stopped in order",
        poor="false",
    ),
)


def check_advice(site: SiteConfiguration, advised: Sequence[Advice]) -> Iterator[Finding]:
    """Settings that are worth a thought."""
    for advice in advised:
        text = site.text(advice.key, HADOOP_KEYS[advice.key].default)
        if advice.is_poor(text):
            found = text if site.raw(advice.key) is not None else f"not set, so {text}"
            yield Finding(
                Severity.INFO,
                site.place(advice.key),
                advice.key,
                found,
                advice.expected,
                advice.why,
            )
