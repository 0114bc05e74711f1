"""Charts of a report: each once as SVG whose colours are CSS variables (light and dark), once as PNG."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import msgspec
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

from gandiva_core.replay.series import Series

WIDTH_IN, HEIGHT_IN = 6.4, 3.3
DAY_S, HOUR_S = 86_400.0, 3_600.0


class Palette(msgspec.Struct, frozen=True):
    """Colours of one rendering; series in order of the arms, the baseline first."""

    ink: str
    muted: str
    grid: str
    series: tuple[str, ...]
    background: str


LIGHT = Palette(
    ink="#1c2430",
    muted="#5b6675",
    grid="#e3e7ec",
    series=("#6b7480", "#0b62c4", "#c2410c", "#15803d", "#7e22ce", "#be185d"),
    background="#ffffff",
)
MARKS = Palette(
    ink="#0a0b01",
    muted="#0a0b02",
    grid="#0a0b03",
    series=("#0a0b10", "#0a0b11", "#0a0b12", "#0a0b13", "#0a0b14", "#0a0b15"),
    background="none",
)
"""Stand-ins that no figure uses otherwise; `themed` puts CSS variables in their place."""

VARIABLES: Mapping[str, str] = {
    MARKS.ink: "var(--ink)",
    MARKS.muted: "var(--muted)",
    MARKS.grid: "var(--grid)",
    **{mark: f"var(--series-{index})" for index, mark in enumerate(MARKS.series)},
}

SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "gandiva",
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.parse_math": False,
}

METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)

LINES = ("--", "-", "-", "-.", ":", (0, (5, 1)))
"""Dashes beside colours, so that arms can be told apart without colour."""


class Line(msgspec.Struct, frozen=True):
    """One arm in a chart: points in the chart's own units."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]


class Chart(msgspec.Struct, frozen=True):
    """A chart before it is drawn.

    Attributes:
        name: file name without suffix.
        alt: what it shows, in words, for those who cannot see it.
        is_log: logarithmic x.
        is_step: values hold until the next; otherwise points are joined.
        top: upper end of y; None leaves it to the data.
        whole: y is a count.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    alt: str
    is_log: bool = False
    is_step: bool = False
    top: float | None = None
    whole: bool = False


def cdf(label: str, values: Sequence[float], floor: float) -> Line:
    """Share of values at or below x; values below `floor` stand at the left edge of the logarithmic axis."""
    ordered = sorted(max(value, floor) for value in values)
    count = len(ordered)
    if not count:
        return Line(label, (), ())
    x = (ordered[0], *ordered)
    y = (0.0, *((index + 1) / count for index in range(count)))
    if count > 1500:
        step = math.ceil(count / 1500)
        x, y = (*x[:-1:step], x[-1]), (*y[:-1:step], y[-1])
    return Line(label, x, y)


def over_time(label: str, series: Series, unit_s: float, origin_s: float = 0.0) -> Line:
    """A series by time from `origin_s` in units of `unit_s`, from its start to its end."""
    first = min(int(origin_s / series.bin_s), max(0, len(series.values) - 1))
    values = series.values[first:]
    if not values:
        return Line(label, (), ())
    x = tuple(((first + i) * series.bin_s - origin_s) / unit_s for i in range(len(values) + 1))
    return Line(label, x, (*values, *values[-1:]))


def time_unit(span_s: float) -> tuple[float, str]:
    """A unit in which a span reads well, in seconds, and its name."""
    if span_s >= 2 * DAY_S:
        return DAY_S, "days"
    if span_s >= 2 * HOUR_S:
        return HOUR_S, "hours"
    return 60.0, "minutes"


def draw(chart: Chart, palette: Palette) -> Figure:
    """The chart as a figure; call inside `mpl.rc_context(SETTINGS)`."""
    figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN))
    figure.subplots_adjust(left=0.095, right=0.985, top=0.90, bottom=0.15)
    figure.patch.set_facecolor(palette.background)
    axes = figure.add_subplot()
    axes.set_facecolor("none")
    for index, line in enumerate(chart.lines):
        axes.plot(
            line.x,
            line.y,
            label=line.label,
            color=palette.series[index % len(palette.series)],
            linestyle=LINES[index % len(LINES)],
            linewidth=1.6,
            drawstyle="steps-post" if chart.is_step else "default",
        )
    _scales(axes, chart)
    _colours(axes, palette)
    axes.set_title(chart.title, loc="left", color=palette.ink, fontsize=10, fontweight="bold")
    axes.set_xlabel(chart.x_label, color=palette.muted)
    axes.set_ylabel(chart.y_label, color=palette.muted)
    if 0 < len(chart.lines) <= 3:
        place: Any = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": 3}
        axes.legend(frameon=False, labelcolor=palette.ink, borderaxespad=0.0, **place)
    elif chart.lines:
        axes.legend(frameon=False, labelcolor=palette.ink, loc="best", fontsize=7.5)
    return figure


def _scales(axes: Axes, chart: Chart) -> None:
    axes.margins(x=0.01)
    axes.set_ylim(bottom=0.0, top=chart.top)
    if chart.is_log and any(line.x for line in chart.lines):
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(base=10))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _position: f"{value:g}"))
    if chart.whole:
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))


def _colours(axes: Axes, palette: Palette) -> None:
    axes.grid(visible=True, color=palette.grid, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", colors=palette.muted, labelcolor=palette.muted, length=3)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(palette.muted)


def svg(chart: Chart) -> str:
    """The chart as an inline SVG element, its colours CSS variables; the same chart gives the same text."""
    with mpl.rc_context(SETTINGS):
        figure = draw(chart, MARKS)
        FigureCanvasSVG(figure)
        text = io.StringIO()
        figure.savefig(
            text, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    return themed(text.getvalue(), chart)


def themed(text: str, chart: Chart) -> str:
    """An SVG document as an element for HTML: no prologue, colours by variable, size by its container."""
    element = text[text.index("<svg") :]
    element = METADATA.sub("", element)
    for mark, variable in VARIABLES.items():
        element = element.replace(mark, variable)
    end = element.index(">")
    box = f"0 0 {WIDTH_IN * 72:g} {HEIGHT_IN * 72:g}"
    head = f'<svg role="img" aria-label="{escaped(chart.alt)}" viewBox="{box}" '
    head += 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    body = element[end:]
    return prefixed(head + body, chart.name)


def prefixed(element: str, name: str) -> str:
    """Ids made unique to the chart: several share one page."""
    for attribute in ('id="', 'xlink:href="#', "url(#"):
        element = element.replace(attribute, f"{attribute}{name}-")
    return element


def escaped(text: str) -> str:
    """Text for an attribute in double quotes."""
    for char, entity in (("&", "&amp;"), ('"', "&quot;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(char, entity)
    return text


def png(chart: Chart, path: Path) -> None:
    """The chart as a file, on white."""
    with mpl.rc_context(SETTINGS):
        figure = draw(chart, LIGHT)
        FigureCanvasAgg(figure)
        figure.savefig(path, format="png", dpi=150, metadata={"Software": None})
