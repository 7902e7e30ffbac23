"""Weighted conformal: worked numbers, warnings, the advantage over split under shift."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from lrqr.errors import LrqrWarning, UsageError
from lrqr.methods.split import SplitConformal
from lrqr.methods.weighted import WeightedConformal


def _fit(scores: list[float], weights: list[float], coverage: float) -> WeightedConformal:
    y = np.array(scores, dtype=float)
    return WeightedConformal(coverage).fit(np.zeros((len(y), 1)), y, ratio=np.array(weights, dtype=float))


def _predict(model: WeightedConformal, weights: list[float]) -> list[float]:
    return model.predict(np.zeros((len(weights), 1)), ratio=np.array(weights, dtype=float)).tolist()


def test_worked_numbers() -> None:
    """Worked numbers, through the estimator."""
    with pytest.warns(LrqrWarning, match="needs n >= 9"):
        assert _predict(_fit([3, 1, 4, 2], [3, 1, 4, 2], 0.9), [2.0]) == [math.inf]
    assert _predict(_fit([3, 1, 4, 2], [3, 1, 4, 2], 0.5), [2.0, 7.0]) == [3.0, 4.0]
    with pytest.warns(LrqrWarning, match="effective sample size"):
        assert _predict(_fit([4, 1, 3, 2], [1, 8, 1, 2], 0.75), [1.0]) == [2.0]
    assert _predict(_fit(list(range(1, 100)), [1] * 99, 0.9), [1.0]) == [90.0]
    assert _predict(_fit(list(range(1, 21)), [1] * 20, 0.9), [0.01, 1, 3]) == [19.0, 19.0, math.inf]


def test_one_heavy_row_is_warned_about() -> None:
    """N = 100 rows that are worth one."""
    weights = [1.0] * 99 + [1e6]
    with pytest.warns(LrqrWarning, match=r"effective sample size is 1\.0 of 100 rows.*needs at least 9"):
        model = _fit(list(range(1, 101)), weights, 0.9)
    total = sum(weights)
    limit = total / 9  # w*/(Σw + w*) <= α
    assert _predict(model, [0.999 * limit]) == [100.0]
    assert _predict(model, [1.001 * limit]) == [math.inf]


def test_coverage_over_all_assignments_of_the_test_row() -> None:
    """The theorem by brute force, in exact arithmetic.

    Given the seven rows and ratios, the test row is row j with probability r_j/Σr; averaged so, coverage
    is at least 1-α.
    """
    scores, ratios = [2, 5, 1, 4, 4, 0, 3], [1, 2, 4, 1, 3, 2, 5]
    for percent in (30, 50, 65, 80):
        covered = Fraction(0)
        for j in range(7):
            rest = [i for i in range(7) if i != j]
            q = _quiet_threshold(
                [scores[i] for i in rest], [ratios[i] for i in rest], ratios[j], percent / 100
            )
            covered += Fraction(ratios[j], sum(ratios)) * (scores[j] <= q)
        assert covered >= Fraction(percent, 100)


@pytest.mark.filterwarnings("ignore::lrqr.errors.LrqrWarning")
def _quiet_threshold(scores: list[int], weights: list[int], test: int, coverage: float) -> float:
    model = WeightedConformal(coverage)
    model.scores_, model.weights_ = np.array(scores, dtype=float), np.array(weights, dtype=float)
    model.ratio_, model.known_ratio_, model.n_features_in_ = None, True, 1
    return _predict(model, [test])[0]


def test_thresholds_of_six_points_by_brute_force() -> None:
    scores, weights = [1.0, 2.0, 2.0, 3.0, 5.0, 8.0], [1.0, 4.0, 2.0, 2.0, 1.0, 2.0]
    for order in itertools.islice(itertools.permutations(range(6)), 0, 720, 37):
        model_scores, model_weights = [scores[i] for i in order], [weights[i] for i in order]
        for test, coverage in itertools.product((0.0, 1.0, 3.0), (0.25, 0.5, 0.75)):
            total = sum(weights) + test
            mass = {q: sum(w for s, w in zip(scores, weights, strict=True) if s <= q) for q in scores}
            best = min((q for q in scores if mass[q] >= coverage * total), default=math.inf)
            assert _quiet_threshold(model_scores, model_weights, test, coverage) == best


def test_without_target_or_shift_it_is_split() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 2)), rng.normal(size=50)
    split = SplitConformal().fit(X, y).predict(X)
    assert np.array_equal(WeightedConformal().fit(X, y).predict(X), split)
    # the same rows as both files
    same = WeightedConformal().fit(X, y, X_target=X).predict(X)
    assert np.abs(np.searchsorted(np.sort(y), same) - np.searchsorted(np.sort(y), split)).max() <= 2


def test_ratios_must_be_known_on_both_sides_or_neither() -> None:
    X, y = np.zeros((20, 1)), np.arange(20.0)
    with pytest.raises(UsageError, match="pass ratio="):
        WeightedConformal().fit(X, y, ratio=np.ones(20)).predict(X)
    with pytest.raises(UsageError, match="leave ratio= out"):
        WeightedConformal().fit(X, y).predict(X, ratio=np.ones(20))


def test_weights_change_thresholds() -> None:
    """Weights reach the thresholds, not only some fit."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 1))
    y = np.abs(x[:, 0] + 0.1 * rng.normal(size=200))
    flat = WeightedConformal().fit(x, y, ratio=np.ones(200)).predict(x, ratio=np.ones(200))
    tilted = WeightedConformal().fit(x, y, ratio=np.exp(x[:, 0])).predict(x, ratio=np.exp(x[:, 0]))
    assert not np.isclose(flat, tilted).any()


