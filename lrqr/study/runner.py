"""All splits of an experiment: in parallel, resumable, the same for every number of jobs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from lrqr import __version__, plugins
from lrqr.errors import DataError, UsageError
from lrqr.study.split import COLUMNS, Record, run_split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lrqr.study.config import Experiment

    Job = Callable[[tuple[str, int]], tuple[tuple[str, int], list[Record]]]

Task = tuple[str, int]

_SPLITS = "splits.jsonl"
_IDENTITY = "experiment.json"


def plan(experiment: Experiment, splits: int) -> list[Task]:
    """Return all (shift, split), split by split, so that an interrupted run has every shift alike."""
    return [(shift, split) for split in range(splits) for shift in experiment.data.chosen()]


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
    todo = plan(experiment, splits or experiment.splits)
    done = {} if folder is None else _resume(experiment, folder)
    missing = [task for task in todo if task not in done]
    with contextlib.ExitStack() as stack:
        advance = stack.enter_context(progress_bar(experiment.title, len(todo), shown=progress))
        advance(len(todo) - len(missing))
        write = stack.enter_context(_appender(folder))
        for task, records in parallel(_Job(experiment), missing, jobs):
            write(task, records)
            done[task] = records
            advance(1)
    return tidy(done, todo, [method.label for method in experiment.expanded()])


class _Job:
    """What a process does with a task; picklable."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment

    def __call__(self, task: Task) -> tuple[Task, list[Record]]:
        return task, run_split(self.experiment, *task)


class _SingleThreaded:
    """A job on one BLAS thread, so that sums are the same for any number of processes; picklable."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def __call__(self, task: Task) -> tuple[Task, list[Record]]:
        with threadpool_limits(1):
            return self.job(task)


def parallel(job: Job, tasks: Sequence[Task], jobs: int) -> Iterator[tuple[Task, list[Record]]]:
    """Yield the results of ``tasks`` as they come; one job runs in this process."""
    call = _SingleThreaded(job)
    if jobs == 1 or len(tasks) < 2:
        yield from map(call, tasks)
        return
    from joblib import Parallel, delayed

    yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(call)(task) for task in tasks)


def tidy(done: dict[Task, list[Record]], tasks: Sequence[Task], labels: Sequence[str]) -> pd.DataFrame:
    """Return the records of ``tasks`` as a frame, sorted by shift (first seen first), split and method."""
    shifts = list(dict.fromkeys(shift for shift, _ in tasks))
    ordered = sorted(tasks, key=lambda task: (shifts.index(task[0]), task[1]))
    order = {label: position for position, label in enumerate(labels)}
    rows = [record for task in ordered for record in sorted(done[task], key=lambda row: order[row["method"]])]
    return pd.DataFrame(rows).reindex(columns=list(COLUMNS))


@contextlib.contextmanager
def progress_bar(title: str, total: int, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """Give a function that advances a progress bar; it does nothing unless standard error is a terminal."""
    if not (shown and sys.stderr.isatty()):
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


@contextlib.contextmanager
def _appender(folder: Path | None) -> Iterator[Callable[[Task, list[Record]], None]]:
    """Give a function that appends one line a finished split and flushes it."""
    if folder is None:
        yield lambda _task, _records: None
        return
    with (folder / _SPLITS).open("a", encoding="utf-8") as file:

        def write(task: Task, records: list[Record]) -> None:
            file.write(json.dumps({"shift": task[0], "split": task[1], "records": records}) + "\n")
            file.flush()

        yield write


def _resume(experiment: Experiment, folder: Path) -> dict[Task, list[Record]]:
    """Read the finished splits of a folder, after checking that they are of this very experiment."""
    folder.mkdir(parents=True, exist_ok=True)
    identity = json.dumps(identify(experiment), indent=2, sort_keys=True) + "\n"
    file = folder / _IDENTITY
    if file.exists() and file.read_text(encoding="utf-8") != identity:
        raise UsageError(
            f"{folder} holds splits of another experiment, other data or another version of lrqr; "
            "choose another output folder or remove it"
        )
    file.write_text(identity, encoding="utf-8")
    path = folder / _SPLITS
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    if len(whole) < len(lines):  # the run was killed while it wrote its last line
        path.write_text("".join(whole), encoding="utf-8")
    entries = [json.loads(line) for line in whole]
    return {(entry["shift"], entry["split"]): entry["records"] for entry in entries}


def identify(experiment: Experiment) -> dict[str, Any]:
    """Return what decides the results of a split: version, configuration and the contents of the data.

    The number of splits, the expectations and the figure do not.
    """
    left_out = {"splits", "expect", "figure", "published", "title", "paper", "reference"}
    return {
        "version": __version__,
        "experiment": experiment.model_dump(mode="json", exclude=left_out),
        "files": _digests(experiment),
    }


def _digests(experiment: Experiment) -> dict[str, str]:
    from lrqr.study.datasets import verify

    data = experiment.data
    if data.tables:
        files = plugins.load("study.datasets", data.kind).files(data.tables)
        return {path: hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in files}
    wrong = verify(data.kind)
    if wrong:
        raise DataError(f"data set {data.kind}: " + "; ".join(wrong))
    return {file.name: file.sha256 for file in plugins.load("study.datasets", data.kind).FILES}
