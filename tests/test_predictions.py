"""Predictions of another model or in another unit are named, and predictions that do not fit the outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from commands import lrqr
from sklearn.linear_model import LinearRegression

from lrqr import ConformalRegressor
from lrqr.errors import LrqrWarning
from lrqr.stats.diagnosis import diagnose
from lrqr.stats.predictions import differing, worse_than_a_constant

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lrqr.arrays import FloatArray

# The default, with all its models, is fitted in test_recorded.py.
pytestmark = pytest.mark.usefixtures("small_map")


def table(n: int, seed: int, shift: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[:, 0] += shift
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2"])
    return frame.assign(yhat=2 + X[:, 0], y=2 + X[:, 0] + 0.5 * rng.normal(size=n))


CHANGES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "unit": lambda p: 1000 * p,
    "constant": lambda p: 0 * p + 2,
    "log": lambda p: np.log(np.abs(p) + 0.1),
    "another model": lambda p: 2 - 0.2 * (p - 2),
}


@pytest.mark.parametrize("change", CHANGES)
def test_alike_features_with_other_predictions_promise_nothing(change: str, tmp_path: Path) -> None:
    source, target = table(300, 2), table(200, 3)
    target["yhat"] = CHANGES[change](target["yhat"].to_numpy())
    source.to_csv(tmp_path / "s.csv", index=False)
    target.drop(columns="y").to_csv(tmp_path / "t.csv", index=False)
    files = [tmp_path / "s.csv", tmp_path / "t.csv", "--outcome", "y", "--prediction", "yhat"]
    found = lrqr("diagnose", *files, "--format", "json")
    assert "another model or another unit" in found.json["promise"]
    assert "another model or another unit" in found.err
    fitted = lrqr("fit", *files, "--method", "split", "-o", tmp_path / "m")
    assert fitted.code == 0, fitted.err
    assert "would do" not in found.out + fitted.err + fitted.out
    assert fitted.err.count("Warning: The features look alike, but the predictions differ") == 1


def test_predictions_that_move_with_the_features_are_not_accused() -> None:
    accused = 0
    for seed in range(20):
        source, target = table(300, seed), table(200, 100 + seed)
        said = [rows[["yhat"]].to_numpy() for rows in (source, target)]
        X = [rows[["x0", "x1", "x2"]].to_numpy() for rows in (source, target)]
        accused += bool(diagnose(*X, predictions=(said[0], said[1])).predictions)
    assert accused <= 1  # of 20 at .001 each: P(2 or more) < .001
    moved = table(200, 7, 1.5)[["yhat"]].to_numpy()
    assert differing(said[0], moved, alike=False) == ""
    assert differing(said[0], 1000 * moved, alike=False) != ""


def test_predictions_that_fit_worse_than_a_constant_are_named(tmp_path: Path) -> None:
    source, target = table(300, 2), table(200, 3)
    money = source.assign(y=np.exp(source["y"] + 8), yhat=source["yhat"] + 8)
    swapped = source.assign(yhat=source["x1"])
    other_sign = source.assign(yhat=-source["yhat"])
    target.drop(columns="y").to_csv(tmp_path / "t.csv", index=False)
    for frame in (money, swapped, other_sign):
        frame.to_csv(tmp_path / "s.csv", index=False)
        files = [tmp_path / "s.csv", tmp_path / "t.csv", "--outcome", "y", "--prediction", "yhat"]
        for command in (["fit", *files, "-o", tmp_path / "m", "--force"], ["diagnose", *files]):
            ran = lrqr(*command)
            assert ran.code == 0, ran.err
            assert ran.err.count("farther from the outcome than its median") == 1
    X, y = source[["x0", "x1", "x2"]].to_numpy(), source["y"].to_numpy()
    model = LinearRegression().fit(X, y)
    with pytest.warns(LrqrWarning, match="farther from the outcome than its median"):
        ConformalRegressor(model, prefit=True).fit(X, 1000 * y, X_target=X[:100] + 0.01)


def test_models_that_know_little_are_left_alone() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=400)
    assert worse_than_a_constant(0.1 * rng.normal(size=(400, 1)), y) == ""
    rare = np.where(rng.random(400) < 0.05, rng.poisson(3, 400), 0).astype(float)
    assert worse_than_a_constant(np.full((400, 1), rare.mean()), rare) == ""  # the mean, not the median
    labels = rng.integers(0, 3, 400)
    sure = np.full((400, 3), 0.1)
    sure[np.arange(400), labels] = 0.8
    assert worse_than_a_constant(sure, labels) == ""
    assert "frequencies" in worse_than_a_constant(sure[:, [1, 2, 0]], labels)
