"""``lrqr compare``: any methods on the same rows, over random splits, side by side."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from lrqr import registry
from lrqr.errors import UsageError
from lrqr.estimator import check_coverage
from lrqr.experiment import compare as experiment
from lrqr.model import PRECOMPUTED
from lrqr.report.plain import to_json
from lrqr.workflows import inputs

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from lrqr.conformal.threshold import FeatureMap
    from lrqr.workflows.inputs import Choices


def compare(
    source: Path,
    target: Path,
    test: Path,
    choices: Choices,
    *,
    methods: tuple[str, ...] = (),
    feature_map: FeatureMap = "auto",
    splits: int = 20,
    jobs: int = 1,
    progress: bool = False,
) -> pd.DataFrame:
    """Run methods on the same rows of three files.

    Parameters
    ----------
    source, target, test : Path
        Labeled source rows; unlabeled target rows; labeled target rows, for judging only.
    choices : Choices
        Columns, score, base learner, coverage and seed, as for a fit.
    methods : tuple of str
        Names of ``lrqr.methods``; empty for all. Those that weigh rows get known ratios, if there are any.
    feature_map : {"auto", "given", "learned"}
        For the methods that use no likelihood ratio; the others see the features as they are.
    splits, jobs, progress
        See `lrqr.compare`.

    Returns
    -------
    DataFrame
        One row per split and method.
    """
    check_coverage(choices.coverage)
    roles, score = inputs.resolve(choices, source, target, test)
    need = inputs.needed(choices, roles, score)
    samples = (
        inputs.read(source, roles, choices, need=need),
        inputs.read(target, roles, choices),
        inputs.read(test, roles, choices, need=need),
    )
    runs = experiment.compare_rows(
        experiment.from_samples(*samples, on_missing=choices.on_missing),
        methods or all_methods(),
        splits=splits,
        coverage=choices.coverage,
        score=score,
        base=choices.base,
        features=feature_map,
        seed=choices.seed,
        jobs=jobs,
        progress=progress,
    ).drop(columns="shift")
    if score == PRECOMPUTED:  # only the owner of a score knows how large its regions are
        runs[["size", "size_allow"]] = np.nan
    return runs


def all_methods() -> list[str]:
    """Return the names of all methods, LR-QR first."""
    return sorted(registry.names("methods"), key=lambda name: (name != "lrqr", name))


def results_of(runs: pd.DataFrame, choices: Choices, source: str) -> dict[str, Any]:
    """Return the keys of ``compare --format json`` (docs/cli.md)."""
    names = list(dict.fromkeys(runs["method"]))
    reference = "lrqr" if "lrqr" in names else str(names[0])
    results = experiment.comparison(runs.assign(shift="given"), choices.coverage, reference)
    share = experiment.SHARE if results["splits"] > 1 else 1.0
    for row in results["methods"]:
        row["size_clipped"], row["size"] = row["size"], row.pop("size_allow")
    kept = ["method", "split", "coverage", "size"]
    return {
        "title": f"Methods calibrated on {source}",
        **results,
        "runs": runs[kept].to_dict("records"),
        "provenance": {"seed": choices.seed, "share": share},
    }


def write_run(
    runs: pd.DataFrame, results: dict[str, Any], folder: Path, *, force: bool = False
) -> list[Path]:
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


def read_run(folder: Path) -> dict[str, Any]:
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
        loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}") from error
    return loaded
