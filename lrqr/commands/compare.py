"""``lrqr compare`` and `lrqr.compare`: any methods on the same rows, over random splits, side by side."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lrqr import plugins
from lrqr.arrays import check_seed
from lrqr.calibrate.base import TRAINING_SHARE
from lrqr.calibrate.calibrate import Options, apart, overlap
from lrqr.calibrate.model import PRECOMPUTED
from lrqr.commands import inputs
from lrqr.commands.inputs import Choices
from lrqr.data.tables import UNLABELED_ROWS
from lrqr.data.writing import write_texts
from lrqr.errors import LrqrWarning, UsageError
from lrqr.methods.estimator import check_coverage
from lrqr.results import Comparison, Reported, Run, parse
from lrqr.show.words import to_json
from lrqr.study import summary
from lrqr.study.config import Method
from lrqr.study.datasets import KEPT, ShiftData, drawn
from lrqr.study.run import Job, run_tasks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pandas as pd

    from lrqr.data.formats import Data as Source
    from lrqr.data.roles import Roles
    from lrqr.plugins import FeatureMap, Side

_NAME = "given"
_CONDITIONAL = 1.3e-9  # seconds of the conditional method per n_test · n_source^1.9, measured at d = 20
_LONG = 30.0


def compare(
    source: Source,
    target: Source,
    test: Source,
    methods: Sequence[str] = (),
    *,
    splits: int = 20,
    coverage: float = 0.9,
    score: str | None = None,
    side: Side = "both",
    base: str | None = None,
    feature_map: FeatureMap = "auto",
    seed: int = 0,
    jobs: int = 1,
    progress: bool = False,
    on_missing: str = "error",
    roles: Roles | None = None,
    groups: str | None = None,
    **columns: Any,
) -> pd.DataFrame:
    """Calibrate and judge several methods on the same rows.

    Each split draws 80 % of the rows of each table without replacement: it calibrates on the drawn source
    and unlabeled target rows and judges on the drawn test rows. All methods of a split see the same rows and
    share one likelihood ratio. One split takes all rows as they are.

    Standard errors over splits say how much a mean depends on the draw; as splits overlap they say less about
    other rows of the same kind. For those, twice the standard deviation over splits is the answer of the
    delete-d jackknife: ``sqrt(0.8 / (1 - 0.8)) = 2``.

    Parameters
    ----------
    source, target, test : data frame (pandas, polars) or path
        Labeled source rows; unlabeled target rows; labeled target rows, for judging only.
    methods : sequence of str
        Names of ``lrqr.methods``; empty for all, but for ``conditional`` where it would take half a minute a
        split or more (a warning says so, and how long).
    splits : int
    coverage : float
    score : str, optional
        A name of ``lrqr.scores``; chosen by the columns if not given, as for ``lrqr fit``.
    side : {"both", "upper", "lower"}
        Intervals, or one bound alone; sizes are then distances of the bound from the prediction.
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
    groups : str, optional
        Column that names clusters of rows, which no split divides: another word for ``cluster``.
    **columns
        Such as ``outcome="y", prediction="yhat"``, ``features``, ``exclude``, ``weight`` or
        ``bounds=(0, None)``; for classes ``probability="p_*"``, of which ``probability=True`` is short.

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
    given = inputs.roles_of("compare", compare, roles, columns)
    check_seed(seed)
    check_coverage(coverage)
    if splits < 1:
        raise UsageError(f"the number of splits must be at least 1, got {splits}")
    given = given if groups is None else replace(given, cluster=groups)
    given, feature_map = inputs.without_map(given, source, feature_map)
    choices = Choices(given, coverage, score, base, on_missing, seed, side)
    if len(set(methods)) < len(methods):
        raise UsageError(f"a method is named twice: {', '.join(methods)}")
    data, resolved = _data(source, target, test, choices)
    found = overlap(
        data.source, data.target, Options(resolved, coverage=coverage, seed=seed), data.feature_names
    )
    message = None if found is None else apart(found)
    if message is not None:
        warnings.warn(message, LrqrWarning, stacklevel=2)
    share = KEPT if splits > 1 else 1.0
    calibration = share * len(data.source) * (1.0 - TRAINING_SHARE if base else 1.0)
    named = _affordable(methods, calibration, share * len(data.test))
    entries = [_entry(name, feature_map, choices) for name in named]
    draw = partial(drawn, whole=data, share=share, train_share=TRAINING_SHARE if base else 0.0)
    job = Job(draw, entries, resolved, coverage, seed, bases={_NAME: base}, bounds=given.bounds)
    tasks = [(_NAME, number) for number in range(splits)]
    runs = run_tasks(job, tasks, jobs=jobs, title="comparing" if progress else "").drop(columns="shift")
    if resolved == PRECOMPUTED:  # only the owner of a score knows how large its regions are
        runs[["size", "size_allow", "size_matched"]] = np.nan
    return runs


