"""Scores of ratings and counts repeat: a threshold that equals one of them covers it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from commands import lrqr

from lrqr.calibrate.threshold import ThresholdModel, _snapped

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# The default, with all its models, is fitted in test_recorded.py.
pytestmark = pytest.mark.usefixtures("small_map")


def ratings(n: int, seed: int, shift: float, step: float = 1.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=n) + shift, rng.normal(size=n)
    error = rng.choice([0, 1, 2], n, p=[0.6, 0.37, 0.03]) * rng.choice([-1, 1], n)
    guess = np.clip(np.round(3 + 0.5 * x), 1, 5)
    return pd.DataFrame({"x": x, "z": z, "yhat": step * guess, "y": step * (guess + error)})


def tenths(n: int, seed: int, shift: float) -> pd.DataFrame:
    """Return prices in steps of .1, whose differences are not the same to the last bit."""
    return ratings(n, seed, shift, 0.1)


def counts(n: int, seed: int, shift: float) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=n) + shift, rng.normal(size=n)
    y = np.where(rng.random(n) < 0.95, 0, rng.poisson(np.exp(0.5 * x)))
    return pd.DataFrame({"x": x, "z": z, "yhat": 0.0, "y": y})


@pytest.mark.parametrize(("make", "reach"), [(ratings, 1.0), (tenths, 0.1), (counts, 0.0)])
def test_thresholds_stand_on_the_lattice_and_no_interval_is_empty(
    make: Callable[..., pd.DataFrame], reach: float, tmp_path: Path
) -> None:
    make(400, 0, 0.0).to_csv(tmp_path / "s.csv", index=False)
    make(300, 1, 0.6).drop(columns="y").to_csv(tmp_path / "t.csv", index=False)
    new = make(2000, 2, 0.6)
    new.to_csv(tmp_path / "u.csv", index=False)
    fit = ["fit", tmp_path / "s.csv", tmp_path / "t.csv", "--outcome", "y", "--prediction", "yhat"]
    assert lrqr(*fit, "-o", tmp_path / "m").code == 0
    assert lrqr("predict", tmp_path / "m", tmp_path / "u.csv", "-o", tmp_path / "out.csv").code == 0
    threshold = pd.read_csv(tmp_path / "out.csv")["threshold"].to_numpy()
    near = np.abs(threshold - reach) < 1e-5
    assert near.mean() > 0.9  # the 90 % quantile is that score
    assert (threshold[near] >= reach).all()
    assert np.ptp(threshold[near]) < 1e-14
    found = lrqr("evaluate", tmp_path / "m", tmp_path / "u.csv", "--format", "json").json
    covered = (new["y"] - new["yhat"]).abs() <= reach + 1e-9
    assert found["size"]["empty"] == 0.0
    assert found["coverage"]["value"] >= covered.mean() - 0.005


def test_scores_that_never_repeat_have_no_lattice() -> None:
    rng = np.random.default_rng(0)
    X, scores = rng.normal(size=(120, 2)), rng.exponential(size=120)
    model = ThresholdModel().fit(X, scores, X_target=X + 0.2)
    assert model.lattice_ is None
    stored = ThresholdModel.from_state(model.to_state())
    assert np.array_equal(stored.predict(X), model.predict(X))
    rounded = ThresholdModel().fit(X, scores.round(1), X_target=X + 0.2)
    again = ThresholdModel.from_state(rounded.to_state())
    assert np.array_equal(again.lattice_, rounded.lattice_)
    assert np.array_equal(again.predict(X), rounded.predict(X))


def test_only_what_the_solver_cannot_tell_apart_is_moved() -> None:
    lattice = np.array([0.0, 1.0, 1.5])
    given = np.array([-np.inf, -1e-7, 0.0, 0.5, 0.9999999, 1.0000001, 1.499, 1.5, np.inf])
    expected = np.array([-np.inf, 0.0, 0.0, 0.5, 1.0, 1.0, 1.499, 1.5, np.inf])
    assert np.array_equal(_snapped(given, lattice, 1e-6), expected)
