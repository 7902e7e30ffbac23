"""Find an experiment by name or path, run it, and write what came out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lrqr import plugins
from lrqr.errors import UsageError
from lrqr.results import Comparison
from lrqr.show.text import to_markdown
from lrqr.show.words import to_json
from lrqr.study import config, runner, summary

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Outcome:
    """What a run of an experiment gave.

    Attributes
    ----------
    experiment : Experiment
    runs : DataFrame
        One row per shift, split and method.
    summary : DataFrame
        One row per shift and method: see :func:`lrqr.study.summary.summarize`.
    checks : DataFrame
        One row per recorded claim and shift.
    results : Comparison
        The same for reports and JSON.
    files : list of Path
        What was written.
    """

    experiment: config.Experiment
    runs: pd.DataFrame
    summary: pd.DataFrame
    checks: pd.DataFrame
    results: Comparison
    files: list[Path]


def configs_folder() -> Path:
    """Return the folder of one TOML file per experiment: inside an installed wheel, or the repository's."""
    installed = Path(__file__).parent / "experiments"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "configs"


def names() -> tuple[str, ...]:
    """Return the names of the experiments that come with lrqr."""
    return tuple(sorted(path.stem for path in configs_folder().glob("*.toml")))


def find(name: str) -> Path:
    """Return the file of an experiment, given its name or the path of a TOML file."""
    if name.endswith(".toml"):
        return Path(name)
    if name not in names():
        known = ", ".join(names())
        raise UsageError(
            f"unknown experiment {name!r}{plugins.suggest(name, names())}; choose one of: {known}"
        )
    return configs_folder() / f"{name}.toml"


def catalog() -> list[dict[str, Any]]:
    """Return name, title, place in the paper, numbers of shifts, methods and splits of every experiment."""
    return [dry_run(name) for name in names()]


def dry_run(name: str, splits: int | None = None) -> dict[str, Any]:
    """Return what a run of the experiment would do, after checking its file; no data are read."""
    experiment = config.load(find(name))
    shifts = experiment.data.chosen()
    count = splits or experiment.splits
    labels = [method.label for method in experiment.expanded()]
    return {
        "name": Path(name).stem,
        "title": experiment.title,
        "paper": experiment.paper,
        "shifts": shifts,
        "methods": labels,
        "splits": count,
        "fits": len(shifts) * len(labels) * count,
        "expectations": len(experiment.expect),
    }


def reproduce(
    name: str, folder: Path, *, splits: int | None = None, jobs: int = 1, progress: bool = False
) -> Outcome:
    """Run an experiment in ``folder/<name>`` and write its tables and figure there.

    Writes ``results.csv`` (tidy, a row per shift, split and method), ``summary.csv``, ``checks.csv``,
    ``results.json`` (for ``lrqr report``), ``summary.md``, ``figure.svg`` and ``figure.png``.

    Parameters
    ----------
    name : str
        A name of :func:`names`, or the path of a TOML file.
    folder : Path
    splits, jobs, progress
        See :func:`lrqr.study.runner.run`.
    """
    experiment = config.load(find(name))
    place = folder / Path(name).stem
    runs = runner.run(experiment, place, splits=splits, jobs=jobs, progress=progress)
    table = summary.summarize(runs, experiment.reference)
    checks = summary.check(experiment, runs)
    results = Comparison.model_validate(summary.to_results(experiment, runs))
    files = write(place, experiment, runs, results)
    return Outcome(experiment, runs, table, checks, results, files)


def write(place: Path, experiment: config.Experiment, runs: pd.DataFrame, results: Comparison) -> list[Path]:
    """Write the tables, the JSON and the figure of a run into a folder; return their paths."""
    from lrqr.show import paper

    table = summary.summarize(runs, experiment.reference)
    frames = {"results": runs, "summary": table, "checks": summary.check(experiment, runs)}
    files = []
    for stem, frame in frames.items():
        frame.to_csv(place / f"{stem}.csv", index=False, float_format="%.10g")
        files.append(place / f"{stem}.csv")
    texts = {"results.json": to_json(results), "summary.md": to_markdown(results)}
    for file, text in texts.items():
        (place / file).write_text(text, encoding="utf-8")
        files.append(place / file)
    return [*files, *paper.save(experiment, results, place / "figure")]
