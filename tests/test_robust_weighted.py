"""Robust weighted conformal: worked numbers, and weighted conformal at a higher level."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lrqr.errors import UsageError
from lrqr.methods.divergences import robust_level
from lrqr.methods.robust_weighted import RobustWeighted
from lrqr.methods.weighted import WeightedConformal

pytestmark = pytest.mark.filterwarnings("ignore::lrqr.errors.LrqrWarning")


@pytest.mark.parametrize(
    ("radius", "level", "threshold"),
    [
        (0.0, 0.75, 7.0),
        (0.0005, 0.76352353, 8.0),
        (0.001, 0.76902355, 8.0),
        (0.02, 0.82928795, 8.0),
        (0.1, 0.90444303, 8.0),
        (0.3, 0.96460683, math.inf),
    ],
)
def test_worked_numbers(radius: float, level: float, threshold: float) -> None:
    """R6.1."""
    weights = np.array([1.0, 1, 2, 2, 3, 3, 4, 4])
    model = RobustWeighted(0.75, radius=radius).fit(np.zeros((8, 1)), np.arange(1.0, 9), ratio=weights)
    assert model.level_ == pytest.approx(level, abs=6e-9)
    assert model.predict(np.zeros((1, 1)), ratio=np.ones(1)).tolist() == [threshold]


def test_it_is_weighted_conformal_at_the_robust_level() -> None:
    rng = np.random.default_rng(0)
    X, target, y = rng.normal(size=(200, 2)), 0.5 + rng.normal(size=(150, 2)), rng.exponential(size=200)
    level = robust_level(0.9, 0.02, "kl")
    robust = RobustWeighted().fit(X, y, X_target=target)
    assert np.array_equal(
        robust.predict(target), WeightedConformal(level).fit(X, y, X_target=target).predict(target)
    )
    plain = WeightedConformal().fit(X, y, X_target=target).predict(target)
    assert np.array_equal(RobustWeighted(radius=0.0).fit(X, y, X_target=target).predict(target), plain)
    assert (robust.predict(target) >= plain).all()


def test_infinite_from_its_bound_on() -> None:
    """Finite iff w* <= (1-β)/β·Σw with β the robust level."""
    beta = robust_level(0.9, 0.02, "kl")
    limit = (1 - beta) / beta * 50
    model = RobustWeighted().fit(np.zeros((50, 1)), np.arange(50.0), ratio=np.ones(50))
    got = model.predict(np.zeros((2, 1)), ratio=np.array([0.999, 1.001]) * limit)
    assert got.tolist() == [49.0, math.inf]


def test_bad_options_are_named() -> None:
    for options, message in (({"radius": -0.1}, "radius"), ({"divergence": "k"}, "unknown divergence")):
        with pytest.raises(UsageError, match=message):
            RobustWeighted(**options).fit(np.zeros((20, 1)), np.arange(20.0))
