"""LR-QR keeps its coverage under a known shift, and two wrong versions of it do not.

X is uniform on {-1, 1}^40 in the source; in the target X_1 is 1 with probability .9, so that the ratio
r(x) = 1 + .8 x_1 lies in the linear class. S given X is exponential with a mean that depends on X_1.
One target row per seed makes the number of covered rows exactly binomial, with the mean target coverage
as its probability. The band is that of a binomial whose probability lies within .02 of .9 (the bias that
200 labeled rows in 40 dimensions may leave); such a count misses it with probability below 1e-3.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from lrqr.methods.lrqr import LRQR

SEEDS = 1000
DIMENSION, LABELED, UNLABELED = 40, 200, 2000
LOW = stats.binom.ppf(5e-4, SEEDS, 0.88)
HIGH = stats.binom.ppf(1.0 - 5e-4, SEEDS, 0.92)


def _covered(seed: int, coverage: float, regularization: float) -> bool:
    rng = np.random.default_rng(seed)

    def source(n: int) -> np.ndarray:
        return rng.choice([-1.0, 1.0], size=(n, DIMENSION))

    def target(n: int) -> np.ndarray:
        X = source(n)
        X[:, 0] = np.where(rng.random(n) < 0.9, 1.0, -1.0)
        return X

    def scale(X: np.ndarray) -> np.ndarray:
        return np.where(X[:, 0] > 0, 1.5, 0.5)

    X = source(LABELED)
    scores = scale(X) * rng.exponential(size=LABELED)
    model = LRQR(coverage, regularization=regularization, ridge=0.0, standardize=False, score_scale=1.0)
    model.fit(X, scores, X_target=target(UNLABELED), X_source=source(UNLABELED))
    new = target(1)
    threshold = model.predict(new)
    return bool(scale(new)[0] * rng.exponential() <= threshold[0])


def _count(coverage: float = 0.9, regularization: float = 1.0) -> int:
    return sum(_covered(seed, coverage, regularization) for seed in range(SEEDS))


@pytest.mark.coverage
def test_mean_target_coverage_is_the_promised_one() -> None:
    assert LOW <= _count() <= HIGH


@pytest.mark.coverage
def test_without_the_cross_term_coverage_is_lost() -> None:
    """Without - 2 β m·γ the best β is 0, and what remains of the objective is λ = 0."""
    assert _count(regularization=0.0) < LOW


@pytest.mark.coverage
def test_alpha_in_place_of_coverage_is_seen() -> None:
    assert _count(coverage=0.1) < LOW
