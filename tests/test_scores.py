"""The law of scores, over the registry: y lies in region(p, t) if and only if score(p, y) <= t."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from commands import lrqr, predicted, write
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lrqr import plugins
from lrqr.errors import DataError, UsageError
from lrqr.scores import scoring

if TYPE_CHECKING:
    from pathlib import Path

NAMES = plugins.names("scores")
REGRESSION = tuple(name for name in NAMES if plugins.load("scores", name).TASK == "regression")
CLASSIFICATION = tuple(name for name in NAMES if plugins.load("scores", name).TASK == "classification")
finite = st.floats(-1e300, 1e300)
positive = st.floats(1e-3, 1e6)


def _row(data: st.DataObject, inputs: tuple[str, ...]) -> np.ndarray:
    return np.array([[data.draw(positive if name == "spread" else finite, label=name) for name in inputs]])


def _inside(bounds: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (bounds[:, 0] <= y) & (y <= bounds[:, 1])


def test_the_registry_holds_the_promised_scores() -> None:
    assert set(NAMES) >= {"absolute", "normalized", "cqr", "lac", "neg-log", "aps", "raps", "precomputed"}
    with pytest.raises(UsageError, match="did you mean 'absolute'"):
        plugins.load("scores", "absolut")


@pytest.mark.parametrize("name", REGRESSION)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_law_regression_any_threshold(name: str, data: st.DataObject) -> None:
    module = plugins.load("scores", name)
    prediction = _row(data, module.INPUTS)
    threshold = np.array(
        [data.draw(finite | st.sampled_from([np.inf, -np.inf, 0.0, -0.0]), label="threshold")]
    )
    bounds = module.region(prediction, threshold)
    assert bounds.shape == (1, 2)
    probes = [data.draw(finite, label="y"), *prediction[0], *bounds[0]]
    with np.errstate(over="ignore"):  # a neighbor of the largest number is infinity
        probes += [np.nextafter(bound, side) for bound in bounds[0] for side in (-np.inf, np.inf)]
    for y in np.array([probe for probe in probes if np.isfinite(probe)]):
        with np.errstate(over="ignore"):
            scored = module.score(prediction, np.array([y]))
        assert _inside(bounds, np.array([y])) == (scored <= threshold)


@pytest.mark.parametrize("name", REGRESSION)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_law_regression_at_the_boundary(name: str, scale: float) -> None:
    """The threshold is the row's own score: the row is covered, with a float less it is not."""
    module = plugins.load("scores", name)
    rng = np.random.default_rng(1)
    prediction = np.abs(rng.normal(size=(5000, len(module.INPUTS)))) + 0.1
    y = prediction[:, 0] + scale * rng.standard_t(2, size=5000)
    threshold = module.score(prediction, y)
    assert _inside(module.region(prediction, threshold), y).all()
    assert not _inside(module.region(prediction, np.nextafter(threshold, -np.inf)), y).any()


def test_a_naive_interval_would_break_the_law() -> None:
    rng = np.random.default_rng(1)
    center, y = rng.normal(size=5000), rng.normal(size=5000)
    threshold = np.abs(y - center)
    naive = np.column_stack([center - threshold, center + threshold])
    assert not _inside(naive, y).all()


@settings(max_examples=200, deadline=None)
@given(edge=finite, threshold=finite)
@example(edge=-1.0, threshold=1.0)
@example(edge=1e308, threshold=1e308)
@example(edge=5e-324, threshold=-1e308)
def test_interval_end_is_the_outermost_float(edge: float, threshold: float) -> None:
    """Exact rational check: the upper end is inside and every float beyond it rounds to a larger score."""
    end = scoring.interval(np.array([edge]), np.array([edge]), np.array([threshold]))[0, 1]
    largest = np.finfo(float).max
    if end == -np.inf:  # an empty interval: even the edge itself scores more
        assert threshold < 0
        return
    if end < largest:
        beyond = float(np.nextafter(end, np.inf))
        assert Fraction(beyond) - Fraction(edge) > Fraction(threshold)
        assert beyond - edge > threshold
    if abs(end) <= largest:
        assert end - edge <= threshold


@pytest.mark.parametrize("name", NAMES)
def test_infinite_thresholds(name: str) -> None:
    module = plugins.load("scores", name)
    k = 4 if module.TASK == "classification" else len(module.INPUTS)
    prediction = np.full((3, k), 0.25)
    everything = module.region(prediction, np.full(3, np.inf))
    nothing = module.region(prediction, np.full(3, -np.inf))
    if module.TASK == "classification":
        assert everything.shape == (3, 4)
        assert everything.all()
        assert not nothing.any()
    else:
        np.testing.assert_array_equal(everything, [[-np.inf, np.inf]] * 3)
        np.testing.assert_array_equal(nothing, [[np.inf, -np.inf]] * 3)
    with pytest.raises(DataError, match="threshold holds NaN"):
        module.region(prediction, np.full(3, np.nan))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [0, 1])
