"""Experiments: find one by name or path, run its splits, write what came out.

Splits run in parallel and are stored as they finish; the results are the same for every number of jobs.
"""

from __future__ import annotations

import contextlib
import json
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from lrqr import __version__, plugins
from lrqr.arrays import few_threads
from lrqr.calibrate.directory import restore, write_directory
from lrqr.calibrate.regions import Regions
from lrqr.data.writing import named, write_texts
from lrqr.errors import DataError, LrqrError, UsageError
from lrqr.results import Experiments, Plan
from lrqr.show import paper
from lrqr.show.text import to_markdown
from lrqr.show.words import to_json
from lrqr.study import config, datasets, summary
from lrqr.study.config import Ratio
from lrqr.study.split import COLUMNS, Record, evaluate, predict_with_base, seed_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from lrqr.data.roles import Bounds
    from lrqr.results import Comparison
    from lrqr.study.config import Data, Experiment, Method
    from lrqr.study.datasets import ShiftData

Task = tuple[str, int]
"""The name of a shift and the number of a split."""

_SPLITS = "splits.jsonl"
_IDENTITY = "experiment.json"


# -------------------------------------------------------------------------------------- running splits


@dataclass(frozen=True)
class Job:
    """What is done with every split: draw the rows, calibrate each method, judge it; picklable.

    Attributes
    ----------
    draw : callable
        From the name of a shift and a seed to the rows of a split.
    methods : sequence of Method without grids
    score : str
        A name of ``lrqr.scores``, or "auto": lac for classes and absolute for numbers.
    bases : dict
        The base learner of each shift, which is fitted where the rows bring no predictions.
    bounds : (float or None, float or None), optional
        The lowest and the highest possible outcome.
    """

    draw: Callable[[str, int], ShiftData]
    methods: Sequence[Method]
    score: str = "absolute"
    coverage: float = 0.9
    seed: int = 0
    ratio: Ratio = field(default_factory=Ratio)
    bases: Mapping[str, str | None] = field(default_factory=dict)
    bounds: Bounds = None

    def __call__(self, task: Task) -> tuple[Task, list[Record]]:
        """Return one record per method, see `lrqr.study.split.COLUMNS`.

        One BLAS thread, so that sums are the same for any number of processes.
        """
        shift, number = task
        seed = seed_of(self.seed, shift, number)
        try:
            with few_threads():
                data = self.draw(shift, seed)
                base = self.bases.get(shift)
                if base is not None and data.source.prediction is None:
                    data = predict_with_base(data, base, seed)
                score = self.score
                if score == "auto":
                    score = "lac" if data.classes else "absolute"
                records = evaluate(
                    data,
                    self.methods,
                    regions=Regions(score, self.bounds),
                    coverage=self.coverage,
                    ratio=self.ratio,
                    seed=seed,
                )
        except LrqrError as error:
            raise type(error)(f"{shift}, split {number}: {error}") from error
        return task, [record | {"split": number} for record in records]


def job_of(experiment: Experiment) -> Job:
    """Return what an experiment does with every split."""
    own = {table.name: table.base for table in experiment.data.tables}
    return Job(
        partial(draw, experiment.data),
        experiment.expanded(),
        experiment.score,
        experiment.coverage,
        experiment.seed,
        experiment.ratio,
        {shift: own.get(shift) or experiment.base for shift in experiment.data.chosen()},
    )


def draw(data: Data, shift: str, seed: int) -> ShiftData:
    """Draw one split of the data of an experiment."""
    module = plugins.load("study.datasets", data.kind)
    table = next((table for table in data.tables if table.name == shift), None)
    options = data.options if table is None else {"table": table}
    made: ShiftData = module.split(shift, seed=seed, **options)
    return made


