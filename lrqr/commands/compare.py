"""``lrqr compare`` and `lrqr.compare`: any methods on the same rows, over random splits, side by side."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lrqr import plugins
from lrqr.arrays import check_seed
from lrqr.calibrate.base import training_rows
from lrqr.calibrate.model import PRECOMPUTED
from lrqr.commands import inputs
from lrqr.commands.inputs import Choices
from lrqr.data.encoder import TableEncoder
from lrqr.data.roles import Roles
from lrqr.errors import UsageError
from lrqr.methods.estimator import check_coverage
from lrqr.plugins import suggest
from lrqr.results import Comparison, Reported, parse
from lrqr.show.words import to_json
from lrqr.study import runner, split, summary
from lrqr.study.config import Method, Ratio
from lrqr.study.datasets import Rows, ShiftData

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pandas as pd

    from lrqr.data.formats import Data as Source
    from lrqr.data.tables import Sample
    from lrqr.plugins import FeatureMap

SHARE = 0.8
"""Share of the source, of the unlabeled target and of the test rows that a split draws."""

_NAME = "given"


def compare(
    source: Source,
    target: Source,
    test: Source,
    methods: Sequence[str] = (),
    *,
    splits: int = 20,
    coverage: float = 0.9,
    score: str | None = None,
    base: str | None = None,
    feature_map: FeatureMap = "auto",
    seed: int = 0,
    jobs: int = 1,
    progress: bool = False,
    on_missing: str = "error",
    roles: Roles | None = None,
    **columns: Any,
) -> pd.DataFrame:
    """Calibrate and judge several methods on the same rows.

    Each split draws `SHARE` of the rows of each table without replacement: it calibrates on the drawn source
    and unlabeled target rows and judges on the drawn test rows. All methods of a split see the same rows and
    share one likelihood ratio. One split takes all rows as they are.

    Standard errors over splits say how much a mean depends on the draw; as splits overlap they say less about
    other rows of the same kind. For those, twice the standard deviation over splits is the answer of the
    delete-d jackknife: ``sqrt(SHARE / (1 - SHARE)) = 2``.

    Parameters
    ----------
    source, target, test : data frame (pandas, polars) or path
        Labeled source rows; unlabeled target rows; labeled target rows, for judging only.
    methods : sequence of str
        Names of ``lrqr.methods``; empty for all.
    splits : int
    coverage : float
    score : str, optional
        A name of ``lrqr.scores``; chosen by the columns if not given, as for ``lrqr fit``.
    base : {"ridge", "hist-gradient-boosting", "logistic"}, optional
        For data without predictions: half of the drawn source rows fit this learner, half calibrate.
    feature_map : {"auto", "given", "learned", "constant"}
        The feature map of the methods that use no likelihood ratio.
    seed, jobs : int
        Results depend on the seed, not on the number of processes.
    progress : bool
        Show a bar on a terminal.
    on_missing : {"error", "drop", "impute"}
    roles : Roles, optional
        What the columns are for; or give its fields as further keywords.
    **columns
        Such as ``outcome="y", prediction=("yhat",)``, ``probability=True``, ``features``, ``exclude`` or
        ``weight``.

    Returns
    -------
    DataFrame
        One row per split and method: method, split, coverage, size, infinite, seconds and more.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> def rows(n, mean):
    ...     x = rng.normal(mean, 1.0, size=n)
    ...     return pd.DataFrame({"x": x, "yhat": x, "y": x + rng.normal(size=n)})
    >>> given = rows(200, 0.0), rows(200, 0.5), rows(200, 0.5)
    >>> runs = compare(*given, ["split", "weighted"], splits=2, outcome="y", prediction=("yhat",))
    >>> list(runs["method"])
    ['split', 'weighted', 'split', 'weighted']
    """
    unknown = [name for name in columns if name not in Roles.__dataclass_fields__]
    if unknown:
        near = suggest(unknown[0], [*Roles.__dataclass_fields__, *(compare.__kwdefaults__ or ())])
        raise UsageError(f"compare has no keyword {unknown[0]!r}{near}")
    if roles is not None and columns:
        raise UsageError(f"roles= and {next(iter(columns))}= were both given; put all into one")
    check_seed(seed)
    given = roles if roles is not None else Roles(**columns)
    choices = Choices(given, coverage, score, base, on_missing, seed)
    return run(
        source,
        target,
        test,
        choices,
        methods=methods,
        feature_map=feature_map,
        splits=splits,
        jobs=jobs,
        progress=progress,
    )


def run(
    source: Source,
    target: Source,
    test: Source,
    choices: Choices,
    *,
    methods: Sequence[str] = (),
    feature_map: FeatureMap = "auto",
    splits: int = 20,
    jobs: int = 1,
    progress: bool = False,
) -> pd.DataFrame:
    """Do what `compare` says with the choices of a command."""
    check_coverage(choices.coverage)
    if splits < 1:
        raise UsageError(f"the number of splits must be at least 1, got {splits}")
    roles, feature_map = inputs.without_map(choices.roles, source, feature_map)
    choices = replace(choices, roles=roles)
    entries = [_entry(name, feature_map, choices) for name in methods or all_methods()]
    labels = [entry.label for entry in entries]
    if len(set(labels)) < len(labels):
        raise UsageError(f"a method is named twice: {', '.join(labels)}")
    data, score = _data(source, target, test, choices)
    job = _Job(data, choices, score, entries, whole=splits == 1)
    tasks = [(_NAME, number) for number in range(splits)]
    done = {}
    with runner.progress_bar("comparing", splits, shown=progress) as advance:
        for task, records in runner.parallel(job, tasks, jobs):
            done[task] = records
            advance(1)
    runs = runner.tidy(done, tasks, labels).drop(columns="shift")
    if score == PRECOMPUTED:  # only the owner of a score knows how large its regions are
        runs[["size", "size_allow"]] = np.nan
    return runs


def all_methods() -> list[str]:
    """Return the names of all methods, LR-QR first."""
    return sorted(plugins.names("methods"), key=lambda name: (name != "lrqr", name))


def results_of(runs: pd.DataFrame, choices: Choices, source: str) -> Comparison:
    """Sum up the runs of `run`."""
    names = list(dict.fromkeys(runs["method"]))
    reference = "lrqr" if "lrqr" in names else str(names[0])
    table = summary.summarize(runs.assign(shift=_NAME), reference)
    methods = summary.method_rows(table)
    allowed = runs.assign(shift=_NAME, size=runs["size_allow"])
    for row, whole in zip(methods, summary.method_rows(summary.summarize(allowed, reference)), strict=True):
        row |= {"size_clipped": row["size"], "size_clipped_se": row["size_se"]}
        del row["size_allow"]
        row |= {name: _known(whole[name]) for name in _SPREADS}
        row["size"] = whole["size"]
    splits = int(table["splits"].max())
    kept = ["method", "split", "coverage", "size"]
    found = {
        "title": f"Methods calibrated on {source}",
        "nominal": choices.coverage,
        "splits": splits,
        "reference": reference,
        "methods": methods,
        "runs": runs[kept].to_dict("records"),
        "provenance": {"seed": choices.seed, "share": SHARE if splits > 1 else 1.0},
    }
    return Comparison.model_validate(found)


_SPREADS = ("size_sd", "size_se", "size_difference", "size_difference_se")


def _known(value: Any) -> Any:
    """Return None for the spread of sizes that are infinite, which is not known."""
    return value if value is not None and np.isfinite(value) else None


def write_run(runs: pd.DataFrame, results: Comparison, folder: Path, *, force: bool = False) -> list[Path]:
    """Write ``results.csv`` (a row per split and method) and ``results.json`` (for ``lrqr report``)."""
    check_output(folder, force=force)
    paths = _paths(folder)
    folder.mkdir(parents=True, exist_ok=True)
    runs.to_csv(paths[0], index=False, float_format="%.10g")
    paths[1].write_text(to_json(results), encoding="utf-8")
    return paths


def check_output(folder: Path | None, *, force: bool = False) -> None:
    """Refuse to write over another run (worth asking before a long run)."""
    if folder is not None:
        inputs.check_folder(folder, _paths(folder), force=force)


def _paths(folder: Path) -> list[Path]:
    return [folder / "results.csv", folder / "results.json"]


def read_run(folder: Path) -> Reported:
    """Read the results of a run of ``compare`` or ``reproduce``."""
    path = folder / "results.json" if folder.is_dir() else folder
    found = sorted(folder.glob("*/results.json")) if folder.is_dir() and not path.exists() else []
    if len(found) == 1:
        path = found[0]
    elif len(found) > 1:
        names = ", ".join(str(item.parent) for item in found)
        raise UsageError(f"{folder} holds several runs, report one of them: {names}")
    if not path.is_file():
        raise UsageError(
            f"{folder} is no run: it has no results.json (compare and reproduce write one with -o)"
        )
    try:
        loaded = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}") from error
    return parse(loaded)


@dataclass(frozen=True)
class _Job:
    """One split; picklable."""

    data: ShiftData
    choices: Choices
    score: str
    methods: list[Method]
    whole: bool

    def __call__(self, task: tuple[str, int]) -> tuple[tuple[str, int], list[dict[str, Any]]]:
        seed = split.seed_of(self.choices.seed, *task)
        data = self.data if self.whole else _drawn(self.data, seed)
        if self.choices.base is not None:
            data = split.predict_with_base(_with_training_rows(data, seed), self.choices.base, seed)
        records = split.evaluate(
            data,
            self.methods,
            score=self.score,
            coverage=self.choices.coverage,
            ratio=Ratio(),
            seed=seed,
        )
        return task, [record | {"split": task[1]} for record in records]


def _drawn(data: ShiftData, seed: int) -> ShiftData:
    rng = np.random.default_rng(seed)

    def drawn(rows: Rows) -> Rows:
        count = max(1, round(SHARE * len(rows)))
        return rows.take(rng.permutation(len(rows))[:count])

    return replace(data, source=drawn(data.source), target=drawn(data.target), test=drawn(data.test))


def _with_training_rows(data: ShiftData, seed: int) -> ShiftData:
    labels = None
    if data.classes and data.source.outcome is not None:
        labels = [data.classes[index] for index in data.source.outcome]
    training = training_rows(len(data.source), seed, classes=labels)
    return replace(data, train=data.source.take(training), source=data.source.take(~training))


def _entry(name: str, feature_map: FeatureMap, choices: Choices) -> Method:
    weighs = plugins.load("methods", name).ESTIMATOR.USES_RATIO
    return Method(
        name=name,
        label=name,
        features=feature_map if name == "lrqr" else "given",
        ratio="true" if weighs and choices.roles.weight else "estimated",
    )


def _data(source: Source, target: Source, test: Source, choices: Choices) -> tuple[ShiftData, str]:
    roles, score = inputs.resolve(choices, source, target, test)
    need = inputs.needed(choices, roles, score)
    found, judged = (inputs.read(data, roles, choices, need=need) for data in (source, test))
    unlabeled = inputs.read(target, roles, choices, optional=("prediction",))
    encoder = TableEncoder().fit(
        found.features, unlabeled.features, categorical=roles.categorical, on_missing=choices.on_missing
    )

    def rows(sample: Sample) -> Rows:
        there = sample.prediction.shape[1] > 0 or score == PRECOMPUTED
        return Rows(
            encoder.transform(sample.features, row=sample.row),
            sample.score if score == PRECOMPUTED else sample.outcome,
            sample.prediction if there and not choices.base else None,
            sample.weight,
        )

    return ShiftData(
        name=_NAME,
        feature_names=tuple(encoder.names_),
        source=rows(found),
        target=rows(unlabeled).unlabeled(),
        test=rows(judged),
        classes=roles.classes,
    ), score