def _affordable(methods: Sequence[str], n_source: float, n_test: float) -> list[str]:
    """Return the methods to run: by default without one that would take longer than all others together."""
    seconds = _CONDITIONAL * n_test * n_source**1.9
    named = list(methods or all_methods())
    if seconds <= _LONG or "conditional" not in named:
        return named
    what = f"method conditional takes about {seconds:,.0f} s a split on these rows"
    if methods:
        warnings.warn(f"{what}: its time grows with n_test · n_source^1.9", LrqrWarning, stacklevel=3)
        return named
    warnings.warn(
        f"{what} and is left out; name it (--method, methods=) to have it", LrqrWarning, stacklevel=3
    )
    return [name for name in named if name != "conditional"]


def all_methods() -> list[str]:
    """Return the names of all methods, LR-QR first."""
    return sorted(plugins.names("methods"), key=lambda name: (name != "lrqr", name))


def results_of(runs: pd.DataFrame, source: str, *, coverage: float, seed: int) -> Comparison:
    """Sum up the runs of `compare`: mean sizes are infinite if one is; clipped sizes stand beside them."""
    names = list(dict.fromkeys(runs["method"]))
    reference = "lrqr" if "lrqr" in names else str(names[0])
    sizes = {"size": runs["size_allow"], "size_clipped": runs["size"]}
    table = summary.summarize(runs.assign(shift=_NAME, **sizes).drop(columns="size_allow"), reference)
    difference = table["size_difference"]
    table["size_difference"] = difference.where(np.isfinite(difference))
    splits = int(table["splits"].max())
    return Comparison(
        title=f"Methods calibrated on {source}",
        nominal=coverage,
        splits=splits,
        reference=reference,
        methods=summary.method_rows(table),
        runs=[Run.model_validate(row) for row in runs[list(Run.model_fields)].to_dict("records")],
        provenance={"seed": seed, "share": KEPT if splits > 1 else 1.0},
    )


def write_run(runs: pd.DataFrame, results: Comparison, folder: Path, *, force: bool = False) -> list[Path]:
    """Write ``results.csv`` (a row per split and method) and ``results.json`` (for ``lrqr report``)."""
    check_output(folder, force=force)
    paths = _paths(folder)
    folder.mkdir(parents=True, exist_ok=True)
    table = runs.to_csv(None, index=False, float_format="%.10g", lineterminator="\n")
    write_texts(dict(zip(paths, (table, to_json(results)), strict=True)))
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


def _entry(name: str, feature_map: FeatureMap, choices: Choices) -> Method:
    weighs = plugins.load("methods", name).ESTIMATOR.USES_RATIO
    return Method(
        name=name,
        label=name,
        feature_map=feature_map if name == "lrqr" else "given",
        ratio="true" if weighs and choices.roles.weight else "estimated",
    )


def _data(source: Source, target: Source, test: Source, choices: Choices) -> tuple[ShiftData, str]:
    roles, score = inputs.resolve(choices, source, target, test)
    need = inputs.needed(choices, roles, score)
    bare: dict[str, Any] = {"optional": ("prediction", "cluster"), "most": UNLABELED_ROWS}
    wanted: list[Any] = [(source, {"need": need}), (target, bare), (test, {"need": need})]
    samples = inputs.read_all(wanted, roles, choices)
    encoder, (labeled, rows, test_rows) = inputs.encode(samples, roles, score, choices.on_missing)
    return ShiftData(
        name=_NAME,
        feature_names=tuple(encoder.names_),
        source=labeled,
        target=rows.unlabeled(),
        test=test_rows,
        classes=roles.classes,
    ), score
