"""The report in a real browser: it draws, in light and in dark."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from gandiva_core.replay.details import RunDetails
from gandiva_core.replay.report import write_report
from gandiva_core.replay.summary import summarise

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DARK = "--blink-settings=preferredColorScheme=0"


def browser() -> str:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)}")
    return found


def commonest_colour(page: Path, *options: str) -> tuple[int, int, int]:
    image = pytest.importorskip("PIL.Image", reason="Pillow reads the picture")
    picture = page.with_suffix(".shot.png")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *options]
    subprocess.run(
        [browser(), *flags, "--window-size=1000,1400", f"--screenshot={picture}", page.as_uri()],
        check=True,
        capture_output=True,
        timeout=120,
    )
    with image.open(picture) as opened:
        pixels = opened.convert("RGB").tobytes()
    colours = Counter(zip(pixels[::3], pixels[1::3], pixels[2::3], strict=True))
    assert len(colours) > 50, "text and charts have many shades"
    red, green, blue = colours.most_common(1)[0][0]
    return red, green, blue


@pytest.mark.browser
def test_paper_is_white_by_day_and_dark_by_night(
    make_run: Callable[..., RunDetails], tmp_path: Path
) -> None:
    runs = [make_run("capacity", {"a": 9000.0}), make_run("gandiva", {"a": 6000.0})]
    page = write_report(summarise(runs), runs, tmp_path)
    assert commonest_colour(page) == (255, 255, 255)
    assert max(commonest_colour(page, DARK)) < 60