def test_first_axis_is_kept(name: str, n: int) -> None:
    module = plugins.load("scores", name)
    k = 3 if module.TASK == "classification" else len(module.INPUTS)
    outcome = np.zeros(n, dtype=np.int64 if module.TASK == "classification" else np.float64)
    assert module.score(np.full((n, k), 1 / 3), outcome).shape == (n,)
    expected = (n, 3) if module.TASK == "classification" else (n, 2)
    assert module.region(np.full((n, k), 1 / 3), np.zeros(n)).shape == expected


@pytest.mark.parametrize("name", [name for name in NAMES if name not in CLASSIFICATION])
def test_below_the_lowest_score_nothing_is_covered(name: str) -> None:
    module = plugins.load("scores", name)
    if module.LOWEST == 0.0:
        prediction = np.array([[0.1, 2.0][: len(module.INPUTS)]])
        np.testing.assert_array_equal(module.region(prediction, np.array([-1e-9])), [[np.inf, -np.inf]])
        assert module.region(prediction, np.array([0.0]))[0, 0] == 0.1
    else:
        assert np.isneginf(module.LOWEST)


@pytest.mark.parametrize("name", CLASSIFICATION)
@settings(max_examples=80, deadline=None)
@given(
    raw=hnp.arrays(np.float64, (4, 7), elements=st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0])),
    threshold=st.floats(-0.5, 1.5),
    uniform=hnp.arrays(np.float64, 4, elements=st.floats(0, 1)) | st.none(),
)
def test_law_classification(name: str, raw: np.ndarray, threshold: float, uniform: np.ndarray | None) -> None:
    module = plugins.load("scores", name)
    raw[:, 0] += raw.sum(axis=1) == 0
    probability = raw / raw.sum(axis=1, keepdims=True)
    scores = np.column_stack([module.score(probability, np.full(4, k), uniform=uniform) for k in range(7)])
    assert scores.min() >= module.LOWEST
    for t in (threshold, *scores[0], *np.nextafter(scores[0], -np.inf)):
        sets = module.region(probability, np.full(4, t), uniform=uniform)
        np.testing.assert_array_equal(sets, scores <= t)


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_scores_do_not_depend_on_the_order_of_classes(name: str) -> None:
    module = plugins.load("scores", name)
    rng = np.random.default_rng(2)
    probability, outcome = rng.dirichlet(np.ones(9), size=50), rng.integers(0, 9, size=50)
    shuffle = rng.permutation(9)
    moved = module.score(probability[:, shuffle], np.argsort(shuffle)[outcome])
    np.testing.assert_array_equal(moved, module.score(probability, outcome))


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_labels_that_are_no_class_are_refused(name: str) -> None:
    module = plugins.load("scores", name)
    probability = np.full((2, 4), 0.25)
    for outcome in ([0, 4], [-1, 0], [0.0, 1.5], [0]):
        with pytest.raises(DataError, match="outcome"):
            module.score(probability, np.array(outcome))
    with pytest.raises(DataError, match="negative in row 1"):
        module.score(np.array([[0.5, 0.5], [1.5, -0.5]]), np.array([0, 1]))


def test_aps_against_its_definition() -> None:
    """Brute force: sort, add up to the class before, randomize by the class's own mass."""
    rng = np.random.default_rng(3)
    aps, raps = plugins.load("scores", "aps"), plugins.load("scores", "raps")
    probability, uniform = rng.dirichlet(np.full(10, 0.5), size=40), rng.uniform(size=40)
    for row, k in np.ndindex(40, 10):
        p = probability[row]
        ahead = [q for q in p if q > p[k]]
        one, outcome, u = p[None], np.array([k]), uniform[[row]]
        plain = sum(ahead)
        np.testing.assert_allclose(aps.score(one, outcome), plain, atol=1e-14)
        np.testing.assert_allclose(aps.score(one, outcome, uniform=u), plain + u * p[k], atol=1e-14)
        price = raps.PENALTY * max(len(ahead) + 1 - raps.FREE_CLASSES, 0)
        np.testing.assert_allclose(raps.score(one, outcome), plain + price, atol=1e-14)


@pytest.mark.parametrize("name", ["aps", "raps"])
def test_randomized_set_lies_inside_the_plain_one(name: str) -> None:
    """Row by row, at the same threshold."""
    module = plugins.load("scores", name)
    rng = np.random.default_rng(4)
    probability, uniform = rng.dirichlet(np.full(10, 0.5), size=1000), rng.uniform(size=1000)
    for t in (0.0, 0.3, 0.5, 0.9):
        plain = module.region(probability, np.full(1000, t))
        randomized = module.region(probability, np.full(1000, t), uniform=uniform)
        assert not (randomized & ~plain).any()
        assert randomized.sum() < plain.sum()
        assert plain.any(axis=1).all()
    with pytest.raises(DataError, match="uniform"):
        module.region(probability, np.full(1000, t), uniform=2 * uniform)


