"""What several commands do after their work: results and reports out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lrqr.show.terminal import progress, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from lrqr.results import Reported, Result


def emit(result: Result, output_format: str) -> None:
    """Print a result to stdout."""
    from lrqr.show.text import render

    click.echo(render(result, output_format), nl=False)


def check_report(path: Path | None, *, force: bool) -> None:
    """Refuse to write over a file or the JSON and CSV beside it (worth asking before the work)."""
    if path is not None:
        from lrqr.show.page import check_free

        check_free(path, force=force)


def write_report(ctx: click.Context, result: Reported, path: Path | None, *, force: bool) -> None:
    """Write a report and the same numbers as JSON and CSV, if a report was asked for."""
    if path is None:
        return
    from lrqr.show.page import write

    say_written(ctx, write(result, path, force=force))


def say_written(ctx: click.Context, paths: Iterable[Path]) -> None:
    """Say which files were written."""
    if not ctx.obj["quiet"]:
        say(f"Wrote {', '.join(map(str, paths))}")


def progress_of(ctx: click.Context) -> AbstractContextManager[Callable[[str], None]]:
    """Show what is being done, as far as the global options want it."""
    return progress(quiet=ctx.obj["quiet"], verbose=ctx.obj["verbose"])