def run(
    experiment: Experiment,
    folder: Path | None = None,
    *,
    splits: int | None = None,
    jobs: int = 1,
    progress: bool = False,
) -> pd.DataFrame:
    """Run an experiment.

    Parameters
    ----------
    experiment : Experiment
    folder : Path, optional
        Where each finished split is written at once. A second run in the same folder does only what is
        missing; more ``splits`` than before extend the first ones. UsageError if the folder holds another
        experiment's splits.
    splits : int, optional
        In place of the experiment's own number.
    jobs : int
        Processes; the results do not depend on it.
    progress : bool
        Show a bar with the time left on standard error, if that is a terminal.

    Returns
    -------
    DataFrame
        One row per shift, split and method with the columns ``split.COLUMNS``, in that order.
    """
    shifts = experiment.data.chosen()
    # split by split, so that an interrupted run has every shift alike
    tasks = [(shift, number) for number in range(splits or experiment.splits) for shift in shifts]
    done = {} if folder is None else _resume(experiment, folder)
    store = None if folder is None else partial(_store, folder / _SPLITS)
    title = experiment.title if progress else ""
    return run_tasks(job_of(experiment), tasks, jobs=jobs, title=title, done=done, store=store)


def run_tasks(
    job: Job,
    tasks: Sequence[Task],
    *,
    jobs: int = 1,
    title: str = "",
    done: Mapping[Task, list[Record]] | None = None,
    store: Callable[[Task, list[Record]], None] | None = None,
) -> pd.DataFrame:
    """Do a job for every task.

    Parameters
    ----------
    job : Job
    tasks : sequence of (shift, split)
    jobs : int
        Processes; the results do not depend on it.
    title : str
        Of a progress bar on standard error, if that is a terminal; empty for none.
    done : dict, optional
        Records of tasks that need not be done again.
    store : callable, optional
        Called with every task and its records as soon as they are there.

    Returns
    -------
    DataFrame
        Sorted by shift (first seen first), split and method.
    """
    found = dict(done or {})
    missing = [task for task in tasks if task not in found]
    with _progress_bar(title, len(tasks)) as advance:
        advance(len(tasks) - len(missing))
        for task, records in _parallel(job, missing, jobs):
            found[task] = records
            if store is not None:
                store(task, records)
            advance(1)
    shifts = list(dict.fromkeys(shift for shift, _ in tasks))
    ordered = sorted(tasks, key=lambda task: (shifts.index(task[0]), task[1]))
    rows = [record for task in ordered for record in found[task]]
    return pd.DataFrame(rows).reindex(columns=list(COLUMNS))


def _parallel(job: Job, tasks: Sequence[Task], jobs: int) -> Iterator[tuple[Task, list[Record]]]:
    """Yield the results of ``tasks`` as they come; one job runs in this process."""
    if jobs == 1 or len(tasks) < 2:
        yield from map(job, tasks)
        return
    from joblib import Parallel, delayed

    yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(job)(task) for task in tasks)


