"""The base of the methods: checks, warnings, states, row-wise sums."""

from __future__ import annotations

import json
import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrqr import plugins
from lrqr.arrays import row_dot
from lrqr.errors import DataError, LrqrWarning, UsageError
from lrqr.methods.doubly_robust import DoublyRobust
from lrqr.methods.estimator import check_coverage, refuse_known, warn_few
from lrqr.methods.split import SplitConformal
from lrqr.methods.weighted import WeightedConformal
from lrqr.stats.ratio import LikelihoodRatio


def test_levels_are_checked_with_a_hint() -> None:
    assert check_coverage(0.9) == 0.9
    with pytest.raises(UsageError, match=r"got 90; did you mean 0\.9\?"):
        check_coverage(90)
    for level in (0, 1, -0.1, math.nan, 100):
        with pytest.raises(UsageError, match="strictly between 0 and 1"):
            check_coverage(level)


@pytest.mark.parametrize("seed", [-1, 1.5, "a", 2**32, np.random.RandomState(0)])
@pytest.mark.parametrize("name", [n for n in plugins.names("methods") if n != "split"])
def test_what_is_no_seed_is_refused_by_every_method(name: str, seed: Any) -> None:
    method = plugins.load("methods", name).ESTIMATOR(random_state=seed)
    with pytest.raises(UsageError, match=r"seed .* integer from 0 to 4294967295, got"):
        method.fit(np.arange(30.0)[:, None], np.arange(30.0), X_target=np.arange(20.0)[:, None])


@given(st.integers(1, 40), st.integers(1, 130))
def test_row_sums_do_not_depend_on_the_batch(n: int, d: int) -> None:
    rng = np.random.default_rng(n * 1000 + d)
    X, coef = rng.normal(size=(n, d)), rng.normal(size=d)
    whole = row_dot(X, coef)
    assert whole == pytest.approx(X @ coef, abs=1e-10)
    assert np.array_equal(np.concatenate([row_dot(X[i : i + 1], coef) for i in range(n)]), whole)


def test_warnings_say_what_is_missing() -> None:
    with pytest.warns(LrqrWarning, match="needs n >= 19 calibration rows, got 10"):
        warn_few(np.ones(10), 0.95)
    with pytest.warns(LrqrWarning, match=r"effective sample size is 1\.0 of 100 rows"):
        warn_few(np.r_[1e6, np.ones(99)], 0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_few(np.ones(9), 0.9)


@pytest.mark.parametrize("name", [n for n in plugins.names("methods") if n != "lrqr"])
@pytest.mark.parametrize("n", [2, 5, 8])
def test_few_rows_are_said_to_give_what_they_give(name: str, n: int) -> None:
    rng = np.random.default_rng(n)
    X, X_target = rng.normal(size=(n, 1)), rng.normal(size=(50, 1))
    with pytest.warns(LrqrWarning, match="calibration rows, got") as caught:
        method = plugins.load("methods", name).ESTIMATOR().fit(X, rng.exponential(size=n), X_target=X_target)
    said = str(caught[0].message)
    if np.isfinite(method.predict(X_target)).all():
        assert said.startswith("the threshold is finite but promises less: ")
    else:
        assert said.startswith("all thresholds may be infinite: ")


@pytest.mark.parametrize("name", plugins.names("methods"))
@pytest.mark.parametrize("unit", [1e305, 1e-305])
def test_scores_in_units_that_overflow_are_refused(name: str, unit: float) -> None:
    rng = np.random.default_rng(0)
    X, y, X_target = rng.normal(size=(60, 2)), rng.uniform(1.0, 2.0, size=60), rng.normal(size=(40, 2))
    with pytest.raises(DataError, match=r"largest score in size is .*; put y in other units"):
        plugins.load("methods", name).ESTIMATOR().fit(X, y * unit, X_target=X_target)


def test_one_threshold_that_rests_on_heavy_rows_is_not_called_infinite() -> None:
    ratio = np.r_[1e6, np.ones(99)]
    with pytest.warns(LrqrWarning, match=r"nearly all weight, and the threshold rests on them\."):
        method = DoublyRobust().fit(np.zeros((100, 1)), np.arange(100.0), ratio=ratio)
    assert np.isfinite(method.threshold_)


def test_the_warning_points_at_the_callers_line() -> None:
    with pytest.warns(LrqrWarning) as caught:
        SplitConformal().fit(np.zeros((3, 1)), np.arange(3.0))
    assert caught[0].filename == __file__


def test_only_known_ratios_are_refused() -> None:
    refuse_known(None, "because")
    refuse_known(LikelihoodRatio(), "because")
    with pytest.raises(UsageError, match="would be ignored: because"):
        refuse_known(np.ones(3), "because")


@pytest.mark.filterwarnings("ignore::lrqr.errors.LrqrWarning")
def test_infinite_values_survive_strict_json() -> None:
    model = SplitConformal().fit(np.zeros((3, 1)), np.arange(3.0))
    state = json.loads(json.dumps(model.to_state(), allow_nan=False))
    again = SplitConformal.from_state(state)
    assert again.threshold_ == math.inf
    assert again.predict(np.zeros((2, 1))).tolist() == [math.inf, math.inf]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_are_matched_by_name(frame: Any) -> None:
    """The names seen at fit are kept, also in the state, and another order is refused."""
    rng = np.random.default_rng(0)
    columns = {"a": rng.normal(size=50), "b": rng.normal(size=50)}
    model = WeightedConformal().fit(frame(columns), columns["a"], X_target=frame(columns))
    plain = np.column_stack([columns["a"], columns["b"]])
    again = WeightedConformal.from_state(model.to_state())
    for fitted in (model, again):
        assert fitted.feature_names_in_.tolist() == ["a", "b"]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            expected = fitted.predict(plain)
        assert np.array_equal(fitted.predict(frame(columns)), expected)
        with pytest.raises(ValueError, match="feature names"):
            fitted.predict(frame({"b": columns["b"], "a": columns["a"]}))


def test_bad_rows_are_named() -> None:
    X, y = np.zeros((10, 2)), np.arange(10.0)
    X[3, 1] = np.nan
    with pytest.raises(DataError, match=r"X holds NaN or infinity in 1 of 10 rows \(rows 3"):
        SplitConformal().fit(X, y)
    with pytest.raises(DataError, match="y holds NaN"):
        SplitConformal().fit(np.zeros((10, 2)), np.where(y == 4, np.nan, y))
    with pytest.raises(DataError, match="y has 9 rows, expected 10"):
        SplitConformal().fit(np.zeros((10, 2)), y[:9])
    with pytest.raises(DataError, match="X_target holds NaN"):
        SplitConformal().fit(np.zeros((10, 2)), y, X_target=X)
    with pytest.raises(DataError, match="0 rows"):
        SplitConformal().fit(np.zeros((0, 2)), y[:0])
