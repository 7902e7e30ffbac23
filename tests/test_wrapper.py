"""The wrappers among scikit-learn's tools: its checks, pipelines, metadata, several levels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from lrqr import LRQR, ConformalClassifier, ConformalRegressor
from lrqr.errors import DataError, LrqrWarning, UsageError


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([ConformalRegressor(Ridge()), ConformalClassifier(LogisticRegression())])
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def rows(n: int, shift: float = 0.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal([shift, 0.0, 0.0], size=(n, 3))
    return 100.0 + 20.0 * X, X[:, 1] + (0.3 + np.abs(X[:, 0])) * rng.normal(size=n)


@pytest.mark.parametrize("make", [ConformalRegressor, ConformalClassifier])
def test_sample_weight_is_refused_by_name_with_the_reason(make: Any) -> None:
    X, y = rows(50)
    model = make(Ridge() if make is ConformalRegressor else LogisticRegression())
    with pytest.raises(UsageError, match=r"sample_weight is refused: .* likelihood ratios are ratio="):
        model.fit(X, y > 0, sample_weight=np.ones(50))
    with pytest.raises(UsageError, match="no keyword 'X_targt'"):
        model.fit(X, y > 0, X_targt=X)


@pytest.mark.parametrize("method", ["lrqr", "weighted", LRQR(coverage=0.8)])
@pytest.mark.parametrize("feature_map", ["auto", "given"])
def test_a_level_is_as_if_it_had_been_promised(method: Any, feature_map: Any) -> None:
    X, y = rows(240)
    X_target = rows(100, 0.5, 1)[0]
    options = {"method": method, "feature_map": feature_map}
    model = ConformalRegressor(Ridge(), **options, coverage=0.8).fit(X, y, X_target=X_target)
    several = model.predict_interval(X_target, alpha=[0.2, 0.4])
    assert several.shape == (100, 2, 2)
    assert np.array_equal(several[..., 0], model.predict_interval(X_target))
    if isinstance(method, str):
        other = ConformalRegressor(Ridge(), **options, alpha=0.4)
    else:
        other = ConformalRegressor(Ridge(), method=LRQR(coverage=0.6), feature_map=feature_map)
    expected = other.fit(X, y, X_target=X_target).predict_interval(X_target)
    assert np.array_equal(several[..., 1], expected)
    assert np.array_equal(model.predict_interval(X_target, coverage=0.6), expected)
    assert model.predict_interval(X_target[:0], coverage=[0.6]).shape == (0, 2, 1)


def test_sets_at_several_levels() -> None:
    X, y = rows(240)
    model = ConformalClassifier(LogisticRegression(max_iter=1000)).fit(X, np.digitize(y, [-0.5, 0.5]))
    assert model.predict_set(X, coverage=[0.5, 0.9]).shape == (240, 3, 2)
    assert model.predict_set(X, alpha=0.1).shape == (240, 3)
    assert model.predict_threshold(X, alpha=(0.1, 0.2, 0.3)).shape == (240, 3)


def test_wrong_levels_are_named() -> None:
    X, y = rows(60)
    with pytest.raises(UsageError, match=r"coverage=0.8 and alpha=0.1 were both given"):
        ConformalRegressor(Ridge(), coverage=0.8, alpha=0.1).fit(X, y)
    with pytest.raises(UsageError, match="alpha must lie strictly between 0 and 1, got 10"):
        ConformalRegressor(Ridge(), alpha=10).fit(X, y)
    model = ConformalRegressor(Ridge()).fit(X, y)
    with pytest.raises(UsageError, match="did you mean"):
        model.predict_interval(X, coverage=[0.9, 95])
    with pytest.raises(UsageError, match="both given"):
        model.predict_interval(X, coverage=0.9, alpha=0.1)


@pytest.mark.parametrize(
    ("scaler", "output"),
    [
        (StandardScaler(), "default"),
        (StandardScaler(), "pandas"),
        (MinMaxScaler(), "default"),
        (RobustScaler(), "default"),
    ],
)
def test_a_pipeline_that_transforms_one_side_is_found_out(scaler: Any, output: Any) -> None:
    (X, y), X_target = rows(200), rows(80, 0.3, 1)[0]
    if output == "pandas":
        X, X_target = (pd.DataFrame(part, columns=list("abc")) for part in (X, X_target))
    pipeline = Pipeline(
        [
            ("scale", scaler.set_output(transform=output)),
            ("model", ConformalRegressor(Ridge(), method="split")),
        ]
    )
    told = "X was transformed and X_target was not; preprocessing goes inside"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pipeline.fit(X, y, model__X_target=X_target)
    assert any(told in str(item.message) and item.category is LrqrWarning for item in caught)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inside = make_pipeline(scaler, Ridge())
        ConformalRegressor(inside, method="split").fit(X, y, X_target=X_target)
        scaled = scaler.fit(X)  # the same, done by hand and right
        ConformalRegressor(Ridge(), method="split").fit(
            scaled.transform(X), y, X_target=scaled.transform(X_target)
        )


def test_a_pipeline_that_makes_other_columns_is_found_out() -> None:
    X, y = rows(200)
    frame = pd.DataFrame(X, columns=list("abc"))
    model = ConformalRegressor(Ridge())
    with pytest.raises(DataError, match="X was transformed and X_target was not; preprocessing goes inside"):
        model.fit(X[:, :2], y, X_target=frame)


def test_metadata_reach_the_model_where_they_are_asked_for() -> None:
    (X, y), X_target = rows(200), rows(80, 0.3, 1)[0]
    plain = ConformalRegressor(Ridge(), method="weighted")
    scaler = StandardScaler().fit(X)
    expected = plain.fit(scaler.transform(X), y, X_target=scaler.transform(X_target)).predict_interval(
        scaler.transform(X_target)
    )
    with sklearn.config_context(enable_metadata_routing=True):
        asking = ConformalRegressor(Ridge(), method="weighted").set_fit_request(X_target=True)
        steps = [("scale", StandardScaler()), ("model", asking)]
        pipeline = Pipeline(steps, transform_input=["X_target"]).fit(X, y, X_target=X_target)
        assert np.array_equal(pipeline[-1].predict_interval(pipeline[0].transform(X_target)), expected)
        search = GridSearchCV(asking, {"estimator__alpha": [0.1, 1.0]}, cv=2).fit(X, y, X_target=X_target)
        assert np.isfinite(search.best_estimator_.predict_interval(X_target)).all()


def test_frames_whose_columns_are_numbers() -> None:
    X, y = rows(200)
    named = ConformalRegressor(Ridge()).fit(X, y).predict_interval(X)
    numbered = ConformalRegressor(Ridge()).fit(pd.DataFrame(X), y).predict_interval(pd.DataFrame(X))
    assert np.allclose(named, numbered, rtol=1e-9)  # in another order in memory
