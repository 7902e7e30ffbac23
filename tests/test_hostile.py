"""Numbers that nobody means well with: every method answers without NaN, or says by name what is wrong."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lrqr import LRQR, plugins
from lrqr.calibrate.threshold import ThresholdModel
from lrqr.errors import LrqrError, LrqrWarning

METHODS = plugins.names("methods")
SCALES = st.sampled_from([1.0, 1.0, 1.0, 1e-300, 1e-160, 1e-20, 1e-8, 1e8, 1e20, 1e140, 1e160, 1e300])
ODD = st.sampled_from([0.0, -0.0, 5e-324, 1e-300, 1e150, 1e308, -1e308, np.inf, np.nan])


@st.composite
def matrices(draw: Any, rows: int, columns: int) -> np.ndarray[Any, Any]:
    """Rows with copies, ties, constant and repeated columns, and columns in absurd units."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    X = rng.normal(size=(rows, columns))
    for k in range(columns):
        kind = draw(st.sampled_from(["plain", "ties", "constant", "copy", "scaled"]))
        if kind == "ties":
            X[:, k] = np.round(X[:, k])
        elif kind == "constant":
            X[:, k] = draw(st.sampled_from([0.0, 1.0, -1e8]))
        elif kind == "copy" and k:
            X[:, k] = X[:, k - 1]
        elif kind == "scaled":
            X[:, k] *= draw(SCALES)
    if rows > 1 and draw(st.booleans()):
        X[rng.integers(rows, size=rows // 2)] = X[0]
    return X


@st.composite
def problems(draw: Any) -> tuple[Any, Any, Any, Any]:
    """Features, scores, target and ratios of few rows."""
    n, m, d = draw(st.integers(1, 30)), draw(st.integers(1, 12)), draw(st.integers(0, 8))
    X, Z = draw(matrices(n, d)), draw(matrices(m, d))
    scores = np.abs(draw(matrices(n, 1))[:, 0])
    ratio = np.abs(draw(matrices(n, 1))[:, 0])
    for array in (X, Z, scores, ratio):
        if array.size and draw(st.integers(0, 5)) == 0:
            array.flat[draw(st.integers(0, array.size - 1))] = draw(ODD)
    return X, scores, Z, ratio


def hold(name: str, problem: tuple[Any, Any, Any, Any], coverage: float) -> None:
    """Fit and ask; anything but thresholds without NaN, or an error of ours, fails."""
    X, scores, Z, ratio = problem
    method = plugins.load("methods", name).ESTIMATOR(coverage=coverage)
    given_ratio = {"ratio": ratio} if method.USES_RATIO else {}
    rows = {} if not given_ratio else {"ratio": np.ones(len(Z))}
    for known in (given_ratio, {}):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LrqrWarning)
                fitted = method.fit(X, scores, X_target=Z, **known)
                thresholds = fitted.predict(Z, **(rows if known else {}))
        except LrqrError:
            continue
        assert thresholds.shape == (len(Z),)
        assert not np.isnan(thresholds).any()


@pytest.mark.parametrize("name", METHODS)
@given(problems(), st.sampled_from([0.5, 0.9]))
@settings(max_examples=12, deadline=None, derandomize=True)
def test_every_method_answers_or_says_why(name: str, problem: Any, coverage: float) -> None:
    hold(name, problem, coverage)


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
@given(problems(), st.sampled_from([0.5, 0.9, 0.99]))
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_method_answers_or_says_why_long(name: str, problem: Any, coverage: float) -> None:
    hold(name, problem, coverage)


@pytest.mark.parametrize("feature_map", ["auto", "constant", "given"])
@given(problems())
@settings(max_examples=12, deadline=None, derandomize=True)
def test_a_threshold_model_answers_or_says_why(feature_map: Any, problem: Any) -> None:
    X, scores, Z, _ = problem
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LrqrWarning)
            thresholds = (
                ThresholdModel(coverage=0.8, feature_map=feature_map).fit(X, scores, X_target=Z).predict(Z)
            )
    except LrqrError:
        return
    assert not np.isnan(thresholds).any()


@given(
    st.integers(0, 10_000),
    st.integers(20, 60),
    st.integers(1, 4),
    st.sampled_from([2.0**-40, 2.0**-8, 2.0**30]),
)
@settings(max_examples=15, deadline=None, derandomize=True)
def test_units_order_and_copied_columns_change_nothing(seed: int, n: int, d: int, unit: float) -> None:
    """Of features with the ridge at 0; of scores with any ridge."""
    rng = np.random.default_rng(seed)
    X, Z, scores = rng.normal(size=(n, d)), rng.normal(0.3, 1.0, size=(n, d)), np.abs(rng.normal(size=n))

    def fit(X: Any, scores: Any, Z: Any) -> Any:
        return LRQR(coverage=0.8, regularization=0.3, ridge=0.0, tol=1e-9).fit(X, scores, X_target=Z)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LrqrWarning)
        plain, mixed = fit(X, scores, Z), rng.permutation(n)
        first, last = X[:, :1], Z[:, :1]
        # F is not convex in β: another order may, rarely, end the search at another local minimum
        assert fit(X[mixed], scores[mixed], Z).objective_ == pytest.approx(plain.objective_, rel=1e-2)
        for other, rows, factor in (
            (fit(X * unit, scores, Z * unit), Z * unit, 1.0),
            (fit(X, scores * unit, Z), Z, unit),
            (fit(np.hstack([X, first]), scores, np.hstack([Z, last])), np.hstack([Z, last]), 1.0),
        ):
            # the least value of F is one number; thresholds may move where F is flat
            assert other.objective_ == pytest.approx(plain.objective_, rel=1e-8)
            moved = other.predict(rows) / factor - plain.predict(Z)
            assert np.abs(moved).max() <= 1e-3 * np.abs(plain.predict(Z)).max()


@pytest.mark.parametrize("name", METHODS)
def test_thresholds_rise_with_the_coverage_on_average(name: str) -> None:
    """Over the target rows of four draws; row by row curves of two levels may cross."""
    rises = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, Z = rng.normal(size=(150, 2)), rng.normal(0.3, 1.0, size=(80, 2))
        scores = np.round(np.abs(rng.normal(size=150)) * (1.0 + X[:, 0] ** 2), 1)
        estimator = plugins.load("methods", name).ESTIMATOR
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LrqrWarning)
            levels = [
                estimator(coverage=level).fit(X, scores, X_target=Z).predict(Z) for level in (0.5, 0.7, 0.9)
            ]
        rises.append([np.minimum(found, 1e3).mean() for found in levels])
    assert (np.diff(np.mean(rises, axis=0)) > 0.0).all()
