"""The wrappers among scikit-learn's tools: its checks, pipelines, metadata, several levels."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn
from commands import classes, lrqr
from matplotlib.figure import Figure
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, RobustScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from lrqr import LRQR, ConformalClassifier, ConformalRegressor, compare, diagnose, evaluate, load
from lrqr.errors import DataError, LrqrWarning, UsageError

if TYPE_CHECKING:
    from pathlib import Path

# The default, with all its models, is fitted in test_recorded.py.
pytestmark = pytest.mark.usefixtures("small_map")


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


def shifted(kind: str) -> tuple[Any, ...]:
    """A fitted model, rows to judge it on, and the features of its target, as arrays or frames."""
    (X, y), (X_new, y_new) = rows(240), rows(150, 0.4, 1)
    parts: list[Any] = [X, X_new]
    if kind != "array":
        parts = [pd.DataFrame(part, columns=["a", "b", "c"]) for part in parts]
        for part in parts:
            part["kind"] = np.where(part["c"] > 100, "high", "low")
    if kind == "classes":
        y, y_new = (np.digitize(part, [-0.5, 0.5]) for part in (y, y_new))
        parts = [part.drop(columns="kind") for part in parts]
        model: Any = ConformalClassifier(LogisticRegression(max_iter=10_000))
    elif kind == "array":
        model = ConformalRegressor(Ridge())
    else:
        encode = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
        model = ConformalRegressor(make_pipeline(encode, Ridge()), method="weighted")
    return model.fit(parts[0], y, X_target=parts[1][:75]), parts[1][75:], y_new[75:], parts[1][:75]


@pytest.mark.parametrize("kind", ["array", "frame", "classes"])
def test_the_command_line_answers_by_a_saved_model_as_the_model_does(kind: str, tmp_path: Path) -> None:
    model, X, y, _ = shifted(kind)
    folder = model.save(tmp_path / "model")
    table, _ = model.table(X, y)
    table.to_csv(tmp_path / "new.csv", index=False)
    loaded = load(folder)
    assert lrqr("predict", folder, tmp_path / "new.csv", "-o", tmp_path / "out.csv").code == 0
    found = pd.read_csv(tmp_path / "out.csv")
    assert np.allclose(found["threshold"], model.predict_threshold(X), rtol=1e-12)
    if kind == "classes":
        assert np.array_equal(loaded.predict_set(table), model.predict_set(X))
    else:
        assert np.array_equal(loaded.predict_interval(table), model.predict_interval(X))
    ran = lrqr("evaluate", folder, tmp_path / "new.csv", "--format", "json")
    assert ran.json["coverage"]["value"] == evaluate(model, X, y).coverage.value
    with pytest.raises(UsageError, match="force=True"):
        model.save(folder)


def test_what_evaluate_says_is_counted() -> None:
    model, X, y, _ = shifted("array")
    lower, upper = model.predict_interval(X).T
    inside = (lower <= y) & (y <= upper)
    found = evaluate(model, X, y, group=np.where(X[:, 1] > 100, "up", "down"))
    assert found.n == 75
    assert found.coverage.value == inside.mean()
    assert {group.name: group.coverage for group in found.groups} == {
        name: inside[mask].mean() for name, mask in (("up", X[:, 1] > 100), ("down", X[:, 1] <= 100))
    }
    assert evaluate(model, X).coverage is None
    table, _ = model.table(X, y)
    assert evaluate(model.calibrated(), table).coverage == found.coverage
    with pytest.raises(UsageError, match="y= goes with an estimator"):
        evaluate(model.calibrated(), table, y)


def test_diagnose_takes_arrays_frames_and_models() -> None:
    model, X, _, X_target = shifted("array")
    source = rows(240)[0]
    found = diagnose(source, X_target)
    assert (found.n_source, found.n_target) == (240, 75)
    columns = ["f0", "f1", "f2"]
    frames = [pd.DataFrame(part, columns=columns) for part in (source, X_target)]
    assert diagnose(*frames).auc == found.auc
    assert {row.name for row in diagnose(*frames, exclude="f2").features} == {"f0", "f1"}
    assert diagnose(source, X, model=model, coverage=0.8).nominal == 0.8
    with pytest.raises(UsageError, match=r"diagnose has no keyword 'exclud'.*did you mean 'exclude'"):
        diagnose(*frames, exclud="f2")


def test_plot_gives_the_figures_of_the_report() -> None:
    model, X, y, _ = shifted("array")
    assert isinstance(model.plot(X, y), Figure)
    axes = model.plot(X, y, figure="groups", group=np.repeat(["one", "other", "third"], 25)).axes[0]
    assert {label.get_text() for label in axes.get_yticklabels()} == {
        "one (25)",
        "other (25)",
        "third (25)",
    }
    with pytest.raises(UsageError, match="did you mean 'intervals'"):
        model.plot(X, y, figure="interval")
    assert isinstance(model.plot(X, figure="overlap"), Figure)


def test_the_notebook_shows_promise_rule_verdict_and_thresholds() -> None:
    assert "promised" not in ConformalRegressor(Ridge())._repr_html_()
    model, *_ = shifted("array")
    html = model._repr_html_()
    card = html[html.index('<table class="lrqr">') :]
    assert model._repr_mimebundle_()["text/html"].endswith(card)
    verdict = model.calibrated().details["shift"]["verdict"]
    for words in ("promised coverage", "90 %", "lrqr", "thresholds on the target", "median", verdict):
        assert words in card


@pytest.mark.parametrize(
    "columns", [{"probability": True}, {"probability": "p_*"}, {"prediction": "p_*", "probability": True}]
)
def test_compare_takes_probabilities_as_its_page_says(columns: Any) -> None:
    given = classes(150), classes(150, 0.3, 1).drop(columns="y"), classes(150, 0.3, 2)
    runs = compare(*given, ["split", "weighted"], splits=1, outcome="y", **columns)
    assert list(runs["method"]) == ["split", "weighted"]
    assert runs["coverage"].between(0.5, 1.0).all()


def test_a_printed_result_fits_on_the_screen() -> None:
    model, X, y, _ = shifted("array")
    shown = str(evaluate(model, X, y))
    assert "coverage=Coverage(value=" in shown
    assert "[" not in shown
    assert len(shown) < 2000


class Capsule:
    """A table of a library that is known by Arrow's interface alone."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._table = pa.Table.from_pandas(frame, preserve_index=False)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("kind", [Capsule, lambda frame: pa.Table.from_pandas(frame, preserve_index=False)])
