"""An audit of rank arithmetic: every n from 5 to 200, many levels, ranks in exact fractions.

Scores are 1, 2, .., n in random order, so a threshold *is* its rank. The rank of a level p/q is ⌈(n+1)p/q⌉,
computed here with integers; floating point has to find the same one, also where (n+1)p/q is a whole number
and the level has no exact float. An error of one rank is an invalid promise in one direction and a set too
large in the other.
"""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
import pytest
from commands import NUMBERS, classes, lrqr, predicted, scored, table, write

from lrqr import ConformalRegressor
from lrqr.errors import LrqrWarning
from lrqr.methods.split import SplitConformal
from lrqr.methods.weighted import WeightedConformal

if TYPE_CHECKING:
    from pathlib import Path

SIZES = range(5, 201)
PERCENT = [Fraction(k, 100) for k in (1, 5, 10, 20, 30, 45, 50, 55, 60, 68, 70, 75, 80, 85, 90, 95, 98, 99)]
FINE = [Fraction(999, 1000), Fraction(1, 3), Fraction(2, 3), Fraction(6, 7), Fraction(10, 11)]


def _levels(n: int) -> list[Fraction]:
    """Levels for n rows: round ones, and whole ranks k/(n+1), where rounding up or down is one rank apart."""
    rng = np.random.default_rng(n)
    whole = [Fraction(int(k), n + 1) for k in {1, n, *rng.integers(1, n + 1, 4)}]
    return [*PERCENT, *FINE, *whole]


def _rank(n: int, level: Fraction) -> float:
    rank = -(-(n + 1) * level.numerator // level.denominator)
    return float(rank) if rank <= n else math.inf


def _rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros((n, 1)), np.random.default_rng(n).permutation(n) + 1.0


@pytest.fixture(autouse=True)
def _few_rows_are_meant() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LrqrWarning)
        yield


def test_split_takes_the_exact_rank() -> None:
    wrong = []
    for n in SIZES:
        X, scores = _rows(n)
        for level in _levels(n):
            # As users write it, and as it comes out of 1 - alpha.
            for coverage in {float(level), 1.0 - float(1 - level)}:
                found = SplitConformal(coverage=coverage).fit(X, scores).threshold_
                if found != _rank(n, level):
                    wrong.append((n, level, coverage, found))
    assert wrong == []


@pytest.mark.parametrize("ratio", [1.0, 0.1, 3.7e5])
def test_weighted_with_equal_weights_takes_the_exact_rank(ratio: float) -> None:
    wrong = []
    for n in SIZES:
        X, scores = _rows(n)
        for level in _levels(n):
            method = WeightedConformal(coverage=float(level)).fit(X, scores, ratio=np.full(n, ratio))
            (found,) = method.predict(X[:1], ratio=[ratio])
            if found != _rank(n, level):
                wrong.append((n, level, found))
    assert wrong == []


def test_intervals_have_the_exact_rank_as_half_length() -> None:
    class Zero:
        def predict(self, X: np.ndarray) -> np.ndarray:
            return np.zeros(len(X))

    wrong = []
    for n in SIZES:
        X, scores = _rows(n)
        sign = np.where(np.arange(n) % 2, 1.0, -1.0)
        level = (Fraction(9, 10), Fraction(19, 20), Fraction(n, n + 1))[n % 3]
        model = ConformalRegressor(Zero(), coverage=float(level), method="split", prefit=True)
        ((lower, upper),) = model.fit(X, sign * scores).predict_interval(X[:1])
        if (lower, upper) != (-_rank(n, level), _rank(n, level)):
            wrong.append((n, level, lower, upper))
    assert wrong == []


def test_two_groups_of_weights_take_the_exact_rank() -> None:
    """Whole weights 1 and 3: the exact share is a fraction of whole numbers."""
    wrong = []
    for n in range(5, 201, 3):
        X, scores = _rows(n)
        weights = np.where(np.arange(n) % 2, 3, 1)
        order = np.argsort(scores)
        reached = np.cumsum(weights[order])
        for level in _levels(n):
            for own in (1, 3):
                needed = level * (int(weights.sum()) + own)
                enough = [k for k, share in enumerate(reached.tolist()) if share >= needed]
                rank = scores[order[enough[0]]] if enough else math.inf
                method = WeightedConformal(coverage=float(level)).fit(X, scores, ratio=weights.astype(float))
                (found,) = method.predict(X[:1], ratio=[float(own)])
                if found != rank:
                    wrong.append((n, level, own, found, rank))
    assert wrong == []


