"""Split conformal: worked numbers, warnings, brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from lrqr.errors import LrqrWarning
from lrqr.methods.split import SplitConformal


def _threshold(scores: list[float], coverage: float = 0.9) -> float:
    y = np.array(scores, dtype=float)
    return SplitConformal(coverage).fit(np.zeros((len(y), 1)), y).threshold_


def test_worked_numbers() -> None:
    assert _threshold(list(range(1, 10))) == 9.0
    assert _threshold(list(range(1, 20))) == 18.0
    assert _threshold([1, 1, 1, 2, 2], 0.6) == 2.0


@pytest.mark.parametrize("n", [5, 8])
def test_too_few_rows_are_infinite_and_said_so(n: int) -> None:
    with pytest.warns(LrqrWarning, match=rf"coverage 0.9 needs n >= 9 calibration rows, got {n}"):
        assert _threshold(list(range(1, n + 1))) == math.inf


def test_ties_are_covered() -> None:
    """All scores .5."""
    model = SplitConformal().fit(np.zeros((20, 1)), np.full(20, 0.5))
    assert (model.predict(np.zeros((20, 1))) >= 0.5).all()


@pytest.mark.parametrize("coverage", [0.2, 0.5, 0.7, 6 / 7])
def test_leave_one_out_coverage_on_every_order_of_seven(coverage: float) -> None:
    """Exchangeability by brute force: of seven rows, each once the test row, that share is covered."""
    rng = np.random.default_rng(0)
    for values in (rng.permutation(7).astype(float), np.array([0, 0, 1, 1, 1, 2, 5.0])):
        covered = 0
        for test in range(7):
            rest = np.delete(values, test)
            covered += values[test] <= _threshold(rest.tolist(), coverage)
        assert coverage <= covered / 7
        if len(set(values)) == 7:
            assert covered / 7 <= coverage + 1 / 7 + 1e-12


def test_every_subset_has_the_rank_of_exact_counting() -> None:
    """Brute force over all subsets of six scores: the smallest threshold with enough rows at or below it."""
    values = [3.0, 1.0, 4.0, 1.0, 5.0, 2.0]
    for size in range(2, 7):
        for subset in itertools.combinations(values, size):
            enough = [q for q in subset if sum(s <= q for s in subset) >= 0.5 * (size + 1)]
            assert _threshold(list(subset), 0.5) == min(enough)
