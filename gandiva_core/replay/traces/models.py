"""The model table (C-9): what the models of the experiments do on a device.

The numbers are in ``data/models.csv``; its column `own_choice` names the groups that SPEC does not give, which are ours
[D]. A model of GE-14 has the same rate on both GPU types, because no ratio was published.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.resources import files

from gandiva_core.model.errors import InputError
from gandiva_core.model.placement import LocalityLevel
from gandiva_core.model.profile import ModelProfile
from gandiva_core.model.units import AcceleratorType
from gandiva_core.replay.traces.records import TraceJob

ANY_TYPE = AcceleratorType("")

UNKNOWN_MODEL = ModelProfile(
    name="",
    rate_per_s={ANY_TYPE: 1.0},
    utilisation_ratio=0.52,
    memory_peak_mib=4096.0,
    memory_min_mib=512.0,
    checkpoint_mib=256.0,
    source="[D] C-3: factors 1, 1 step/s on every type; utilisation the production mean of GE-16; memory ours",
)
"""What a model without a row is taken for (C-3); the report states it."""

COLUMNS = (
    "model", "rate_any", "rate_p100", "rate_p40", "utilisation_ratio", "memory_peak_mib",
    "memory_min_mib", "checkpoint_mib", "same_switch", "same_socket", "diff_socket", "two_servers",
    "four_servers", "nic", "own_choice", "source",
)  # fmt: skip

TYPE_COLUMNS = {"rate_p100": AcceleratorType("P100"), "rate_p40": AcceleratorType("P40")}
LEVEL_COLUMNS = {
    "same_switch": LocalityLevel.SAME_SWITCH,
    "same_socket": LocalityLevel.SAME_SOCKET,
    "diff_socket": LocalityLevel.DIFF_SOCKET,
}
SPREAD_COLUMNS = {"two_servers": 2, "four_servers": 4}

ModelTable = Mapping[str, ModelProfile]


@cache
def builtin_models() -> ModelTable:
    """The table shipped with the package: GE-14's ten models, GE-5's eight, and ResNet-50/CIFAR-10 (GE-2)."""
    table = files("gandiva_core.replay.traces").joinpath("data/models.csv")
    return read_models(table.read_text(encoding="utf-8").splitlines(), "models.csv")


def read_models(lines: Iterable[str], place: str) -> ModelTable:
    """Read a model table.

    Args:
        lines: a CSV with exactly the columns `COLUMNS`; a blank rate of one type means `rate_any`.
        place: the file's name, for errors.

    Raises:
        InputError: naming line and column.
    """
    rows = csv.DictReader(lines, restkey="beyond", restval="")
    if tuple(rows.fieldnames or ()) != COLUMNS:
        raise InputError(
            f"{place}:1", f"columns {', '.join(rows.fieldnames or ())}", ", ".join(COLUMNS)
        )
    table: dict[str, ModelProfile] = {}
    for row in rows:
        where = f"{place}:{rows.line_num}"
        if "beyond" in row:
            raise InputError(where, f"more than {len(COLUMNS)} columns", f"{len(COLUMNS)} columns")
        profile = profile_of_row(row, where)
        if profile.name in table:
            raise InputError(where, f"a second row for {profile.name}", "one row a model")
        table[profile.name] = profile
    return table


def profile_of_row(row: Mapping[str, str], where: str) -> ModelProfile:
    """One row of the table.

    Raises:
        InputError: naming the column.
    """

    def above_zero(column: str) -> float:
        return number(row[column], f"{where}: {column}", lambda value: value > 0, "above 0")

    def share(column: str) -> float:
        return number(row[column], f"{where}: {column}", lambda value: 0 < value <= 1, "in (0, 1]")

    if not row["model"]:
        raise InputError(f"{where}: model", "nothing", "a name")
    rates = {ANY_TYPE: above_zero("rate_any")}
    rates |= {kind: above_zero(column) for column, kind in TYPE_COLUMNS.items() if row[column]}
    own = f"; [D] {row['own_choice']}" if row["own_choice"] else ""
    return ModelProfile(
        name=row["model"],
        rate_per_s=rates,
        utilisation_ratio=share("utilisation_ratio"),
        memory_peak_mib=above_zero("memory_peak_mib"),
        memory_min_mib=above_zero("memory_min_mib"),
        checkpoint_mib=above_zero("checkpoint_mib"),
        locality_factor={level: share(column) for column, level in LEVEL_COLUMNS.items()},
        spread_factor={1: 1.0} | {count: share(column) for column, count in SPREAD_COLUMNS.items()},
        nic_factor=tuple(
            number(text, f"{where}: nic", lambda value: 0 < value <= 1, "numbers in (0, 1], by /")
            for text in row["nic"].split("/")
        ),
        source=row["source"] + own,
    )


def number(text: str, place: str, fits: Callable[[float], bool], expected: str) -> float:
    """A finite number that `fits`.

    Raises:
        InputError: naming `place`.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or not fits(value):
        raise InputError(place, repr(text), f"a number {expected}")
    return value


def profile_of(job: TraceJob, table: ModelTable | None = None) -> ModelProfile:
    """How one job behaves: its model's row, at the rate that its own trace states.

    A trace that says how long a job ran (`ref_duration_s`) decides the rate, total_steps / ref_duration_s on the
    reference type; the table then gives only the ratio between GPU types and the factors. Rates between types of a
    model without a row are equal (C-3).

    Args:
        job: of any trace.
        table: other than the built-in one.
    """
    models = builtin_models() if table is None else table
    row = models.get(job.model, UNKNOWN_MODEL)
    if job.ref_duration_s is None:
        return row
    scale = job.total_steps / job.ref_duration_s / row.rate_per_s[ANY_TYPE]
    if abs(scale - 1.0) < 1e-12:
        return row
    return ModelProfile(
        name=job.model,
        rate_per_s={kind: rate * scale for kind, rate in row.rate_per_s.items()},
        utilisation_ratio=row.utilisation_ratio,
        memory_peak_mib=row.memory_peak_mib,
        memory_min_mib=row.memory_min_mib,
        checkpoint_mib=row.checkpoint_mib,
        locality_factor=row.locality_factor,
        spread_factor=row.spread_factor,
        nic_factor=row.nic_factor,
        source=row.source,
    )