def test_arrow_tables_go_through_every_door(kind: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=120), "kind": rng.choice(["a", "b"], size=120)})
    X_new = pd.DataFrame({"x": rng.normal(size=60), "kind": rng.choice(["a", "b"], size=60)})
    y = X["x"] + rng.normal(size=120)
    estimator = make_pipeline(OneHotEncoder(handle_unknown="ignore"), Ridge())
    fits = [
        ConformalRegressor(estimator, method="split").fit(given(X), y, X_target=given(X_new))
        for given in (kind, lambda frame: frame)
    ]
    tables = kind(X_new), X_new
    for name in ("predict", "predict_interval", "predict_threshold"):
        one, other = (getattr(fits[0], name)(rows) for rows in tables)
        assert np.array_equal(one, other)
        assert np.array_equal(other, getattr(fits[1], name)(X_new))
    outcome = X_new["x"].to_numpy()
    assert evaluate(fits[0], tables[0], outcome).coverage == evaluate(fits[1], X_new, outcome).coverage
    assert diagnose(kind(X), tables[0]).verdict == diagnose(X, X_new).verdict
    fits[0].save(tmp_path / "model")
    answers = [load(tmp_path / "model").predict_threshold(fits[0].table(rows)[0]) for rows in tables]
    assert np.array_equal(*answers)


def test_a_frame_with_an_array_beside_it_is_refused_in_our_words() -> None:
    X, y = pd.DataFrame(np.eye(40), columns=[f"c{k}" for k in range(40)]), np.arange(40.0)
    with pytest.raises(DataError, match="pass a data frame with the same column names"):
        ConformalRegressor(Ridge(), method="split").fit(X, y, X_target=np.eye(40))
    model = ConformalRegressor(Ridge(), method="split").fit(np.eye(40), y)
    with pytest.warns(UserWarning, match="fitted without feature names"):  # scikit-learn's own
        assert evaluate(model, X, y).n == 40
