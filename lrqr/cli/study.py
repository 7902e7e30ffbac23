"""``lrqr inspect``, ``reproduce``, ``report``, ``datasets`` and ``help``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lrqr import plugins
from lrqr.cli import options
from lrqr.cli.group import Commands, cli
from lrqr.cli.output import emit, say_written, write_report
from lrqr.data.roles import Roles
from lrqr.errors import CheckFailed


@cli.command()
@click.argument("path", metavar="MODEL|FILE", type=options.PATH)
@options.missing_values
@options.marks
@options.output_format
def inspect(path: Path, output_format: str, **reading: Any) -> None:
    """Show what a model holds, or a file as it would be read."""
    from lrqr.commands.inspect import inspect as run

    emit(run(path, Roles(**reading)), output_format)


@cli.command()
@click.argument("names", metavar="[NAME|FILE.toml]...", nargs=-1)
@click.option("--list", "listed", is_flag=True, help="List the experiments.")
@click.option("--dry-run", is_flag=True, help="Check the files and say what would be run.")
@click.option("--splits", type=int, help="Number of random splits, instead of the experiment's own.")
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes.")
@click.option("--check", is_flag=True, help="Exit 3 if a recorded expectation does not hold.")
@click.option(
    "-o", "--output", type=options.PATH, default=Path("runs"), show_default=True, help="Directory of runs."
)
@options.output_format
@click.pass_context
def reproduce(ctx: click.Context, /, names: tuple[str, ...], **flags: Any) -> None:
    """Run experiments: those of lrqr by name, your own by TOML file.

    An interrupted run resumes; the numbers do not depend on the number of jobs.
    """
    from lrqr.results import Experiments
    from lrqr.study import run as experiments

    if flags["listed"] or not names:
        emit(experiments.catalog(), flags["output_format"])
        return
    if flags["dry_run"]:
        plans = [experiments.dry_run(name, flags["splits"]) for name in names]
        emit(Experiments(experiments=plans), flags["output_format"])
        return
    failed: list[str] = []
    for name in names:
        outcome = experiments.reproduce(
            name, flags["output"], splits=flags["splits"], jobs=flags["jobs"], progress=not ctx.obj["quiet"]
        )
        emit(outcome.results, flags["output_format"])
        say_written(ctx, outcome.files)
        wrong = (check for check in outcome.results.checks if check.verdict == "fails")
        failed += [f"{name}: {check.claim} is {check.found}, not {check.expected}" for check in wrong]
    if flags["check"] and failed:
        raise CheckFailed(f"{len(failed)} expectations do not hold: {'; '.join(failed)}")


@cli.command()
@click.argument("run", type=options.EXISTING)
@click.option("-o", "--output", type=options.PATH, required=True, help="HTML file to write.")
@options.force
@click.pass_context
def report(ctx: click.Context, /, run: Path, output: Path, *, force: bool) -> None:
    """Make one HTML page of a RUN of `compare` or `reproduce`."""
    from lrqr.commands.compare import read_run

    write_report(ctx, read_run(run), output, force=force)


@cli.group(cls=Commands)
def datasets() -> None:
    """List, show, verify and split the data sets of the experiments."""


@datasets.command("list")
@options.output_format
def list_datasets(output_format: str) -> None:
    """List the data sets."""
    from lrqr.study.datasets import catalog

    emit(catalog(), output_format)


@datasets.command()
@click.argument("name")
@options.output_format
def show(name: str, output_format: str) -> None:
    """Show source, licence, files and shifts of a data set."""
    from lrqr.study.datasets import describe

    emit(describe(name), output_format)


@datasets.command()
@click.argument("name")
@click.option("--shift", help="One of its shifts. Default: the first.")
@click.option(
    "--base", default="ridge", show_default=True, help="Base learner, where there are no predictions."
)
@click.option("-o", "--output", type=options.PATH, required=True, help="Folder to write to.")
@options.seed
@options.force
@click.pass_context
def split(ctx: click.Context, /, name: str, output: Path, **flags: Any) -> None:
    """Write one random split as source.csv, target.csv and test.csv."""
    from lrqr.commands.split import write_split

    say_written(ctx, write_split(name, output, **flags))


@datasets.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@options.output_format
def verify(names: tuple[str, ...], output_format: str) -> None:
    """Compare the files of data sets with their recorded sha256; exit 3 if one differs."""
    from lrqr.results import FileStatus, Verification
    from lrqr.study import datasets as stored

    problems = {name: stored.verify(name) for name in names or plugins.names("study.datasets")}
    rows = [FileStatus(name=name, status="; ".join(found) or "ok") for name, found in problems.items()]
    emit(Verification(files=rows), output_format)
    bad = [name for name, found in problems.items() if found]
    if bad:
        raise CheckFailed(f"{len(bad)} of {len(rows)} data sets are not as recorded: {', '.join(bad)}")


@cli.command("help")
@click.argument("names", metavar="[COMMAND]...", nargs=-1)
def help_(names: tuple[str, ...]) -> None:
    """Show what --help shows, of lrqr or of a command."""
    cli.main([*names, "--help"], prog_name="lrqr", standalone_mode=False)