@pytest.mark.parametrize("randomized", [False, True])
def test_aps_covers_as_promised(randomized: bool) -> None:
    """Labels drawn from the probabilities, n = 1000, coverage .5, inside a 99 % exact band."""
    from scipy.stats import betabinom

    aps = plugins.load("scores", "aps")
    rng = np.random.default_rng(5)
    n, m, rank = 1000, 20_000, 501
    probability = rng.dirichlet(np.full(10, 0.5), size=n + m)
    labels = (rng.uniform(size=(n + m, 1)) > np.cumsum(probability, axis=1)).sum(axis=1)
    uniform = rng.uniform(size=n + m) if randomized else None
    scores = aps.score(probability, labels, uniform=uniform)
    threshold = np.sort(scores[:n])[rank - 1]
    sets = aps.region(
        probability[n:], np.full(m, threshold), uniform=None if uniform is None else uniform[n:]
    )
    covered = int(sets[np.arange(m), labels[n:]].sum())
    law = betabinom(m, rank, n + 1 - rank)  # coverage given the calibration rows is Beta(k, n + 1 - k)
    assert law.ppf(0.005) <= covered <= law.ppf(0.995)


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_zero_probability_classes_are_not_in_every_set(name: str) -> None:
    """50 right rows [1, 0, 0], 5 wrong rows [.4, .3, .3], α = .05: a row [1, 0, 0] gives {0}."""
    module = plugins.load("scores", name)
    probability = np.array([[1.0, 0.0, 0.0]] * 50 + [[0.4, 0.3, 0.3]] * 5)
    outcome = np.array([0] * 50 + [1, 2, 1, 2, 1])
    threshold = np.sort(module.score(probability, outcome))[54 - 1]  # ceil(56 * .95) = 54
    np.testing.assert_array_equal(
        module.region(probability[:1], np.array([threshold])), [[True, False, False]]
    )


def test_neg_log_is_exact_at_probability_zero() -> None:
    """A class of probability 0 joins the set at an infinite threshold only; other sets are those of lac."""
    module, lac = plugins.load("scores", "neg-log"), plugins.load("scores", "lac")
    probability = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    np.testing.assert_array_equal(module.score(probability, np.array([1, 2])), [np.inf, np.inf])
    np.testing.assert_array_equal(module.score(probability, np.array([0, 1])), [0.0, -np.log(0.5)])
    largest = np.full(2, np.finfo(float).max)
    np.testing.assert_array_equal(module.region(probability, largest), probability > 0)
    assert module.region(probability, np.full(2, np.inf)).all()
    drawn = np.random.default_rng(6).dirichlet(np.ones(5), size=200)
    for p in (0.01, 0.2, 0.7):
        np.testing.assert_array_equal(
            module.region(drawn, np.full(200, -np.log(p))), lac.region(drawn, np.full(200, 1.0 - p))
        )


def test_split_sets_are_the_same_for_lac_and_neg_log() -> None:
    """Both rank outcomes alike, and a conformal quantile knows ranks only."""
    rng = np.random.default_rng(7)
    probability, outcome = rng.dirichlet(np.ones(6), size=300), rng.integers(0, 6, size=300)
    sets = []
    for name in ("lac", "neg-log"):
        module = plugins.load("scores", name)
        threshold = np.sort(module.score(probability[:199], outcome[:199]))[180 - 1]
        sets.append(module.region(probability[199:], np.full(101, threshold)))
    np.testing.assert_array_equal(*sets)
    assert 0 < sets[0].sum() < sets[0].size


def test_spread_must_be_positive() -> None:
    normalized = plugins.load("scores", "normalized")
    with pytest.raises(DataError, match=r"spread must be positive, but row 1 \(from 0\) has 0"):
        normalized.score(np.array([[1.0, 1.0], [1.0, 0.0]]), np.zeros(2))


def test_precomputed_returns_the_threshold() -> None:
    module = plugins.load("scores", "precomputed")
    nothing = np.empty((2, 0))
    np.testing.assert_array_equal(module.score(nothing, np.array([3.0, -1.0])), [3.0, -1.0])
    np.testing.assert_array_equal(
        module.region(nothing, np.array([0.5, 2.0])), [[-np.inf, 0.5], [-np.inf, 2.0]]
    )


def test_classes_of_probability_zero_stay_out(tmp_path: Path) -> None:
    sure = pd.DataFrame({"x": 0.0, "p_0": 1.0, "p_1": 0.0, "p_2": 0.0, "y": 0}, index=range(50))
    wrong = pd.DataFrame({"x": 0.0, "p_0": 0.4, "p_1": 0.3, "p_2": 0.3, "y": 1}, index=range(5))
    frame = pd.concat([sure, wrong]).assign(x=np.linspace(0.0, 1.0, 55))
    paths = write(tmp_path, source=frame, target=frame[["x"]], test=frame.head(1))
    for score in ("lac", "aps"):
        options = (
            "--outcome",
            "y",
            "--probability",
            "p_*",
            "--score",
            score,
            "--method",
            "split",
            "--alpha",
            "0.05",
        )
        model = tmp_path / score
        assert lrqr("fit", paths["source"], paths["target"], *options, "-o", model).code == 0
        out = predicted(tmp_path, rows="test", model=score)
        assert out[["in_0", "in_1", "in_2"]].to_numpy().tolist() == [[True, False, False]]