def test_covers_the_shift_that_split_misses() -> None:
    """X ~ N(0,1) → N(1,1), noise growing with |x|; split covers about .83."""
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(60):
        x, new = rng.normal(size=500), 1.0 + rng.normal(size=500)
        target = 1.0 + rng.normal(size=500)
        y, outcome = (np.abs((0.3 + 0.6 * np.abs(v)) * rng.normal(size=500)) for v in (x, new))
        known = WeightedConformal().fit(x[:, None], y, ratio=np.exp(x - 0.5))
        thresholds = [
            SplitConformal().fit(x[:, None], y).predict(new[:, None]),
            known.predict(new[:, None], ratio=np.exp(new - 0.5)),
            WeightedConformal().fit(x[:, None], y, X_target=target[:, None]).predict(new[:, None]),
        ]
        covered.append([np.mean(outcome <= q) for q in thresholds])
    split, true, estimated = np.mean(covered, axis=0)
    assert 0.80 < split < 0.86
    assert 0.89 < true < 0.92
    assert 0.88 < estimated < 0.93


def test_clip_bounds_the_weights_of_both_kinds_of_rows() -> None:
    rng = np.random.default_rng(0)
    weights, new = rng.lognormal(sigma=3.0, size=200), rng.lognormal(sigma=3.0, size=50)
    scores = rng.normal(size=200)
    X, X_new = np.zeros((200, 1)), np.zeros((50, 1))
    clipped = WeightedConformal(0.9, clip=(0.05, 10.0)).fit(X, scores, ratio=weights)
    by_hand = _fit(list(scores), list(np.clip(weights, 0.05, 10.0)), 0.9)
    expected = _predict(by_hand, list(np.clip(new, 0.05, 10.0)))
    assert clipped.predict(X_new, ratio=new).tolist() == expected
    loaded = WeightedConformal.from_state(clipped.to_state())
    assert loaded.predict(X_new, ratio=new).tolist() == expected


@pytest.mark.parametrize(
    "clip", [(-1.0, 2.0), (2.0, 2.0), (0.1, math.inf), (0.1,), (0.1, "10"), (0.1, math.nan)]
)
def test_clip_needs_two_finite_numbers_in_order(clip: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="clip must be two numbers"):
        WeightedConformal(0.9, clip=clip).fit(np.zeros((20, 1)), np.arange(20.0), ratio=np.ones(20))
