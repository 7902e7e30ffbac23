"""``lrqr evaluate``, ``lrqr compare`` and ``lrqr diagnose``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lrqr.cli import options
from lrqr.cli.group import cli
from lrqr.cli.output import check_report, emit, progress_of, say_written, write_report
from lrqr.data.roles import Roles
from lrqr.errors import CheckFailed

if TYPE_CHECKING:
    from pathlib import Path

    from lrqr.results import Evaluation


@cli.command()
@click.argument("model", type=options.PATH)
@click.argument("labeled", type=options.EXISTING)
@options.config
@options.group
@options.marks
@options.cluster
@options.infinite
@options.on_missing_as_fit
@options.place
@click.option("--fail-under", type=options.Level(), help="Exit 3 if the coverage is below this.")
@options.report
@options.force
@options.output_format
@click.pass_context
def evaluate(ctx: click.Context, /, model: Path, labeled: Path, **flags: Any) -> Evaluation:
    """Say whether MODEL kept its promise on LABELED target rows.

    Without the outcome column: everything but the coverage, and the importance-weighted source coverage.
    """
    from lrqr.commands import evaluate as workflow

    floor, report = flags["fail_under"], flags["report"]
    check_report(report, force=flags["force"])
    with progress_of(ctx) as step:
        step("evaluating")
        same = ("group", "cluster", "infinite", "on_missing", "separator", "decimal")
        asked = {name: flags[name] for name in same}
        results = workflow.evaluate(model, labeled, place=options.take_place(flags), **asked)
    emit(results, flags["output_format"])
    write_report(ctx, results, report, force=flags["force"])
    if floor is not None:
        workflow.check_coverage_above(results, floor)
    return results


@cli.command()
@click.argument("source", type=options.EXISTING)
@click.argument("target", type=options.EXISTING)
@click.argument("test", type=options.EXISTING)
@options.config
@options.methods
@click.option("--splits", type=int, default=20, show_default=True, help="Random splits; 1 takes all rows.")
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes.")
@options.level
@options.score
@options.side
@options.columns
@options.features
@options.feature_map
@options.identifier
@options.on_missing
@options.seed
@click.option("-o", "--output", type=options.PATH, help="Directory to write the run to, for `lrqr report`.")
@options.force
@options.output_format
@click.pass_context
def compare(ctx: click.Context, /, source: Path, target: Path, test: Path, **flags: Any) -> None:
    """Judge several methods, side by side, on labeled TEST rows.

    Every split draws 80 % of the rows of each file; all methods of a split share one likelihood ratio.
    """
    from lrqr.commands import compare as workflow

    coverage = options.resolve_level(ctx, flags["coverage"], flags["alpha"])
    output, force = flags["output"], flags["force"]
    workflow.check_output(output, force=force)
    same = ("methods", "splits", "score", "side", "base", "feature_map", "seed", "jobs", "on_missing")
    runs = workflow.compare(
        source,
        target,
        test,
        coverage=coverage,
        progress=not ctx.obj["quiet"],
        roles=Roles.of_options(flags),
        **{name: flags[name] for name in same},
    )
    results = workflow.results_of(runs, source.name, coverage=coverage, seed=flags["seed"])
    emit(results, flags["output_format"])
    if output is not None:
        paths = workflow.write_run(runs, results, output, force=force)
        say_written(ctx, paths)


@cli.command()
@click.argument("source", type=options.EXISTING)
@click.argument("target", type=options.EXISTING)
@options.config
@click.option("--model", type=options.PATH, help="Use the features and the coverage of this model.")
@options.level
@options.columns
@options.features
@options.identifier
@options.on_missing_as_fit
@options.seed
@click.option("--strict", is_flag=True, help="Exit 3 if there is no overlap.")
@options.report
@options.force
@options.output_format
@click.pass_context
def diagnose(ctx: click.Context, /, source: Path, target: Path, **flags: Any) -> None:
    """Say how far SOURCE and TARGET are apart, what may be promised."""
    from lrqr.commands.diagnose import diagnose as run

    asked = flags["coverage"] is not None or flags["alpha"] is not None
    level = options.resolve_level(ctx, flags["coverage"], flags["alpha"]) if asked else None
    check_report(flags["report"], force=flags["force"])
    with progress_of(ctx) as step:
        step("comparing source and target")
        results = run(
            source,
            target,
            Roles.of_options(flags),
            model=flags["model"],
            coverage=level,
            on_missing=flags["on_missing"],
            seed=flags["seed"],
        )
    emit(results, flags["output_format"])
    write_report(ctx, results, flags["report"], force=flags["force"])
    if flags["strict"] and results.verdict == "no overlap":
        raise CheckFailed(f"no overlap: {results.promise} (--strict)")
