"""What the core can be told: frozen, each setting with its unit, default and the reason for it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Settings(BaseModel):
    """The core's settings. Units are in the names; `keys.KEYS` says how each is written in XML."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    quantum_s: float = Field(60.0, gt=0)
    """Q (G-30): time between boundaries of a slicing domain. A minute keeps suspend and resume below 2 % (G-43)."""

    height_max: int = Field(4, ge=1, le=64)
    """H_max (G-21): residents per device at most. 1 never over-subscribes; each level costs host memory (G-46)."""

    starving_after_quanta: float = Field(10.0, ge=0)
    """A queue head that has waited longer is over-subscribed wherever it fits, whatever the affinity (G-21)."""

    gang_wait_s: float = Field(300.0, ge=0)
    """How long an undeclared gang is tried whole before its containers are placed singly (DESIGN §6)."""
