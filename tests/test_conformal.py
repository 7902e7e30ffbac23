"""The wrappers: the law of scores, first axes, scikit-learn's habits, frames of both kinds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import lrqr
from lrqr import plugins
from lrqr.calibrate import store as artifact
from lrqr.calibrate.threshold import ThresholdModel
from lrqr.commands.compare import _affordable, all_methods
from lrqr.commands.wrapper import ConformalClassifier, ConformalRegressor
from lrqr.data.roles import Roles
from lrqr.errors import DataError, LrqrWarning, UsageError
from lrqr.methods.lrqr import LRQR
from lrqr.stats.quantiles import conformal_quantile

METHODS = plugins.names("methods")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2))
X_NEW = RNG.normal(0.7, 1.0, size=(150, 2))
Y = X[:, 0] + (0.3 + np.abs(X[:, 1])) * RNG.normal(size=300)
LABELS = np.array(["no", "maybe", "yes"])[np.digitize(X[:, 0] + 0.5 * RNG.normal(size=300), [-0.5, 0.5])]
RATIO = np.exp(0.7 * X.sum(axis=1) - 0.49)


def test_split_without_shift_is_the_order_statistic() -> None:
    center = LinearRegression().fit(X[:100], Y[:100])
    model = ConformalRegressor(center, method="split", prefit=True).fit(X[100:], Y[100:])
    q = conformal_quantile(np.abs(Y[100:] - center.predict(X[100:])), 0.9)
    bounds = model.predict_interval(X_NEW)
    np.testing.assert_allclose(bounds, center.predict(X_NEW)[:, None] + [-q, q], rtol=1e-12)
    inside = (Y[100:] >= model.predict_interval(X[100:])[:, 0]) & (
        Y[100:] <= model.predict_interval(X[100:])[:, 1]
    )
    assert inside.sum() == np.ceil(0.9 * 201)


@pytest.mark.usefixtures("small_map")
@pytest.mark.filterwarnings("ignore::lrqr.errors.LrqrWarning")  # some have no finite threshold here
@pytest.mark.parametrize("method", METHODS)
def test_threshold_state_round_trip_through_a_file(method: str, tmp_path: Any) -> None:
    scores = np.abs(Y)
    model = ThresholdModel(method).fit(X, scores, X_target=X_NEW)
    again = ThresholdModel.from_state(artifact.load(artifact.save(model.to_state(), tmp_path / "model")))
    assert np.array_equal(model.predict(X_NEW), again.predict(X_NEW))
    assert again.largest_score_ == scores.max()
    assert model.predict(X_NEW[:0]).shape == (0,)
    assert np.array_equal(again.predict(X_NEW[:1]), model.predict(X_NEW)[:1])


@pytest.mark.usefixtures("small_map")
@pytest.mark.filterwarnings("ignore::lrqr.errors.LrqrWarning")
@pytest.mark.parametrize("method", METHODS)
def test_rows_are_scored_each_on_its_own(method: str) -> None:
    model = ThresholdModel(method).fit(X, np.abs(Y), X_target=X_NEW)
    together = model.predict(X_NEW[:12])
    alone = np.concatenate([model.predict(X_NEW[i : i + 1]) for i in range(12)])
    assert np.array_equal(together, alone)


@pytest.mark.usefixtures("small_map")
@pytest.mark.parametrize("feature_map", ["given", "learned"])
def test_further_levels_are_fits_at_those_levels(feature_map: Any, tmp_path: Any) -> None:
    scores = np.abs(Y)
    model = ThresholdModel("lrqr", feature_map=feature_map).fit(X, scores, X_target=X_NEW, levels=(0.5, 0.8))
    again = ThresholdModel.from_state(artifact.load(artifact.save(model.to_state(), tmp_path / "model")))
    chosen = {"regularization": model.estimator_.regularization_, "ridge": model.estimator_.ridge_}
    for level in (0.5, 0.8):
        alone = ThresholdModel(LRQR(level, **chosen), feature_map=feature_map).fit(X, scores, X_target=X_NEW)
        assert np.array_equal(model.at(level).predict(X_NEW), alone.predict(X_NEW))
        assert np.array_equal(again.at(level).predict(X_NEW), alone.predict(X_NEW))
        assert again.at(level).coverage_ == level
    assert model.coverage_ == 0.9
    with pytest.raises(UsageError, match=r"not calibrated at 0\.7; its further levels are: 0\.5, 0\.8"):
        model.at(0.7)


@pytest.mark.usefixtures("small_map")
def test_learned_features_score_rows_each_on_its_own() -> None:
    model = ThresholdModel("lrqr", feature_map="learned").fit(X, np.abs(Y), X_target=X_NEW)
    alone = np.concatenate([model.predict(X_NEW[i : i + 1]) for i in range(12)])
    assert np.array_equal(model.predict(X_NEW[:12]), alone)
    tied = ThresholdModel("lrqr", feature_map="learned").fit(X, np.full(300, 0.3), X_target=X_NEW)
    np.testing.assert_allclose(tied.predict(X_NEW), 0.3, rtol=1e-6)


def test_an_estimator_and_a_name_mean_the_same() -> None:
    estimator = plugins.load("methods", "weighted").ESTIMATOR(coverage=0.8)
    named = ThresholdModel("weighted", coverage=0.8).fit(X, np.abs(Y), X_target=X_NEW)
    given = ThresholdModel(estimator).fit(X, np.abs(Y), X_target=X_NEW)
    assert given.coverage_ == 0.8
    assert np.array_equal(named.predict(X_NEW), given.predict(X_NEW))
    assert not hasattr(estimator, "weights_")


def test_infinite_policies() -> None:
    scores = np.array([5.0, 1.0, 4.0, 2.0, 3.0])
    with pytest.warns(LrqrWarning, match="needs n >= 9"):
        model = ThresholdModel("split").fit(X[:5], scores)
    assert np.array_equal(model.predict(X_NEW[:3]), [np.inf] * 3)
    assert np.array_equal(model.predict(X_NEW[:3], infinite="clip"), [5.0] * 3)
    with pytest.raises(DataError, match=r"3 of 3 rows have an infinite threshold \(rows 0, 1, 2"):
        model.predict(X_NEW[:3], infinite="error")
    with pytest.raises(UsageError, match="did you mean 'clip'"):
        model.predict(X_NEW[:3], infinite="clipp")  # type: ignore[arg-type]


def test_known_ratios_reach_both_sides() -> None:
    model = ThresholdModel("weighted").fit(X, np.abs(Y), ratio=RATIO)
    plain = ThresholdModel("weighted").fit(X, np.abs(Y), ratio=np.ones(len(X)))
    ones = np.ones(len(X_NEW))
    assert not np.array_equal(model.predict(X_NEW, ratio=ones), plain.predict(X_NEW, ratio=ones))
    with pytest.raises(UsageError):
        model.predict(X_NEW)


def test_wrong_choices_are_named() -> None:
    with pytest.raises(UsageError, match="did you mean 'split'"):
        ThresholdModel("splt").fit(X, np.abs(Y))
    with pytest.raises(UsageError, match="did you mean 'given'"):
        ThresholdModel("split", feature_map="givn").fit(X, np.abs(Y))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="learned features are for the methods that use none"):
        ThresholdModel("weighted", feature_map="learned").fit(X, np.abs(Y))
    with pytest.raises(UsageError, match=r"an estimator of lrqr\.methods, got Ridge"):
        ThresholdModel(Ridge()).fit(X, np.abs(Y))
    with pytest.raises(DataError, match="no labeled source row"):
        ThresholdModel("split").fit(X[:0], Y[:0])
    with pytest.raises(
        UsageError, match="'lac' is for classification, not for regression; choose one of: absolute"
    ):
        ConformalRegressor(Ridge(), conformity_score="lac").fit(X, Y)
    with pytest.raises(UsageError, match=r"needs an estimator with predict_proba\(\); Ridge has none"):
        ConformalClassifier(Ridge()).fit(X, LABELS)
    with pytest.raises(DataError, match="needs 2 column"):
        ConformalRegressor(Ridge(), conformity_score="cqr").fit(X, Y)
    with pytest.raises(DataError, match=r"shape \(3,\) for 300 rows"):
        ConformalRegressor(Ridge()).fit(X, Y[:3])


@pytest.mark.usefixtures("small_map")
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_the_first_axis_is_kept(rows: int) -> None:
    regressor = ConformalRegressor(Ridge()).fit(X, Y, X_target=X_NEW)
    assert regressor.predict_interval(X_NEW[:rows]).shape == (rows, 2)
    assert regressor.predict_threshold(X_NEW[:rows]).shape == (rows,)
    classifier = ConformalClassifier(LogisticRegression()).fit(X, LABELS, X_target=X_NEW)
    sets = classifier.predict_set(X_NEW[:rows])
    assert sets.shape == (rows, 3)
    assert sets.dtype == np.bool_


def test_intervals_hold_what_was_promised_on_new_rows() -> None:
    rng = np.random.default_rng(5)
    target = rng.normal(0.7, 1.0, size=(4000, 2))
    outcome = target[:, 0] + (0.3 + np.abs(target[:, 1])) * rng.normal(size=4000)
    train, source = rng.normal(size=(500, 2)), rng.normal(size=(3000, 2))
    noise = rng.normal(size=3500)
    everything = np.vstack([train, source])
    y = everything[:, 0] + (0.3 + np.abs(everything[:, 1])) * noise
    center = LinearRegression().fit(train, y[:500])
    covered = {}
    for method in ("split", "lrqr"):
        model = ConformalRegressor(center, method=method, prefit=True).fit(
            source, y[500:], X_target=target[:1000]
        )
        lower, upper = model.predict_interval(target).T
        covered[method] = np.mean((lower <= outcome) & (outcome <= upper))
    assert covered["split"] < 0.86 < covered["lrqr"] < 0.94


@pytest.mark.parametrize("score", ["lac", "aps", "raps"])
def test_sets_are_regions_of_the_score(score: str) -> None:
    center = LogisticRegression().fit(X[:100], LABELS[:100])
    model = ConformalClassifier(center, conformity_score=score, prefit=True).fit(
        X[100:], LABELS[100:], X_target=X_NEW
    )
    module = plugins.load("scores", score)
    threshold = model.predict_threshold(X_NEW)
    for index in range(3):
        scores = module.score(center.predict_proba(X_NEW), np.full(len(X_NEW), index))
        assert np.array_equal(model.predict_set(X_NEW)[:, index], scores <= threshold)
    assert list(model.classes_) == ["maybe", "no", "yes"]


def test_a_label_that_the_model_does_not_know() -> None:
    center = LogisticRegression().fit(X, LABELS)
    labels = LABELS.astype(object)
    labels[7] = "zzz"
    with pytest.raises(
        DataError, match=r"first 'zzz' in row 7 \(counted from 0\); its classes are: maybe, no, yes"
    ):
        ConformalClassifier(center, prefit=True).fit(X, labels)


def test_the_usual_scikit_learn_ways() -> None:
    model = ConformalRegressor(make_pipeline(StandardScaler(), Ridge()), coverage=0.8, method="split")
    twin = clone(model)
    assert twin.get_params()["coverage"] == 0.8
    assert not hasattr(twin, "estimator_")
    assert "coverage=0.8" in repr(model)
    assert "Ridge" in repr(model)
    search = GridSearchCV(model, {"estimator__ridge__alpha": [0.1, 1e6]}, cv=3).fit(X, Y)
    assert search.best_params_ == {"estimator__ridge__alpha": 0.1}
    assert search.best_estimator_.predict_interval(X_NEW).shape == (150, 2)
    inner = ConformalRegressor(GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=3), method="split").fit(X, Y)
    assert inner.score(X, Y) > 0.2
    outer = make_pipeline(StandardScaler(), ConformalClassifier(LogisticRegression(), method="split")).fit(
        X, LABELS
    )
    assert outer.score(X, LABELS) > 0.5
    assert outer[-1].predict_proba(X[:0]).shape == (0, 3)


def frame(rows: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"a": rows[:, 0], "b": rows[:, 1], "c": np.where(rows[:, 0] > 0, "up", "down")})


@pytest.mark.usefixtures("small_map")
def test_frames_are_matched_by_name_and_encoded() -> None:
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), Ridge())
    source, target = frame(np.round(X, 1)), frame(np.round(X_NEW, 1))
    fitted = ConformalRegressor(model, method="lrqr").fit(source, Y, X_target=target)
    bounds = fitted.predict_interval(target)
    thresholds = fitted.predict_threshold(
        target[["c", "b", "a"]].sample(frac=1.0, random_state=1).sort_index()
    )
    assert np.array_equal(thresholds, fitted.predict_threshold(target))
    from_polars = ConformalRegressor(Ridge(), method="lrqr").fit(pl.from_pandas(source[["a", "b"]]), Y)
    from_pandas = ConformalRegressor(Ridge(), method="lrqr").fit(source[["a", "b"]], Y)
    assert bounds.shape == (150, 2)
    assert np.array_equal(
        from_polars.predict_interval(pl.from_pandas(target[["a", "b"]])),
        from_pandas.predict_interval(target[["a", "b"]]),
    )
    with pytest.raises(DataError, match="pass a data frame"):
        fitted.predict_threshold(X_NEW)


def test_auto_takes_given_features_where_learned_ones_leave_too_many_thresholds_infinite() -> None:
    """Far-apart samples: the lift has no finite answer for the target, LR-QR on given features has one."""
    rng = np.random.default_rng(3)
    source, far = rng.normal(size=(300, 3)), rng.normal([6.0, 0.0, 0.0], size=(150, 3))
    scores = np.abs(rng.normal(size=300))
    learned = ThresholdModel(feature_map="learned").fit(source, scores, X_target=far)
    assert np.isposinf(learned.predict(far)).mean() > 0.1
    auto = ThresholdModel().fit(source, scores, X_target=far)
    given = ThresholdModel(feature_map="given").fit(source, scores, X_target=far)
    assert auto.feature_map_ == "given"
    np.testing.assert_array_equal(auto.predict(far), given.predict(far))
    near = source[:150] + np.array([0.3, 0.0, 0.0])
    assert ThresholdModel().fit(source, scores, X_target=near).feature_map_ == "learned"


@pytest.mark.usefixtures("small_map")
@pytest.mark.parametrize(
    ("method", "feature_map", "taken"),
    [("lrqr", "auto", True), ("lrqr", "learned", False), ("weighted", "auto", False)],
)
@pytest.mark.filterwarnings("ignore:the effective sample size:lrqr.errors.LrqrWarning")
def test_a_target_outside_the_source_is_told(method: str, feature_map: Any, taken: bool) -> None:
    far = X_NEW + np.array([8.0, 0.0])
    text = r"^no overlap: \d+ % of the target rows .*; no method can promise coverage there"
    taken_text = "; the given features were taken instead" if taken else "$"
    model = ConformalRegressor(Ridge().fit(X, Y), method=method, feature_map=feature_map, prefit=True)
    with pytest.warns(LrqrWarning, match=text + taken_text):
        model.fit(X, Y, X_target=far)
    with pytest.warns(LrqrWarning, match="^no overlap"):
        ConformalClassifier(LogisticRegression(), method=method, feature_map=feature_map).fit(
            X, LABELS, X_target=far
        )
    model.fit(X, Y, X_target=X[:150] + 0.1)  # says nothing, or this test fails


def test_fewer_than_half_without_an_answer_is_little_overlap() -> None:
    model = ConformalRegressor(Ridge(), feature_map="learned")
    with pytest.warns(LrqrWarning, match=r"^little overlap: [1-4]\d % of the target rows"):
        model.fit(X, Y, X_target=X_NEW + np.array([2.2, 0.0]))
    assert 0.1 < model.threshold_model_.unanswered_ < 0.5


class Unfittable(Ridge):
    """Fails if anybody fits it."""

    def fit(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("fitted before the choices were checked")


@pytest.mark.parametrize("choice", [{"coverage": 90}, {"method": LRQR(90)}])
@pytest.mark.parametrize("target", [None, X_NEW])
def test_a_percentage_is_refused_first_and_in_the_users_number(choice: Any, target: Any) -> None:
    with pytest.raises(UsageError, match=r"got 90; did you mean 0\.9\?"):
        ConformalRegressor(Unfittable(), **choice).fit(X, Y, X_target=target)
    with pytest.raises(UsageError, match=r"got 90; did you mean 0\.9\?"):
        ThresholdModel(**choice).fit(X, np.abs(Y), X_target=target)


def test_the_score_knows_nothing_of_the_intervals() -> None:
    """What the Notes say of `GridSearchCV`."""
    scores = {
        ConformalRegressor(Ridge(), method=method, coverage=coverage).fit(X, Y).score(X, Y)
        for method, coverage in [("split", 0.5), ("split", 0.9), ("conditional", 0.9)]
    }
    assert len(scores) == 1


def test_without_a_target_the_default_promises_for_rows_like_the_source() -> None:
    model = ConformalRegressor(Ridge()).fit(X, Y)
    rng = np.random.default_rng(8)
    more = rng.normal(size=(4000, 2))
    outcome = more[:, 0] + (0.3 + np.abs(more[:, 1])) * rng.normal(size=4000)
    lower, upper = model.predict_interval(more).T
    assert 0.84 < np.mean((lower <= outcome) & (outcome <= upper)) < 0.96


def test_the_package_lists_its_public_names_only() -> None:
    assert dir(lrqr) == sorted(lrqr.__all__)
    assert all(getattr(lrqr, name) is not None for name in dir(lrqr))


def test_compare_leaves_out_what_would_take_longer_than_all_else() -> None:
    assert _affordable([], 500, 500) == all_methods()
    with pytest.warns(LrqrWarning, match="conditional takes about .* s a split .* left out"):
        assert set(all_methods()) - set(_affordable([], 8000, 8000)) == {"conditional"}
    with pytest.warns(LrqrWarning, match="conditional takes about"):
        assert _affordable(["split", "conditional"], 8000, 8000) == ["split", "conditional"]
    assert _affordable(["split"], 8000, 8000) == ["split"]


def test_compare_names_a_keyword_that_it_does_not_know() -> None:
    table = frame(X)
    with pytest.raises(UsageError, match="no keyword 'outcomes', did you mean 'outcome'"):
        lrqr.compare(table, table, table, outcomes="y")
    with pytest.raises(UsageError, match="no keyword 'split', did you mean 'splits'"):
        lrqr.compare(table, table, table, split=3)
    with pytest.raises(UsageError, match="roles= and outcome= were both given"):
        lrqr.compare(table, table, table, roles=Roles(outcome="y"), outcome="y")


@pytest.mark.parametrize("prefit", [False, True])
def test_labels_of_two_types_or_missing_ones_are_named(prefit: bool) -> None:
    model = LogisticRegression().fit(X, LABELS) if prefit else LogisticRegression()
    classifier = ConformalClassifier(model, prefit=prefit)
    labels = LABELS.astype(object)
    labels[:4] = "dog", 7, "dog", 8
    with pytest.raises(DataError, match=r"y mixes texts and other labels: 'dog' in row 0, 7 in row 1 "):
        classifier.fit(X, labels)
    for nothing in (None, np.nan, pd.NA):
        labels[[5, 9]] = nothing
        with pytest.raises(DataError, match=r"y is missing in 2 of 300 rows \(rows 5, 9, counted from 0\)"):
            classifier.fit(X, labels)
    outcome = np.where(np.arange(300) == 3, np.nan, Y)
    with pytest.raises(DataError, match=r"y holds NaN or infinity in 1 of 300 rows \(rows 3,"):
        ConformalRegressor(Ridge()).fit(X, outcome)


def test_messages_about_frames_advise_in_python() -> None:
    source = pd.DataFrame(X, columns=["a", "b"])
    missing, text = source.copy(), source.astype(object)
    missing.loc[3, "a"] = np.nan
    text.loc[3, "a"] = "oops"
    model = ConformalRegressor(LinearRegression(), method="split").fit(source, Y)
    tries = [
        (
            lambda: model.predict_threshold(missing),
            r"^X: column 'a'.*\(rows 4,.*; drop or impute these rows$",
        ),
        (lambda: model.fit(source, Y, X_target=missing), r"^X_target: .*; drop or impute these rows$"),
        (lambda: model.predict_threshold(text), r"^X: column 'a'.*'oops' in row 4 .*convert them or leave"),
        (lambda: model.fit(source, Y, X_target=text), r"^X and X_target: .*'oops'.*convert them or leave"),
    ]
    for attempt, message in tries:
        with pytest.raises(DataError, match=message) as caught:
            attempt()
        assert "--" not in str(caught.value)


@pytest.mark.parametrize("method", ["lrqr", "split"])
def test_what_is_no_seed_is_refused_before_anything_is_fitted(method: str) -> None:
    with pytest.raises(UsageError, match=r"integer from 0 to 4294967295, got -1$"):
        ConformalRegressor(Unfittable(), method=method, random_state=-1).fit(X, Y, X_target=X_NEW)
    table = frame(X)
    with pytest.raises(UsageError, match=r"integer from 0 to 4294967295, got -1$"):
        lrqr.compare(table, table, table, seed=-1)


class Foreign:
    """A model of another library, fitted: what it has is a way to predict."""

    def predict(self, rows: Any) -> np.ndarray:
        return np.asarray(np.asarray(rows)[:, 0], dtype=float)

    def predict_proba(self, rows: Any) -> np.ndarray:
        yes = 1.0 / (1.0 + np.exp(-3.0 * self.predict(rows)))
        return np.column_stack([1.0 - yes, yes])


class ForeignWithFit(Foreign):
    def fit(self, *_: Any) -> ForeignWithFit:
        raise AssertionError("fitted again")


@pytest.mark.parametrize("model", [Foreign(), ForeignWithFit()])
@pytest.mark.parametrize("make", [np.asarray, frame])
def test_any_object_that_predicts_will_do_if_it_is_fitted(model: Any, make: Any) -> None:
    regressor = ConformalRegressor(model, prefit=True, method="split").fit(make(X), Y, X_target=make(X_NEW))
    bounds = regressor.predict_interval(make(X_NEW))
    np.testing.assert_allclose(bounds.mean(axis=1), X_NEW[:, 0], atol=1e-12)
    label = (X[:, 0] > 0).astype(int)
    classifier = ConformalClassifier(model, prefit=True).fit(make(X), label, X_target=make(X_NEW))
    assert classifier.classes_.tolist() == [0, 1]
    assert classifier.predict_set(make(X_NEW)).shape == (150, 2)
    with pytest.raises(DataError, match="'2'"):
        classifier.fit(make(X), label + 1)


def test_an_object_that_cannot_be_fitted_needs_prefit() -> None:
    with pytest.raises(UsageError, match=r"Foreign has no fit\(\): .* pass prefit=True"):
        ConformalRegressor(Foreign()).fit(X, Y)
    with pytest.raises(NotFittedError):  # scikit-learn's own say it themselves
        ConformalRegressor(Ridge(), prefit=True).fit(X, Y)


@pytest.mark.parametrize("method", METHODS)
def test_too_few_rows_for_the_coverage_are_told(method: str) -> None:
    model = ConformalRegressor(Foreign(), method=method, prefit=True)
    with pytest.warns(LrqrWarning, match=r"n >= (9|19)\b") as caught:
        model.fit(X[:8], Y[:8], X_target=X_NEW)
    assert sum("n >= " in str(warning.message) for warning in caught) == 1


def test_a_level_that_nobody_promised_warns_of_nothing() -> None:
    """Twelve rows do for 90 %, not for 95 %, which `evaluate` asks for as a further level."""
    model = ThresholdModel("split").fit(X[:12], np.abs(Y[:12]), levels=(0.95,))
    assert np.isposinf(model.at(0.95).predict(X_NEW)).all()
    with pytest.warns(LrqrWarning, match="needs n >= 19"):
        ThresholdModel("split", coverage=0.95).fit(X[:12], np.abs(Y[:12]))


class Quantiles(Foreign):
    """Two quantiles of a model that has them the wrong way round."""

    def predict(self, rows: Any) -> np.ndarray:
        center = super().predict(rows)
        return np.column_stack([center + 1.0, center - 1.0])


@pytest.mark.parametrize(
    ("model", "y", "options", "message"),
    [
        (
            ConformalRegressor(Quantiles(), conformity_score="cqr", method="split", prefit=True),
            Y,
            {},
            "lower above upper in 100 % of rows: are the two columns swapped",
        ),
        (
            ConformalRegressor(Foreign(), method="split", prefit=True),
            (Y > 0).astype(float),
            {},
            r"y has only two values \(0 and 1\): if they are classes, use ConformalClassifier",
        ),
        (
            ConformalRegressor(Foreign(), prefit=True),
            Y,
            {"X_target": X_NEW, "X_source": X},
            "X_source is not used: the ratio is learned from labeled rows",
        ),
        (
            ConformalRegressor(Foreign(), prefit=True),
            Y,
            {"X_target": X_NEW, "ratio": np.where(np.arange(300) == 7, 1e6, 1.0)},
            "the weights of the 300 source rows are worth 1 equally weighted ones",
        ),
    ],
)
def test_wrappers_warn_of_what_the_command_line_warns_of(
    model: Any, y: Any, options: Any, message: str
) -> None:
    with pytest.warns(LrqrWarning, match=message) as caught:
        model.fit(X, y, **options)
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize("target", [None, X_NEW[:20]])
def test_known_ratios_bring_a_map_of_few_features_whatever_the_number_of_rows(target: Any) -> None:
    """As the command line has it: on given features LR-QR could not use them."""
    ratio = RATIO[:80] ** 0.5
    model = ConformalRegressor(Foreign(), prefit=True).fit(X[:80], Y[:80], X_target=target, ratio=ratio)
    assert model.threshold_model_.feature_map_ == "learned"
    np.testing.assert_array_equal(model.threshold_model_.offset_.ratios, ratio)
    assert model.predict_interval(X_NEW, ratio=np.ones(len(X_NEW))).shape == (150, 2)