@contextlib.contextmanager
def _progress_bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Give a function that advances a progress bar; it does nothing unless standard error is a terminal."""
    if not (title and sys.stderr.isatty()):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total)
        yield lambda steps: bar.advance(task, steps)


# ------------------------------------------------------------------------------ the folder of a run


def _store(path: Path, task: Task, records: list[Record]) -> None:
    with named(path, path), path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"shift": task[0], "split": task[1], "records": records}) + "\n")


def _resume(experiment: Experiment, folder: Path) -> dict[Task, list[Record]]:
    """Read the finished splits of a folder, after checking that they are of this very experiment."""
    restore(folder)
    folder.mkdir(parents=True, exist_ok=True)
    identity = json.dumps(identify(experiment), indent=2, sort_keys=True) + "\n"
    file = folder / _IDENTITY
    if file.exists() and file.read_text(encoding="utf-8") != identity:
        raise UsageError(
            f"{folder} holds splits of another experiment, other data or another version of lrqr; "
            "choose another output folder or remove it"
        )
    if not file.exists():
        write_texts({file: identity})
    path = folder / _SPLITS
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    if len(whole) < len(lines):  # the run was killed while it wrote its last line
        write_texts({path: "".join(whole)})
    entries = [json.loads(line) for line in whole]
    return {(entry["shift"], entry["split"]): entry["records"] for entry in entries}


def identify(experiment: Experiment) -> dict[str, Any]:
    """Return what decides the results of a split: version, configuration and the contents of the data.

    The number of splits, the expectations and the figure do not.
    """
    left_out = {"splits", "expect", "figure", "published", "title", "paper", "reference"}
    data = experiment.data
    if data.tables:
        paths = plugins.load("study.datasets", data.kind).files(data.tables)
        files = {str(path): datasets.sha256(path) for path in paths}
    else:
        wrong = datasets.verify(data.kind)
        if wrong:
            raise DataError(f"data set {data.kind}: " + "; ".join(wrong))
        files = {file.name: file.sha256 for file in plugins.load("study.datasets", data.kind).FILES}
    return {
        "version": __version__,
        "experiment": experiment.model_dump(mode="json", exclude=left_out),
        "files": files,
    }


# ------------------------------------------------------------------------- the experiments by name


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

    experiment: Experiment
    runs: pd.DataFrame
    summary: pd.DataFrame
    checks: pd.DataFrame
    results: Comparison
    files: list[Path]


def configs_folder() -> Path:
    """Return the folder of one TOML file per experiment: inside an installed wheel, or the repository's."""
    return datasets.shipped("configs", "study/experiments")


def names() -> tuple[str, ...]:
    """Return the names of the experiments that come with lrqr."""
    return tuple(sorted(path.stem for path in configs_folder().glob("*.toml")))


def find(name: str) -> Path:
    """Return the file of an experiment, given its name or the path of a TOML file."""
    if name.endswith(".toml"):
        return Path(name)
    plugins.check_choice("experiment", name, names())
    return configs_folder() / f"{name}.toml"


def catalog() -> Experiments:
    """Return what each experiment of the repository would run."""
    return Experiments(experiments=[dry_run(name) for name in names()])


def dry_run(name: str, splits: int | None = None) -> Plan:
    """Return what a run of the experiment would do, after checking its file; no data are read."""
    experiment = config.load(find(name))
    shifts = experiment.data.chosen()
    count = splits or experiment.splits
    labels = [method.label for method in experiment.expanded()]
    return Plan(
        name=Path(name).stem,
        title=experiment.title,
        paper=experiment.paper,
        shifts=list(shifts),
        methods=labels,
        splits=count,
        fits=len(shifts) * len(labels) * count,
        expectations=len(experiment.expect),
    )


def reproduce(
    name: str, folder: Path, *, splits: int | None = None, jobs: int = 1, progress: bool = False
) -> Outcome:
    """Run an experiment in ``folder/<name>`` and write its tables and figure there.

    Writes ``results.csv`` (tidy, a row per shift, split and method), ``summary.csv``, ``checks.csv``,
    ``results.json`` (for ``lrqr report``), ``summary.md``, ``figure.svg`` and ``figure.png``: all of them at
    once, so that a run that is killed leaves those of the run before.

    Parameters
    ----------
    name : str
        A name of :func:`names`, or the path of a TOML file.
    folder : Path
    splits, jobs, progress
        See :func:`run`.
    """
    experiment = config.load(find(name))
    place = folder / Path(name).stem
    runs = run(experiment, place, splits=splits, jobs=jobs, progress=progress)
    table = summary.summarize(runs, experiment.reference)
    checks = summary.check(experiment, runs)
    results = summary.to_results(experiment, table, checks)
    frames = {"results.csv": runs, "summary.csv": table, "checks.csv": checks}
    texts = {file: frame.to_csv(index=False, float_format="%.10g") for file, frame in frames.items()}
    texts |= {"results.json": to_json(results), "summary.md": to_markdown(results)}
    written = {file: text.encode() for file, text in texts.items()} | paper.save(experiment, results)
    write_directory(place, written, replace=True, keep=True)
    files = [place / file for file in written]
    return Outcome(experiment, runs, table, checks, results, files)
