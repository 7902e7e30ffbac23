"""DRO: worked thresholds, the three rank conventions, worst slabs by brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import worst_case_probability

from lrqr.errors import LrqrWarning, UsageError
from lrqr.methods.dro import DistributionallyRobust, worst_slab_coverage, worst_slab_quantile
from lrqr.methods.split import SplitConformal
from lrqr.stats.ratio import LikelihoodRatio


def _threshold(n: int, **options: object) -> float:
    model = DistributionallyRobust(**options)
    return model.fit(np.zeros((n, 1)), np.arange(1.0, n + 1)).threshold_


@pytest.mark.parametrize("divergence", ["kl", "chi2"])
@pytest.mark.parametrize(
    ("rank", "first", "second"), [("n+1", 94, math.inf), ("plug-in", 93, 20), ("alpha-first", 94, 20)]
)
def test_rank_conventions(divergence: str, rank: str, first: float, second: float) -> None:
    """F4.6 and F4.7."""
    assert _threshold(99, divergence=divergence, radius=0.01, rank=rank) == first
    if math.isinf(second):
        with pytest.warns(LrqrWarning, match="the threshold is infinite: 20 rows support a"):
            assert _threshold(20, divergence=divergence, radius=0.05, rank=rank) == second
    else:
        assert _threshold(20, divergence=divergence, radius=0.05, rank=rank) == second


def test_infinite_beyond_the_critical_radius() -> None:
    """F4.5 at n = 100."""
    assert _threshold(100, radius=0.1453) == 100.0
    with pytest.warns(LrqrWarning, match=r"100 rows support a kl radius up to 0\.145, but it is 0\.15"):
        assert _threshold(100, radius=0.15) == math.inf


def test_too_few_rows_for_the_level() -> None:
    with pytest.warns(LrqrWarning, match="needs n >= 9"):
        assert _threshold(5, radius=0.0) == math.inf


def test_zero_radius_is_split() -> None:
    y = np.random.default_rng(0).normal(size=80)
    X = np.zeros((80, 1))
    assert DistributionallyRobust(radius=0.0).fit(X, y).threshold_ == SplitConformal().fit(X, y).threshold_
    # no target: no shift, and the estimated radius is 0
    model = DistributionallyRobust().fit(X, y)
    assert (model.radius_, model.threshold_) == (0.0, SplitConformal().fit(X, y).threshold_)


def test_estimated_radius_is_the_plug_in_of_the_ratio() -> None:
    rng = np.random.default_rng(0)
    X, target, y = rng.normal(size=(300, 2)), 0.2 + rng.normal(size=(200, 2)), rng.normal(size=300)
    ratio = LikelihoodRatio().fit(X, target)
    model = DistributionallyRobust().fit(X, y, X_target=target, ratio=ratio)
    assert model.radius_ == pytest.approx(
        max(0.0, np.log(ratio.target_).mean() - np.log(ratio.source_.mean()))
    )
    known = np.exp(0.2 * X[:, 0])
    model = DistributionallyRobust().fit(X, y, ratio=known)
    scaled = known / known.mean()
    assert model.radius_ == pytest.approx((scaled * np.log(scaled)).mean())


def test_covers_the_worst_distribution_of_the_ball() -> None:
    """The k-th of n scores holds probability at least g(level) ... of any reweighting in the ball."""
    y = np.arange(1.0, 201.0)
    model = DistributionallyRobust(0.8, radius=0.05, rank="plug-in").fit(np.zeros((200, 1)), y)
    share = float(np.mean(y <= model.threshold_))
    assert worst_case_probability(share, 0.05, "kl") >= 0.8
    assert worst_case_probability(share - 1 / 200, 0.05, "kl") < 0.8


def test_worked_slabs() -> None:
    """F4.9 and F4.10."""
    covered = np.array([1, 1, 0, 1, 0, 0, 1, 1, 1, 1.0])
    assert [worst_slab_coverage(covered, slab) for slab in (0.2, 0.3, 0.5)] == [0.0, 0.25, 0.4]
    scores = np.array([1.0, 2, 9, 3, 8, 10, 4, 5, 6, 7])
    assert [worst_slab_quantile(scores, slab, 0.75) for slab in (0.3, 0.5, 1.0)] == [10.0, 9.0, 8.0]


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=25), st.floats(0.01, 1.0))
def test_worst_slab_equals_brute_force(covered: list[float], slab: float) -> None:
    n = len(covered)
    width = max(1, math.ceil(slab * n - 1e-9))
    windows = [covered[i:j] for i in range(n) for j in range(i + width, n + 1)]
    assert worst_slab_coverage(np.array(covered), slab) == pytest.approx(min(np.mean(w) for w in windows))


def test_worst_slab_radius_widens_where_scores_grow() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.abs(rng.normal(size=400)) * np.exp(X[:, 0])
    model = DistributionallyRobust(radius="worst-slab").fit(X, y)
    assert model.threshold_ > SplitConformal().fit(X, y).threshold_
    assert math.isnan(model.radius_)
    state = model.to_state()
    assert state["fitted"]["radius_"] == "nan"
    assert math.isnan(DistributionallyRobust.from_state(state).radius_)
    order = rng.permutation(400)
    assert DistributionallyRobust(radius="worst-slab").fit(X[order], y[order]).threshold_ == model.threshold_


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": "n"}, "unknown rank 'n'"),
        ({"divergence": "KL"}, "did you mean 'kl'"),
        ({"radius": -1.0}, "radius"),
        ({"radius": "worst-slab", "slab": 0.0}, "slab"),
    ],
)
def test_bad_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        _threshold(20, **options)
