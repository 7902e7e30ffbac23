"""Finite-sample theorems as tests: split and weighted conformal over 2,000 seeds, n = 60, α = .1.

Each seed's coverage is known in closed form given its calibration rows, so nothing but the calibration
rows is random, and the bands are narrow enough that the classical mistakes fall out of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from lrqr.methods.split import SplitConformal
from lrqr.methods.weighted import WeightedConformal
from lrqr.stats.quantiles import conformal_rank

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.coverage, pytest.mark.filterwarnings("ignore::lrqr.errors.LrqrWarning")]

SEEDS, N, LEVEL = 2000, 60, 0.9
# a mean over seeds leaves its band with probability below 1e-6
WIDTH = float(stats.norm.ppf(1 - 5e-7))


def _split_coverages(threshold: Callable[[np.ndarray], float]) -> np.ndarray:
    """Scores are uniform on [0, 1]: the threshold is its own coverage."""
    return np.array([threshold(np.random.default_rng(seed).uniform(size=N)) for seed in range(SEEDS)])


def _split(scores: np.ndarray) -> float:
    return float(SplitConformal(LEVEL).fit(np.zeros((N, 1)), scores).predict(np.zeros((1, 1)))[0])


def test_split_coverage_has_its_exact_beta_distribution() -> None:
    """The k-th of n uniform scores is Beta(k, n+1-k), k = 55: mean 55/61, just above .9."""
    exact = stats.beta(55, 6)
    coverages = _split_coverages(_split)
    assert stats.kstest(coverages, exact.cdf).pvalue > 1e-4
    assert abs(coverages.mean() - 55 / 61) < WIDTH * exact.std() / np.sqrt(SEEDS)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda s: np.quantile(s, LEVEL),  # interpolated
        lambda s: np.quantile(s, LEVEL, method="lower"),  # counted from (n-1)·level
        lambda s: np.sort(s)[conformal_rank(N, LEVEL) - 2],  # no + 1
        lambda s: np.sort(s)[conformal_rank(N, LEVEL)],  # one rank too wide
        lambda s: np.sort(s)[conformal_rank(N, 1 - LEVEL) - 1],  # α for 1-α
    ],
)
def test_the_split_check_sees_wrong_ranks(wrong: Callable[[np.ndarray], float]) -> None:
    exact = stats.beta(55, 6)
    coverages = _split_coverages(wrong)
    assert abs(coverages.mean() - 55 / 61) > WIDTH * exact.std() / np.sqrt(SEEDS)


SOURCE, TARGET, SCALE = np.array([0.7, 0.3]), np.array([0.3, 0.7]), np.array([1.0, 3.0])
RATIO = TARGET / SOURCE


def _weighted_coverages(
    thresholds: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Two cells, S given the cell exponential: exact target coverage, and the theorem's slack, per seed."""
    coverages, slack = np.empty(SEEDS), np.empty(SEEDS)
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        cells = (rng.random(N) < SOURCE[1]).astype(int)
        got = thresholds(cells, SCALE[cells] * rng.exponential(size=N))
        coverages[seed] = TARGET @ -np.expm1(-got / SCALE)
        total = RATIO[cells].sum()
        slack[seed] = TARGET @ (np.maximum(RATIO, RATIO[cells].max()) / (total + RATIO))
    return coverages, slack


def _weighted(cells: np.ndarray, scores: np.ndarray) -> np.ndarray:
    model = WeightedConformal(LEVEL).fit(cells[:, None], scores, ratio=RATIO[cells])
    return model.predict(np.array([[0.0], [1.0]]), ratio=RATIO)


def _within_theorem(coverages: np.ndarray, slack: np.ndarray) -> bool:
    """Say whether the mean lies in [1-α, 1-α + E max share] up to the error of a mean over seeds."""
    error = WIDTH * coverages.std() / np.sqrt(SEEDS)
    return bool(LEVEL - error <= coverages.mean() <= LEVEL + slack.mean() + error)


def test_weighted_coverage_with_the_true_ratio_lies_in_its_exact_band() -> None:
    """Tibshirani et al. (2019), corollary 1, with the upper bound for scores without ties."""
    assert _within_theorem(*_weighted_coverages(_weighted))


def test_weighted_coverage_by_counting_one_row_a_seed() -> None:
    """Independent test rows, one per seed: the count of covered ones is binomial, no closed form needed."""
    covered = 0
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        x, new = rng.normal(size=N), 0.8 + rng.normal()
        scores, score = (
            np.abs(0.3 + 0.6 * np.abs(v)) * np.abs(rng.normal(size=np.shape(v))) for v in (x, new)
        )
        model = WeightedConformal(LEVEL).fit(x[:, None], scores, ratio=np.exp(0.8 * x))
        covered += int(score <= model.predict(np.array([[new]]), ratio=np.exp(0.8 * np.array([new])))[0])
    low = stats.binom.ppf(5e-4, SEEDS, LEVEL)
    assert covered >= low
    assert covered < SEEDS


def _no_mass_at_infinity(cells: np.ndarray, scores: np.ndarray) -> np.ndarray:
    model = WeightedConformal(LEVEL).fit(cells[:, None], scores, ratio=RATIO[cells])
    return model.predict(np.array([[0.0], [1.0]]), ratio=np.zeros(2))


def _no_weights(cells: np.ndarray, scores: np.ndarray) -> np.ndarray:
    return SplitConformal(LEVEL).fit(cells[:, None], scores).predict(np.array([[0.0], [1.0]]))


def _inverted(cells: np.ndarray, scores: np.ndarray) -> np.ndarray:
    model = WeightedConformal(LEVEL).fit(cells[:, None], scores, ratio=1 / RATIO[cells])
    return model.predict(np.array([[0.0], [1.0]]), ratio=1 / RATIO)


def _apart(cells: np.ndarray, scores: np.ndarray) -> np.ndarray:
    model = WeightedConformal(LEVEL).fit(cells[:, None], np.sort(scores), ratio=np.sort(RATIO[cells])[::-1])
    return model.predict(np.array([[0.0], [1.0]]), ratio=RATIO)


@pytest.mark.parametrize("wrong", [_no_mass_at_infinity, _no_weights, _inverted, _apart])
def test_the_weighted_check_sees_mistakes(wrong: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
    assert not _within_theorem(*_weighted_coverages(wrong))