@pytest.mark.usefixtures("small_map")
def test_ties_are_covered(tmp_path: Path) -> None:
    for options in (
        ["--method", "split"],
        ["--method", "weighted"],
        ["--feature-map", "given"],
        ["--feature-map", "learned"],
    ):
        assert scored(tmp_path, np.full(50, 0.5), *options).code == 0
        found = lrqr("evaluate", tmp_path / "model", tmp_path / "source.csv", "--format", "json").json
        assert found["coverage"]["value"] == 1.0, options


@pytest.mark.parametrize(
    ("n", "alpha"),
    [(9, "0.1"), (99, "0.1"), (19, "0.05"), (20, "0.05"), (100, "0.01"), (38, "0.2"), (41, "0.1")],
)
def test_ranks_are_exact(tmp_path: Path, n: int, alpha: str) -> None:
    assert scored(tmp_path, np.arange(1.0, n + 1), "--method", "split", "--alpha", alpha).code == 0
    rank = ceil((n + 1) * (1 - Fraction(alpha)))
    assert (predicted(tmp_path)["threshold"] == rank).all()


def test_quantiles_are_not_interpolated(tmp_path: Path) -> None:
    assert scored(tmp_path, np.arange(1.0, 9), "--method", "split").code == 0
    assert (predicted(tmp_path)["threshold"] == np.inf).all()


def test_too_few_rows_give_infinite_answers_and_a_warning(tmp_path: Path) -> None:
    frame = table(5, seed=1)
    paths = write(tmp_path, source=frame, target=frame[["a", "b"]], test=frame)
    ran = lrqr(
        "fit", paths["source"], paths["target"], *NUMBERS, "--method", "split", "-o", tmp_path / "model"
    )
    assert ran.code == 0
    assert "coverage 0.9 needs n >= 9 calibration rows, got 5" in ran.err
    out = predicted(tmp_path, rows="test")
    assert (out["lower"] == -np.inf).all()
    assert (out["upper"] == np.inf).all()
    clipped = predicted(tmp_path, "--infinite", "clip", rows="test")
    np.testing.assert_allclose(clipped["threshold"], (frame["y"] - frame["yhat"]).abs().max(), rtol=1e-12)
    ran = lrqr("predict", tmp_path / "model", paths["test"], "-o", tmp_path / "e.csv", "--infinite", "error")
    assert ran.code == 1
    assert "row 1 (data rows counted from 1) has an infinite threshold" in ran.err
    assert not (tmp_path / "e.csv").exists()
    found = lrqr("evaluate", tmp_path / "model", paths["test"], "--format", "json").json
    assert found["size"]["infinite"] == 1.0
    assert (found["size"]["mean"], found["size"]["median"], found["methods"][0]["size"]) == ("inf",) * 3
    text = lrqr("evaluate", tmp_path / "model", paths["test"]).out
    assert "mean ∞, median ∞" in text


@pytest.mark.usefixtures("small_map")
def test_few_rows_are_warned_about_with_lrqr_too(tmp_path: Path) -> None:
    ran = scored(tmp_path, np.arange(1.0, 6.0))
    assert ran.code == 0, ran.err
    assert "5 calibration rows cannot support a coverage of 0.9, which needs n >= 9: add rows" in ran.err


def test_full_sets_are_warned_about_and_counted(tmp_path: Path) -> None:
    frame = classes(10, seed=4)
    paths = write(tmp_path, source=frame, target=frame[["a", "b"]], test=classes(50, seed=5))
    options = ("--outcome", "y", "--probability", "p_*", "--alpha", "0.05", "--method", "split")
    ran = lrqr("fit", paths["source"], paths["target"], *options, "-o", tmp_path / "model")
    assert "coverage 0.95 needs n >= 19 calibration rows, got 10" in ran.err
    assert (predicted(tmp_path, rows="test")["size"] == 3).all()
    assert lrqr("evaluate", tmp_path / "model", paths["test"], "--format", "json").json["size"]["full"] == 1.0
