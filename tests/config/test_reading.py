"""Settings from text: units, precedence, and errors that name place, key, found and expected."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gandiva_core.config.keys import BY_NAME, KEYS, PREFIX, Reader
from gandiva_core.config.reading import (
    Located,
    environment_source,
    problems,
    read_settings,
    unread_environment,
)
from gandiva_core.config.settings import Settings
from gandiva_core.model.errors import InputError


def located(short_name: str, value: str, place: str = "yarn-site.xml:7") -> dict[str, Located]:
    return {PREFIX + short_name: Located(value, place)}


def test_nothing_said_means_the_defaults() -> None:
    assert read_settings() == Settings()


def test_defaults_are_the_papers_and_the_designs() -> None:
    """G-30, G-21, DESIGN §6."""
    settings = Settings()
    assert (settings.quantum_s, settings.height_max) == (60.0, 4)
    assert (settings.starving_after_quanta, settings.gang_wait_s) == (10.0, 300.0)


def test_the_catalogue_and_the_settings_agree_on_every_default() -> None:
    written = {key.name: Located(key.default, "catalogue") for key in KEYS if key.field}
    assert read_settings(written) == Settings()


def test_every_setting_has_exactly_one_key() -> None:
    assert sorted(key.field for key in KEYS if key.field) == sorted(Settings.model_fields)
    assert len(BY_NAME) == len(KEYS)


def test_milliseconds_become_seconds() -> None:
    assert read_settings(located("quantum-ms", " 1500 ")).quantum_s == 1.5


def test_a_later_source_wins() -> None:
    xml = located("height.max", "2")
    environment = environment_source({"GANDIVA_HEIGHT_MAX": "3", "PATH": "/bin"})
    flags = located("height.max", "1", "--height-max")
    assert read_settings(xml, environment).height_max == 3
    assert read_settings(xml, environment, flags).height_max == 1


def test_other_peoples_keys_are_ignored() -> None:
    assert read_settings({"yarn.resourcemanager.hostname": Located("rm", "x")}) == Settings()


@pytest.mark.parametrize(
    ("short_name", "value", "expected"),
    [
        ("quantum-ms", "60s", "whole number of milliseconds"),
        ("quantum-ms", "", "whole number of milliseconds"),
        ("quantum-ms", "0", "greater than 0"),
        ("height.max", "2.5", "whole number"),
        ("height.max", "0", "greater than or equal to 1"),
        ("height.max", "65", "less than or equal to 64"),
        ("starving-after-quanta", "nan", "number of quanta"),
        ("starving-after-quanta", "1e999", "number of quanta"),
        ("gang.wait-ms", "-1", "greater than or equal to 0"),
        ("bridge.port", "http", "whole number"),
    ],
)
def test_a_bad_value_names_place_key_found_and_expected(
    short_name: str, value: str, expected: str
) -> None:
    with pytest.raises(InputError) as caught:
        read_settings(located(short_name, value))
    message = str(caught.value)
    assert message.startswith(f"yarn-site.xml:7: {PREFIX}{short_name}")
    assert repr(value) in message
    assert expected in message
    assert "\n" not in message


def test_an_unknown_key_of_ours_is_an_error_with_the_likely_name() -> None:
    with pytest.raises(InputError, match=r"yarn\.scheduler\.gandiva\.quantum-ms\?"):
        read_settings(located("quantum-mss", "1"))
    with pytest.raises(InputError, match="one of"):
        read_settings(located("xxxxxxxxxxxxxxxx", "blue"))


def test_all_problems_are_told_in_the_order_of_the_names() -> None:
    bad = located("quantum-ms", "x") | located("height.max", "y") | located("gang.wait-ms", "1")
    assert [problem.place.rpartition(".")[2] for problem in problems(bad)] == ["max", "quantum-ms"]


def test_the_plug_ins_keys_are_known_and_set_nothing_here() -> None:
    assert read_settings(located("bridge.port", "4711")) == Settings()


def test_the_plug_ins_own_constants_are_the_catalogues(repo_root: Path) -> None:
    """Every key in Java is in the catalogue, with the same default where it is a constant, and read by the plug-in."""
    folder = repo_root / "yarn_plugin" / "src" / "main" / "java" / "org" / "gandiva" / "yarn"
    text = (folder / "GandivaConfiguration.java").read_text()
    names = dict(re.findall(r"String (\w+) = PREFIX \+ \"([^\"]+)\";", text))
    found = re.findall(r"(?:int|String) (\w+)_DEFAULT = \"?([\w]+)\"?;", text)
    defaults = {PREFIX + names[key]: value.replace("_", "") for key, value in found}
    ours = {key.name: key.default for key in KEYS if key.reader in (Reader.PLUGIN, Reader.BOTH)}
    assert {PREFIX + name for name in names.values()} == set(ours)
    assert defaults == {name: ours[name] for name in defaults}
    assert len(defaults) >= 7


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        Settings().height_max = 2  # type: ignore[misc]


@given(st.dictionaries(st.sampled_from(sorted(BY_NAME)), st.text(max_size=8)))
def test_any_text_gives_settings_or_one_clear_error(values: dict[str, str]) -> None:
    source = {name: Located(value, "f.xml:1") for name, value in values.items()}
    told = list(problems(source))
    if told:
        assert all(problem.place.startswith("f.xml:1") for problem in told)
    else:
        assert read_settings(source).height_max >= 1


def test_an_environment_variable_that_nobody_reads_is_named_with_the_likely_one() -> None:
    environment = {
        "GANDIVA_QUANTUM_MS": "1",
        "GANDIVA_QANTUM_MS": "2",
        "GANDIVA_FAVOURITE_COLOUR": "red",
        "GANDIVA_DEBUG": "1",
        "PATH": "/bin",
    }
    assert unread_environment(environment) == [
        "GANDIVA_FAVOURITE_COLOUR",
        "GANDIVA_QANTUM_MS (GANDIVA_QUANTUM_MS?)",
    ]
