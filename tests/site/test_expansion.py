"""`${…}`: verdicts were taken from `Configuration` 3.4.2 on the same inputs."""

from __future__ import annotations

import pytest

from gandiva_core.model.errors import InputError
from gandiva_core.site.expansion import expand

VALUES = {"last": "2", "which": "st", "ref": "a-${last}-${missing}-${last}", "loop": "${loop}"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("${last}", "2"),
        ("a-${last}-${missing}-${last}", "a-2-${missing}-${last}"),
        ("${ref}!", "a-2-${missing}-${last}!"),
        ("${la${which}}", "2"),
        ("$HOME ${ last } ${}", "$HOME ${ last } ${}"),
        ("${env.NO:-d}/${env.NO-d2}/${env.NO}", "d/d2/${env.NO}"),
        ("${env.EMPTY:-d}/${env.EMPTY-d2}", "d/"),
        ("${env.SET:-d}/${env.SET}", "yes/yes"),
    ],
)
def test_references_are_replaced_as_hadoop_does(text: str, expected: str) -> None:
    environment = {"SET": "yes", "EMPTY": ""}
    assert expand(text, VALUES.get, environment, "f.xml:1") == expected


def test_a_circle_is_told_with_its_place() -> None:
    with pytest.raises(InputError, match=r"f\.xml:1: found '\$\{loop\}'"):
        expand("${loop}", VALUES.get, {}, "f.xml:1")
