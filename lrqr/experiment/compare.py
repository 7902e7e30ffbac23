"""Methods side by side on the user's own rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from lrqr import registry, tables
from lrqr.columns import frame_columns
from lrqr.config import Method, Ratio
from lrqr.datasets import Rows, ShiftData
from lrqr.errors import DataError, UsageError
from lrqr.experiment.runner import parallel, progress_bar, tidy
from lrqr.experiment.split import evaluate, predict_with_base, seed_of
from lrqr.experiment.summary import method_rows, summarize
from lrqr.features import TableEncoder
from lrqr.roles import resolve

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from lrqr.arrays import IntArray
    from lrqr.experiment.split import Record

DEFAULT_METHODS = ("lrqr", "split", "weighted")
SHARE = 0.8
"""Share of the source, of the unlabeled target and of the test rows that a split draws."""

_NAME = "given"


def compare(
    source: Any,
    target: Any,
    test: Any,
    methods: Sequence[str | Method] = DEFAULT_METHODS,
    *,
    roles: tables.Roles | None = None,
    splits: int = 20,
    coverage: float = 0.9,
    score: str = "absolute",
    base: str | None = None,
    features: str = "auto",
    seed: int = 0,
    jobs: int = 1,
    progress: bool = False,
    on_missing: str = "error",
    **columns: Any,
) -> pd.DataFrame:
    """Calibrate and judge several methods on the same rows.

    Each split draws :data:`SHARE` of the rows of each file without replacement: it calibrates on the drawn
    source and unlabeled target rows and judges on the drawn test rows. All methods see the same rows and
    share one likelihood ratio. One split takes all rows as they are.

    Standard errors over splits say how much a mean depends on the draw; as splits overlap they say less about
    other rows of the same kind. For those the standard deviation over splits times
    ``sqrt(SHARE / (1 - SHARE)) = 2`` is the delete-d jackknife's answer.

    Parameters
    ----------
    source, target, test : data frame, path, or lrqr.tables.Sample
        Labeled source rows, unlabeled target rows, labeled target rows.
    methods : sequence of str or Method
        Names of ``lrqr.methods``, or configured ones.
    roles : Roles, optional
        What the columns are for; or give its fields, such as ``outcome="y", prediction=("yhat",)``.
    splits : int
    coverage : float
    score : str
        A name of ``lrqr.scores``.
    base : {"ridge", "hist-gradient-boosting", "logistic"}, optional
        For data without predictions: half of the drawn source rows fit this learner, half calibrate.
    features : {"auto", "given", "learned"}
        The feature map of methods given by name that use no likelihood ratio.
    seed, jobs : int
        Results depend on the seed, not on the number of processes.
    progress : bool
        Show a bar on a terminal.
    on_missing : {"error", "drop", "impute"}
    **columns
        Fields of `roles`.

    Returns
    -------
    DataFrame
        One row per split and method with the columns of ``lrqr.experiment.split.COLUMNS``;
        :func:`lrqr.experiment.summary.summarize` averages them.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> def rows(n, mean):
    ...     x = rng.normal(mean, 1.0, size=n)
    ...     return pd.DataFrame({"x": x, "yhat": x, "y": x + rng.normal(size=n)})
    >>> runs = compare(
    ...     rows(200, 0.0),
    ...     rows(200, 0.5),
    ...     rows(200, 0.5),
    ...     ["split", "weighted"],
    ...     outcome="y",
    ...     prediction=("yhat",),
    ...     splits=2,
    ... )
    >>> list(runs["method"])
    ['split', 'weighted', 'split', 'weighted']
    """
    given = roles if roles is not None else tables.Roles(**columns)
    data = from_samples(*as_samples(source, target, test, given, on_missing), on_missing=on_missing)
    return compare_rows(
        data,
        methods,
        splits=splits,
        coverage=coverage,
        score=score,
        base=base,
        features=features,
        seed=seed,
        jobs=jobs,
        progress=progress,
    )


def compare_rows(
    data: ShiftData,
    methods: Sequence[str | Method] = DEFAULT_METHODS,
    *,
    splits: int = 20,
    coverage: float = 0.9,
    score: str = "absolute",
    base: str | None = None,
    features: str = "auto",
    seed: int = 0,
    jobs: int = 1,
    progress: bool = False,
    ratio: Ratio | None = None,
) -> pd.DataFrame:
    """Do the same on rows that are already encoded; see :func:`compare`."""
    if splits < 1:
        raise UsageError(f"splits must be at least 1, got {splits}")
    known = data.source.ratio is not None
    entries = [_entry(method, features, known=known) for method in methods]
    labels = [entry.label for entry in entries]
    if len(set(labels)) < len(labels):
        raise UsageError(f"a method is named twice: {', '.join(labels)}")
    job = _Job(data, entries, coverage, score, base, ratio or Ratio(), seed, whole=splits == 1)
    tasks = [(_NAME, split) for split in range(splits)]
    done = {}
    with progress_bar("comparing", splits, shown=progress) as advance:
        for task, records in parallel(job, tasks, jobs):
            done[task] = records
            advance(1)
    return tidy(done, tasks, labels)


def comparison(runs: pd.DataFrame, coverage: float, reference: str = "lrqr") -> dict[str, Any]:
    """Return ``compare --format json``: methods with means and standard errors, the nominal level, splits."""
    table = summarize(runs, reference)
    return {
        "methods": method_rows(table),
        "nominal": coverage,
        "splits": int(table["splits"].max()),
        "reference": reference,
    }


class _Job:
    """One split; picklable."""

    def __init__(
        self,
        data: ShiftData,
        methods: Sequence[Method],
        coverage: float,
        score: str,
        base: str | None,
        ratio: Ratio,
        seed: int,
        *,
        whole: bool,
    ) -> None:
        self.data, self.methods, self.coverage, self.score = data, methods, coverage, score
        self.base, self.ratio, self.seed, self.whole = base, ratio, seed, whole

    def __call__(self, task: tuple[str, int]) -> tuple[tuple[str, int], list[Record]]:
        seed = seed_of(self.seed, *task)
        data = self.data if self.whole else resample(self.data, seed)
        if self.base is not None:
            half = len(data.source) // 2
            order = np.random.default_rng(seed).permutation(len(data.source))
            data = replace(data, train=data.source.take(order[:half]), source=data.source.take(order[half:]))
        with threadpool_limits(1):
            if self.base is not None:
                data = predict_with_base(data, self.base, seed)
            records = evaluate(
                data, self.methods, score=self.score, coverage=self.coverage, ratio=self.ratio, seed=seed
            )
        return task, [record | {"split": task[1]} for record in records]


def resample(data: ShiftData, seed: int) -> ShiftData:
    """Draw :data:`SHARE` of the rows of each part, without replacement."""
    rng = np.random.default_rng(seed)

    def drawn(rows: Rows) -> Rows:
        count = max(1, round(SHARE * len(rows)))
        chosen: IntArray = rng.permutation(len(rows))[:count]
        return rows.take(chosen)

    return replace(data, source=drawn(data.source), target=drawn(data.target), test=drawn(data.test))


def as_samples(
    source: Any, target: Any, test: Any, roles: tables.Roles, on_missing: str
) -> tuple[tables.Sample, tables.Sample, tables.Sample]:
    """Turn frames, or paths, into samples whose features are the columns that all three have."""
    given = (source, target, test)
    if all(isinstance(part, tables.Sample) for part in given):
        return source, target, test
    labeled = ("features", "score" if roles.score_column else "outcome")
    needs = (labeled, ("features",), labeled)
    if all(isinstance(part, str | Path) for part in given):
        paths = [Path(part) for part in given]
        resolved = tables.resolve(roles, *paths)
        read = [
            tables.read(path, resolved, need=need, on_missing=on_missing)
            for path, need in zip(paths, needs, strict=True)
        ]
    else:
        resolved = resolve(roles, *(frame_columns(part) for part in given))
        read = [
            tables.frame_sample(part, resolved, need=need, on_missing=on_missing)
            for part, need in zip(given, needs, strict=True)
        ]
    return read[0], read[1], read[2]


def from_samples(
    source: tables.Sample, target: tables.Sample, test: tables.Sample, *, on_missing: str = "error"
) -> ShiftData:
    """Encode three samples as :class:`ShiftData`; weights become the known ratio."""
    encoder = TableEncoder().fit(source.features, target.features, on_missing=on_missing)

    def rows(sample: tables.Sample, name: str, *, labeled: bool) -> Rows:
        outcome = sample.outcome if sample.score is None else sample.score
        if labeled and outcome is None:
            raise DataError(f"{name} has no outcome (and no score column)")
        empty = sample.prediction.shape[1] == 0 and sample.score is None
        return Rows(
            encoder.transform(sample.features),
            outcome if labeled else None,
            None if empty else sample.prediction,
            sample.weight,
        )

    return ShiftData(
        name=_NAME,
        feature_names=tuple(encoder.names_),
        source=rows(source, "the source", labeled=True),
        target=rows(target, "the target", labeled=False),
        test=rows(test, "the test file", labeled=True),
        classes=source.classes,
    )


def _entry(method: str | Method, features: str, *, known: bool) -> Method:
    if isinstance(method, Method):
        return method if method.label else method.model_copy(update={"label": method.name})
    uses = bool(registry.load("methods", method).ESTIMATOR.USES_RATIO)
    return Method(
        name=method,
        label=method,
        features="given" if uses else features,  # type: ignore[arg-type]
        ratio="true" if known and uses else "estimated",
    )
