"""Gavel's measured throughputs (V-55): a JSON of accelerator type → job key → partner → steps per second.

A job key is the text of a tuple, ``('ResNet-18 (batch size 16)', 2)``: model with batch size, and GPUs; the oldest file
has the model only. The partner ``null`` is the rate of the job alone, of all its GPUs together.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces.findings import Kind, RowFaultError
from gandiva_core.replay.traces.text import read_bytes

ALONE = "null"


class Throughputs(msgspec.Struct, frozen=True):
    """Rates of jobs alone on one accelerator type.

    Attributes:
        rates_per_s: by (job type, GPUs).
    """

    name: str
    reference_type: str
    rates_per_s: Mapping[tuple[str, int], float]

    def rate_per_s(self, job_type: str, gpus: int) -> float:
        """Steps per second of the whole job.

        Raises:
            RowFaultError: not in the table, or cannot run there.
        """
        rate = self.rates_per_s.get((job_type, gpus), 0.0)
        if rate <= 0:
            found = f"{job_type} on {gpus} GPUs has no rate for {self.reference_type}"
            raise RowFaultError(Kind.NO_THROUGHPUT, found)
        return rate


def read_throughputs(path: Path, reference_type: str) -> Throughputs:
    """The rates of one type.

    Raises:
        InputError: not JSON, the type is absent, or an entry is no rate.
    """
    place = str(path)
    try:
        content = msgspec.json.decode(read_bytes(path))
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(place, f"broken JSON ({error})", "a Gavel throughput file") from error
    if not isinstance(content, dict) or not isinstance(content.get(reference_type), dict):
        types = (
            ", ".join(map(str, content)) if isinstance(content, dict) else type(content).__name__
        )
        raise InputError(place, f"types {types}", f"an entry {reference_type}")
    rates: dict[tuple[str, int], float] = {}
    for key, partners in content[reference_type].items():
        where = f"{place}: {reference_type}: {key}"
        rates[job_key(key, where)] = rate_alone(partners, where)
    return Throughputs(path.name, reference_type, rates)


def job_key(text: str, where: str) -> tuple[str, int]:
    """(job type, GPUs) of a key."""
    if not text.startswith("("):
        return text, 1
    try:
        job_type, gpus = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise InputError(where, repr(text[:60]), "a tuple (job type, GPUs)") from error
    if not isinstance(job_type, str) or not isinstance(gpus, int):
        raise InputError(where, repr(text[:60]), "a tuple (job type, GPUs)")
    return job_type, gpus


def rate_alone(partners: Any, where: str) -> float:
    """The entry without a partner; 0 where it cannot run."""
    rate = partners.get(ALONE) if isinstance(partners, dict) else None
    if isinstance(rate, bool) or not isinstance(rate, int | float):
        raise InputError(where, repr(rate), "a rate under null, in steps/s")
    return float(rate)
