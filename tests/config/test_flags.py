"""Keys that are true or false."""

from __future__ import annotations

import pytest

from gandiva_core.config.keys import PREFIX
from gandiva_core.config.reading import Located, read_settings
from gandiva_core.config.settings import Settings
from gandiva_core.model.errors import InputError

KEY = PREFIX + "oversubscribe-without-agent"


@pytest.mark.parametrize("value", ["true", "false", " True "])
def test_a_flag_is_true_or_false(value: str) -> None:
    assert read_settings({KEY: Located(value, "yarn-site.xml:7")}) == Settings()


@pytest.mark.parametrize("value", ["", "yes", "1", "truee"])
def test_anything_else_is_refused_with_what_is_expected(value: str) -> None:
    with pytest.raises(InputError, match=r"yarn-site\.xml:7.*true or false, default false"):
        read_settings({KEY: Located(value, "yarn-site.xml:7")})
