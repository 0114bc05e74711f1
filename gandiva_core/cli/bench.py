"""`gandiva bench`: how fast the core, the bridge and the replay are on this machine."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gandiva_core.cli.outputs import check_file
from gandiva_core.model.errors import InputError

if TYPE_CHECKING:
    from gandiva_core.cli.benchmarks.results import Measurement

GROUP = "gandiva.benchmarks"
ALL = "all"


def bench(
    name: Annotated[str, typer.Argument(help="core, bridge, replay, or all of them.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write NAME.json into this folder.")] = None,
    document: Annotated[Path | None, typer.Option(help="Write a Markdown page.")] = None,
    quick: Annotated[bool, typer.Option(help="Seconds only; the figures mean nothing.")] = False,
) -> None:
    """Measure decisions, the bridge to the ResourceManager, and whole replays."""
    from gandiva_core.cli.benchmarks import results
    from gandiva_core.replay.preparation import check_out

    if quick and document is not None:
        raise typer.BadParameter("--quick figures mean nothing and make no --document")
    chosen = _chosen(name)
    if out is not None:
        check_out(out)
    if document is not None:
        check_file(document, f"--document {document}")
    measured = [
        results.measure(entry.name, entry.load(), is_quick=quick, say=_say) for entry in chosen
    ]
    if out is not None:
        _write(measured, out)
    if document is not None:
        document.write_text(results.document(measured), encoding="utf-8")
    texts = [_as_json(measured)] if as_json else [results.table(each) for each in measured]
    typer.echo("\n\n".join(texts))


def _chosen(name: str) -> list[EntryPoint]:
    """Benchmarks by name.

    Raises:
        InputError: there is none of that name.
    """
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name != ALL and name not in found:
        raise InputError("gandiva bench", repr(name), f"one of {', '.join([*sorted(found), ALL])}")
    return [found[each] for each in (sorted(found) if name == ALL else [name])]


def _write(measured: list[Measurement], folder: Path) -> None:
    for each in measured:
        (folder / f"{each.benchmark}.json").write_text(_as_json(each) + "\n", encoding="utf-8")


def _as_json(value: object) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value)).decode()


def _say(text: str) -> None:
    typer.echo(text, err=True)
