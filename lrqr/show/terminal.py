"""What a person sees: plain text when piped, tables and progress on a terminal, data apart from messages."""

from __future__ import annotations

import io
import os
import shutil
import sys
import textwrap
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any, TextIO

from lrqr.show.words import LEVEL_OF, cell, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_PLAIN_WIDTH = 200
_TINTS = {"good": 32, "fair": 33, "bad": 31}  # green, yellow, red
_GAP = 3  # between two columns of a table
_LINE = "─"
_EVERY = 10.0  # seconds between two lines of progress
_NARROWEST = 20  # columns for a text beside its label


def say(message: str) -> None:
    """Print a message to stderr, lines that are too long for a terminal broken between words."""
    lines = [
        wrapped(line.lstrip(), first=line[: len(line) - len(line.lstrip())], rest="  ", stream=sys.stderr)
        for line in message.split("\n")
    ]
    sys.stderr.write("\n".join(lines) + "\n")


def warn(message: object) -> None:
    """Print a warning to stderr."""
    say(f"Warning: {message}")


def tinted(text: str) -> str:
    """Color the verdict that a text begins with, on a terminal that has colors."""
    verdict = next((word for word in LEVEL_OF if text.startswith(word)), "")
    if not verdict or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{_TINTS[LEVEL_OF[verdict]]}m{verdict}\x1b[0m{text[len(verdict) :]}"


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, title: str | None = None) -> str:
    """Lay out a table; on a terminal as wide as that, otherwise plain text as wide as it needs."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    on_terminal = sys.stdout.isatty()
    laid_out = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold cyan")
    texts = [[cell(value) for value in row] for row in rows]
    for index, name in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[index], int | float | None) for row in rows)
        # names and numbers stay whole; the other columns share the room that is left
        whole = bool(numeric or index == 0)
        laid_out.add_column(name, justify="right" if numeric else "left", overflow="fold", no_wrap=whole)
    for row in texts:
        laid_out.add_row(*(Text.from_ansi(tinted(text)) for text in row))
    buffer = io.StringIO()
    width = None if on_terminal else _PLAIN_WIDTH
    console = Console(file=buffer, width=width, force_terminal=on_terminal, highlight=False, markup=False)
    console.print(laid_out)
    drawn = buffer.getvalue() if _has_lines(sys.stdout) else buffer.getvalue().replace(_LINE, "-")
    lines = [line.rstrip() for line in drawn.rstrip().splitlines()]
    return "\n".join(([visible(title)] if title else []) + [line for line in lines if line])


def _has_lines(stream: TextIO) -> bool:
    """Whether the encoding of a stream has the lines of tables."""
    try:
        _LINE.encode(getattr(stream, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def fitting(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], spare: Sequence[str]
) -> tuple[tuple[str, ...], list[list[Any]], tuple[str, ...]]:
    """Leave out columns of a table that is wider than the terminal; piped text may be as wide as it needs.

    Parameters
    ----------
    columns : sequence of str
    rows : sequence of sequences
    spare : sequence of str
        Columns that may go, the first one first.

    Returns
    -------
    columns, rows, left out
    """
    kept = list(columns)
    if sys.stdout.isatty():
        room = shutil.get_terminal_size().columns
        for name in spare:
            shown = [columns.index(column) for column in kept]
            widths = [max(len(columns[k]), *(len(cell(row[k])) for row in rows), 0) for k in shown]
            if sum(widths) + _GAP * len(widths) <= room:
                break
            kept.remove(name)
    shown = [columns.index(column) for column in kept]
    lost = tuple(name for name in columns if name not in kept)
    return tuple(kept), [[row[k] for k in shown] for row in rows], lost


def wrapped(text: str, *, first: str = "", rest: str = "", stream: TextIO | None = None) -> str:
    """Break a line between words where the terminal ends; plain text stays one line.

    Parameters
    ----------
    text : str
    first, rest : str
        What the first line and all others begin with.
    stream : file, optional
        Where it will be printed; stdout if not given.
    """
    if not (stream or sys.stdout).isatty():
        return (first + text).rstrip()
    width = max(shutil.get_terminal_size().columns, len(rest) + _NARROWEST)
    return (
        "\n".join(
            textwrap.wrap(
                text,
                width,
                initial_indent=first,
                subsequent_indent=rest,
                break_long_words=False,
                break_on_hyphens=False,
            )
        )
        or first.rstrip()
    )


@contextmanager
def progress(*, quiet: bool, verbose: bool = False) -> Iterator[Callable[[str], None]]:
    """Give a function that shows what is being done, on stderr: live on a terminal, else as lines.

    Without a terminal a line comes where the last one is ten seconds old: short jobs show none.
    """
    if verbose:
        yield say
        return
    if quiet or not sys.stderr.isatty():
        yield (lambda _: None) if quiet else _now_and_then()
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("starting")
        yield lambda step: shown.update(task, description=step)


def _now_and_then() -> Callable[[str], None]:
    begun = last = monotonic()

    def show(step: str) -> None:
        nonlocal last
        now = monotonic()
        if now - last >= _EVERY:
            last = now
            say(f"after {now - begun:.0f} s: {step}")

    return show
