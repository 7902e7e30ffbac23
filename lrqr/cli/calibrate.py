"""``lrqr fit`` and ``lrqr predict``, and both with ``lrqr evaluate`` in ``lrqr demo``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from lrqr.cli import options
from lrqr.cli.group import cli
from lrqr.cli.output import emit, progress_of
from lrqr.data.roles import Roles
from lrqr.errors import UsageError
from lrqr.show.terminal import say, wrapped

_FIT_FLAGS = (
    "score",
    "side",
    "base",
    "on_missing",
    "seed",
    "method",
    "feature_map",
    "regularization",
    "ridge",
    "selection",
    "strict",
    "at_least",
    "guarantee",
    "abstain",
)


@cli.command()
@click.option(
    "-o", "--output", type=options.PATH, default=Path("lrqr-demo"), show_default=True, help="Folder to make."
)
@options.seed
@options.force
@click.pass_context
def demo(ctx: click.Context, /, output: Path, **flags: Any) -> None:
    """Show the whole job on data that come with lrqr.

    It fits, predicts and evaluates in seconds, shows each command that it runs, and ends with what was won.
    """
    from lrqr.commands import demo as workflow
    from lrqr.show.text import won

    commands = workflow.commands(output, **flags)
    if not ctx.obj["quiet"]:
        say(f"{workflow.STORY}\nWrote source.csv, target.csv and test.csv to {output}")
    for name, *arguments in commands:
        if not ctx.obj["quiet"]:
            say(f"\n$ {shlex.join(['lrqr', name, *arguments])}")
        command = cli.commands[name]
        with command.make_context(name, arguments, parent=ctx.parent) as inner:
            results = command.invoke(inner)
    click.echo("\n" + wrapped(won(results)))


@cli.command()
@click.argument("source", type=options.EXISTING)
@click.argument("target", type=options.EXISTING)
@click.option("-o", "--output", type=options.PATH, required=True, help="Model directory to make.")
@options.config
@options.level
@options.method
@options.score
@options.side
@options.columns
@options.features
@options.feature_map
@options.identifier
@click.option("--unlabeled-source", type=options.EXISTING, help="Further source rows, without outcomes.")
@click.option(
    "--labeled-target",
    type=options.EXISTING,
    help="20 or more labeled target rows: they test whether only the features shifted, and correct the fit.",
)
@options.tuning
@options.guarantee
@options.at_least
@options.abstain
@options.on_missing
@options.seed
@options.strict
@options.place
@options.as_json
@options.force
@click.pass_context
def fit(ctx: click.Context, /, source: Path, target: Path, output: Path, **flags: Any) -> None:
    """Calibrate on labeled SOURCE and unlabeled TARGET rows.

    \b
    Files are text tables (.csv, .tsv, .txt, also .gz), Parquet (a file or a directory of parts), Feather,
    JSON lines, Excel (.xlsx) or NPZ; - is stdin.

    \b
    Example:
      lrqr fit source.csv target.csv --outcome y --prediction yhat -o model
    """  # noqa: D301 - click's mark for text that is not to be wrapped
    from lrqr.commands.fit import FitOptions
    from lrqr.commands.fit import fit as run
    from lrqr.commands.inspect import describe

    chosen = FitOptions(
        roles=Roles.of_options(flags),
        coverage=options.resolve_level(ctx, flags["coverage"], flags["alpha"]),
        **{name: flags[name] for name in _FIT_FLAGS},
    )
    with progress_of(ctx) as step:
        model = run(
            source,
            target,
            output,
            chosen,
            unlabeled_source=flags["unlabeled_source"],
            labeled_target=flags["labeled_target"],
            place=options.take_place(flags),
            force=flags["force"],
            step=step,
        )
    found = describe(model)
    if flags["as_json"]:
        emit(found, "json")
    if not ctx.obj["quiet"]:
        from lrqr.show.text import fit_summary

        say(fit_summary(found, output, verbose=ctx.obj["verbose"]))


@cli.command()
@click.argument("model", type=options.PATH)
@click.argument("source", metavar="INPUT", type=options.EXISTING)
@click.option(
    "-o",
    "--output",
    type=options.PATH,
    required=True,
    help="File to write: .csv, .parquet or .npz; - is stdout.",
)
@options.config
@options.identifier
@options.keep
@options.marks
@options.infinite
@options.place
@options.as_json
@options.force
@click.pass_context
def predict(ctx: click.Context, /, model: Path, source: Path, output: Path, **flags: Any) -> None:
    """Write an interval or a set for every row of INPUT, in order.

    \b
    Regression: the identifier (or the row number from 0), threshold, lower, upper, outside_support.
    Classification: threshold, in_<class> for every class, size, outside_support.
    Columns of --keep stand behind the identifier.

    \b
    Example:
      lrqr predict model new.csv -o intervals.csv
    """  # noqa: D301 - click's mark for text that is not to be wrapped
    from lrqr.commands.predict import predict as run

    place, as_json = options.take_place(flags), flags.pop("as_json")
    if as_json and str(output) == "-":
        raise UsageError("--json and -o - would both write to stdout: give the predictions a file")
    with progress_of(ctx) as step:
        count = run(model, source, output, identifier=flags.pop("id"), place=place, step=step, **flags)
    if as_json:
        emit(count, "json")
    if not ctx.obj["quiet"]:
        from lrqr.show.text import predict_summary

        say(predict_summary(count, output))
