"""Every policy of this project inherits the shipped suite."""

from __future__ import annotations

from typing import ClassVar

from baselines import fifo
from gandiva_core.config.settings import Settings
from gandiva_core.conformance import PolicyConformance
from gandiva_core.messages.policy import Policy, Switches
from gandiva_core.policies import gandiva


class TestGandiva(PolicyConformance):
    """All mechanisms on."""

    def create(self, settings: Settings, switches: Switches) -> Policy:
        return gandiva.create(settings, switches)


class TestGandivaWithoutSlicing(PolicyConformance):
    """Placement only: nothing is over-subscribed, and jobs run to their end."""

    switches: ClassVar[Switches] = {"slicing": False}

    def create(self, settings: Settings, switches: Switches) -> Policy:
        return gandiva.create(settings, switches)


class TestGandivaWithShortQuantum(PolicyConformance):
    """Twenty seconds, two residents a device, and starvation relief almost at once."""

    settings: ClassVar[Settings] = Settings(quantum_s=20.0, height_max=2, starving_after_quanta=1.0)

    def create(self, settings: Settings, switches: Switches) -> Policy:
        return gandiva.create(settings, switches)


class TestFifo(PolicyConformance):
    """The strict baseline."""

    def create(self, settings: Settings, switches: Switches) -> Policy:
        return fifo.create(settings, switches)
