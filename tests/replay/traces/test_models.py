"""The model table (C-9, GE-2, GE-5, GE-12, GE-14, G-70 to G-73)."""

from __future__ import annotations

import pytest

from gandiva_core.model.errors import InputError
from gandiva_core.model.placement import LocalityLevel
from gandiva_core.model.units import AcceleratorType
from gandiva_core.replay.traces.models import (
    COLUMNS,
    UNKNOWN_MODEL,
    builtin_models,
    profile_of,
    read_models,
)
from gandiva_core.replay.traces.nine_days import MODEL_SHARES
from gandiva_core.replay.traces.packing_mix import PackingMix
from gandiva_core.replay.traces.records import TraceJob

P40, P100 = AcceleratorType("P40"), AcceleratorType("P100")
GOOD = "M,2,,3,0.5,100,10,5,1,0.9,0.8,0.7,0.4,1/0.8,rate,GE-0"


def job(model: str, steps: int = 100, ref_duration_s: float | None = None) -> TraceJob:
    return TraceJob("j", 0.0, 1, steps, model=model, ref_duration_s=ref_duration_s)


def test_every_model_of_the_experiments_has_a_row() -> None:
    models = builtin_models()
    assert set(MODEL_SHARES) <= set(models)
    assert {name for _, names in PackingMix().classes for name in names} <= set(models)
    assert len(models) == 19


def test_published_rates_utilisation_and_checkpoints() -> None:
    models = builtin_models()
    assert models["VAE"].rate(P40) == 81.8  # GE-5
    assert models["VAE"].utilisation_ratio == 0.087
    assert models["ResNet-50/CIFAR-10"].rate(P100) == 9.2  # GE-2
    assert models["DeepSpeech"].checkpoint_mib == 1405  # G-73
    assert models["VGG16"].locality_factor[LocalityLevel.DIFF_SOCKET] == 0.6  # G-70
    assert models["ResNet-50"].spread_factor == {1: 1.0, 2: 0.72, 4: 0.42}  # G-71
    assert models["InceptionV3"].nic_factor[3] == 0.7  # G-72


def test_ge14_models_are_as_fast_on_both_types() -> None:
    for name in MODEL_SHARES:
        profile = builtin_models()[name]
        assert profile.rate(P100) == profile.rate(P40)


def test_mean_utilisation_of_the_mix_is_the_production_mean() -> None:
    """GE-16: about 52 %; the single figures are ours [D]."""
    mean = sum(share * builtin_models()[n].utilisation_ratio for n, share in MODEL_SHARES.items())
    assert mean == pytest.approx(0.52, abs=0.01)


def test_own_choices_are_said() -> None:
    """No ratio between the types was published, so every row has at least one figure of ours."""
    for name, profile in builtin_models().items():
        assert "[D] rate" in profile.source, name
    assert "checkpoint" not in builtin_models()["GNMT"].source.partition("[D]")[2]  # G-73


def test_unknown_model_runs_one_step_a_second_everywhere() -> None:
    """C-3."""
    assert profile_of(job("nobody's")) is UNKNOWN_MODEL
    assert UNKNOWN_MODEL.rate(P100) == UNKNOWN_MODEL.rate(P40) == 1.0


def test_a_trace_that_says_how_long_decides_the_rate() -> None:
    profile = profile_of(job("VAE", steps=100, ref_duration_s=50.0))
    assert profile.rate(AcceleratorType("")) == pytest.approx(2.0)
    assert profile.checkpoint_mib == builtin_models()["VAE"].checkpoint_mib
    assert profile_of(job("other", steps=100, ref_duration_s=50.0)).rate(P40) == pytest.approx(2.0)


def test_ratio_between_types_survives_a_stated_duration() -> None:
    table = read_models([",".join(COLUMNS), GOOD], "m.csv")
    profile = profile_of(job("M", steps=100, ref_duration_s=100.0), table)
    assert profile.rate(P40) / profile.rate(P100) == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("row", "place"),
    [
        (GOOD.replace("M,2,", "M,-2,"), "m.csv:2: rate_any"),
        (GOOD.replace("M,2,", "M,nan,"), "m.csv:2: rate_any"),
        (GOOD.replace(",0.5,", ",1.5,"), "m.csv:2: utilisation_ratio"),
        (GOOD.replace("1/0.8", "1/0"), "m.csv:2: nic"),
        (GOOD.replace("M,", ",", 1), "m.csv:2: model"),
        (GOOD + ",extra", "m.csv:2"),
        (GOOD + "\n" + GOOD, "m.csv:3"),
    ],
)
def test_a_bad_row_names_its_place(row: str, place: str) -> None:
    with pytest.raises(InputError) as raised:
        read_models([",".join(COLUMNS), *row.splitlines()], "m.csv")
    assert raised.value.place == place


def test_a_wrong_header_is_refused() -> None:
    with pytest.raises(InputError, match=r"m\.csv:1"):
        read_models(["model,rate", "a,1"], "m.csv")
