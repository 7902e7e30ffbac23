"""LRQR, the estimator: its fixed interface, what must not change its thresholds, and its limits."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from commands import predicted, scored
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from lrqr.calibrate.threshold import ThresholdModel
from lrqr.errors import DataError, UsageError
from lrqr.methods.conditional import Conditional
from lrqr.methods.lrqr import LRQR

if TYPE_CHECKING:
    from pathlib import Path


@parametrize_with_checks([LRQR()])
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    return X, np.abs(rng.normal(size=200)) * (1.0 + X[:, 0] ** 2), rng.normal(size=(150, 5)) + 0.5


def test_coefficients_reproduce_the_objective(data: Any) -> None:
    X, y, target = data
    model = LRQR(regularization=0.3, ridge=0.7, standardize=False, score_scale=1.0)
    model.fit(X, y, X_target=target)
    gamma, beta = np.r_[model.intercept_, model.coef_], model.beta_
    phi, phi_target = np.c_[np.ones(len(X)), X], np.c_[np.ones(len(target)), target]
    u = y - phi @ gamma
    sigma = phi.T @ phi / len(X) + 0.7 * np.diag([0.0] + [1.0] * 5)
    loss = np.where(u >= 0, 0.9 * u, -0.1 * u).mean()
    penalty = 0.3 * (beta**2 * gamma @ sigma @ gamma - 2 * beta * phi_target.mean(axis=0) @ gamma)
    assert model.objective_ == pytest.approx(loss + penalty, rel=1e-12)
    assert model.converged_
    np.testing.assert_allclose(model.predict(target), phi_target @ gamma + model.slack_, rtol=1e-12)


@pytest.mark.parametrize(
    "change",
    [
        lambda A: np.c_[A, A[:, 2]],
        lambda A: np.c_[A, np.full(len(A), 7.0)],
        lambda A: A * np.array([1, 1e8, 1, 1, 1]),
        lambda A: np.c_[A, 3.0 - 2.0 * A[:, 1]],
    ],
    ids=["duplicate", "constant", "scaled", "affine copy"],
)
def test_copies_constants_and_units_of_features_change_nothing(data: Any, change: Any) -> None:
    X, y, target = data
    plain = LRQR().fit(X, y, X_target=target).predict(target)
    other = LRQR().fit(change(X), y, X_target=change(target)).predict(change(target))
    np.testing.assert_allclose(other, plain, rtol=1e-9)


def test_known_ratios_are_refused(data: Any) -> None:
    X, y, target = data
    with pytest.raises(UsageError, match="ratio"):
        LRQR().fit(X, y, X_target=target, ratio=np.ones(len(X)))


def test_infinite_scores_are_refused_by_row(data: Any) -> None:
    X, y, target = data
    y = y.copy()
    y[3] = np.inf
    with pytest.raises(DataError, match="rows 3"):
        LRQR().fit(X, y, X_target=target)


def test_state_round_trip_keeps_thresholds(data: Any) -> None:
    X, y, target = data
    model = LRQR().fit(X, y, X_target=target)
    again = LRQR.from_state(model.to_state())
    np.testing.assert_array_equal(again.predict(target), model.predict(target))
    assert again.selection_table_ == model.selection_table_


def test_a_row_has_the_same_threshold_alone_and_in_any_batch(data: Any) -> None:
    X, y, target = data
    for width in (1, 3, 5):
        model = LRQR(regularization=0.1, ridge=1.0).fit(X[:, :width], y, X_target=target[:, :width])
        together = model.predict(target[:, :width])
        alone = np.concatenate([model.predict(target[[i], :width]) for i in range(len(target))])
        pairs = np.concatenate([model.predict(target[i : i + 2, :width]) for i in range(0, 150, 2)])
        np.testing.assert_array_equal(alone, together)
        np.testing.assert_array_equal(pairs, together)
        assert model.predict(np.empty((0, width))).shape == (0,)


def test_fitting_twice_gives_the_same_bytes(data: Any) -> None:
    X, y, target = data
    first, second = (LRQR().fit(X, y, X_target=target) for _ in range(2))
    assert first.coef_.tobytes() == second.coef_.tobytes()
    assert first.objective_ == second.objective_


def test_frames_are_matched_by_name(data: Any) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, y, target = data
    names = list("abcde")
    plain = LRQR(regularization=0.1, ridge=1.0).fit(X, y, X_target=target)
    for frame in (pandas.DataFrame, polars.DataFrame):
        source, other = (frame(dict(zip(names, part.T, strict=True))) for part in (X, target))
        model = LRQR(regularization=0.1, ridge=1.0).fit(source, y, X_target=other[names[::-1]])
        assert list(model.feature_names_in_) == names
        np.testing.assert_array_equal(model.predict(other), plain.predict(target))
        with pytest.raises(DataError, match="lacks the columns b"):
            LRQR().fit(source, y, X_target=other[["a", "c", "d", "e"]])


def test_score_units_and_shifts_below_zero(data: Any) -> None:
    X, y, target = data
    plain = LRQR(regularization=0.1, ridge=1.0).fit(X, y, X_target=target)
    scaled = LRQR(regularization=0.1, ridge=1.0).fit(X, 1e4 * y, X_target=target)
    np.testing.assert_allclose(scaled.predict(target), 1e4 * plain.predict(target), rtol=1e-6)
    low = y - y.min()
    zero, below = (
        LRQR(regularization=0.1, ridge=1.0).fit(X, part, X_target=target) for part in (low, low - 5.0)
    )
    assert below.score_offset_ == -5.0
    np.testing.assert_allclose(below.predict(target), zero.predict(target) - 5.0, rtol=1e-9)


def test_unlabeled_source_rows_enter_the_second_moment_alone(data: Any) -> None:
    X, y, target = data
    same = LRQR(regularization=0.1, ridge=1.0).fit(X, y, X_target=target, X_source=np.tile(X, (3, 1)))
    other = LRQR(regularization=0.1, ridge=1.0, standardize=False, score_scale=1.0)
    other.fit(X, y, X_target=target, X_source=np.tile(X, (3, 1)))
    plain = LRQR(regularization=0.1, ridge=1.0, standardize=False, score_scale=1.0)
    plain.fit(X, y, X_target=target)
    assert same.converged_
    assert other.objective_ == pytest.approx(plain.objective_, rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_a_handful_of_rows_gives_finite_thresholds(data: Any, n: int) -> None:
    X, y, target = data
    assert np.isfinite(LRQR().fit(X[:n], y[:n], X_target=target).predict(target)).all()


def test_more_features_than_rows_and_a_far_target_give_finite_thresholds() -> None:
    rng = np.random.default_rng(1)
    X, y, target = rng.normal(size=(40, 90)), np.abs(rng.normal(size=40)), rng.normal(size=(30, 90))
    for shift in (0.0, 100.0):
        model = LRQR().fit(X, y, X_target=target + shift)
        assert model.converged_
        assert np.isfinite(model.predict(target + shift)).all()
    with pytest.raises(UsageError, match="set ridge > 0"):
        LRQR(ridge=0.0, regularization=1.0).fit(X, y, X_target=target)


@pytest.mark.parametrize("value", [0.0, 2.0, -3.0])
def test_equal_scores(data: Any, value: float) -> None:
    X, _, target = data
    thresholds = LRQR().fit(X, np.full(len(X), value), X_target=target).predict(target)
    if value <= 0.0:
        np.testing.assert_allclose(thresholds, value, atol=1e-12)
    else:
        assert np.isfinite(thresholds).all()
        assert abs(np.mean(thresholds) - value) < 0.5


def test_no_convergence_is_a_warning_with_a_remedy(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, target = data
    for name in ("solvers.newton", "solvers.interior"):
        monkeypatch.setattr(f"lrqr.{name}._MAX_STEPS", 1)
    with pytest.warns(ConvergenceWarning, match="raise ridge or regularization, or loosen tol"):
        model = LRQR(regularization=1e-3, ridge=1e-3).fit(X, y, X_target=target)
    assert not model.converged_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"coverage": 90}, "did you mean 0.9"),
        ({"regularization": "atuo"}, "regularization"),
        ({"ridge": -1.0}, "ridge"),
        ({"regularization": 1e300}, "regularization must be a finite number <= 1e"),
        ({"score_scale": 0.0}, "score_scale"),
        ({"solver": "newtn", "regularization": 0.1, "ridge": 1.0}, "did you mean 'newton'"),
    ],
)
def test_parameters_are_checked(data: Any, parameters: dict[str, Any], message: str) -> None:
    X, y, target = data
    with pytest.raises(UsageError, match=message):
        LRQR(**parameters).fit(X, y, X_target=target)


@pytest.mark.parametrize("kinds", [(0.5,), (0.25, 0.5), (0.0, 1.0, 2.0, 3.0)])
@pytest.mark.parametrize("regularization", [0.0, 1e-6, 0.1])
def test_scores_that_the_optimum_meets_are_covered(kinds: tuple[float, ...], regularization: float) -> None:
    """With few different scores the optimum interpolates many rows; rounding must not uncover them."""
    rng = np.random.default_rng(0)
    X, target = rng.normal(size=(200, 2)), rng.normal(0.5, 1.0, size=(100, 2))
    scores = rng.choice(kinds, size=200)
    model = LRQR(regularization=regularization, ridge=1.0).fit(X, scores, X_target=target)
    short = scores - model.predict(X)
    assert not ((short > 0) & (short < 1e-7)).any()
    assert 0.0 <= model.slack_ <= 1.1e-7 * model.score_scale_
    np.testing.assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_, atol=1e-6)


def test_a_gap_that_matters_to_the_loss_is_not_called_converged() -> None:
    rng = np.random.default_rng(1)
    X, target = rng.normal(size=(200, 3)), rng.normal(0.5, 1.0, size=(100, 3))
    scores = np.abs(rng.normal(size=200))
    for regularization in (1e6, 1e13, 1e16):
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            model = LRQR(regularization=regularization, ridge=0.1).fit(X, scores, X_target=target)
        loss = np.maximum(0.9 * (r := (scores - model.predict(X)) / model.score_scale_), -0.1 * r).mean()
        assert not model.converged_ or model.gap_ <= 1.01e-6 * loss


def test_lrqr_is_quantile_regression_where_there_is_no_shift(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    assert scored(tmp_path, np.abs(rng.normal(size=2000)), features=rng.normal(size=2000)).code == 0
    assert predicted(tmp_path)["threshold"].median() == pytest.approx(1.645, abs=0.1)


@pytest.mark.parametrize("selection", ["auto", "paper"])
def test_columns_that_never_vary_leave_a_quantile(selection: str) -> None:
    scores = np.abs(np.random.default_rng(1).normal(size=200))
    model = LRQR(selection=selection).fit(np.zeros((200, 1)), scores, X_target=np.zeros((100, 1)))
    (threshold,) = model.predict(np.zeros((1, 1)))
    assert (threshold >= scores).mean() == pytest.approx(0.9, abs=1 / 200)


@pytest.mark.parametrize("size", [1e6, 1e12, 1e300])
def test_one_absurd_score_moves_nothing_but_its_rank(size: float) -> None:
    """It is above its threshold whatever its size, and the loss asks for no more."""
    rng = np.random.default_rng(5)
    X, target = rng.normal(size=(120, 3)), rng.normal(0.5, 1.0, size=(80, 3))
    y = np.abs(rng.normal(size=120))
    far, mistyped = y.copy(), y.copy()
    far[7], mistyped[7] = 1e3, size
    expected, found = (LRQR().fit(X, scores, X_target=target).predict(target) for scores in (far, mistyped))
    np.testing.assert_array_equal(found, expected)
    assert abs(np.median(found) - np.median(LRQR().fit(X, y, X_target=target).predict(target))) < 0.2


def test_lowered_scores_leave_the_minimum_where_it_is() -> None:
    """The objective on the scores as given is that of the reference solver, to its tolerance."""
    rng = np.random.default_rng(6)
    X, target = rng.normal(size=(80, 2)), rng.normal(0.5, 1.0, size=(60, 2))
    y = np.abs(rng.normal(size=80))
    y[[3, 9]] = 500.0
    models = [
        LRQR(regularization=0.1, ridge=0.1, score_scale=1.0, solver=solver).fit(X, y, X_target=target)
        for solver in ("newton", "reference")
    ]
    losses = [np.where((r := y - m.predict(X)) > 0, 0.9 * r, -0.1 * r).mean() for m in models]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@pytest.mark.parametrize("feature_map", ["learned", "constant"])
@pytest.mark.usefixtures("small_map")
def test_one_absurd_score_does_not_reach_the_learned_shape(feature_map: str) -> None:
    rng = np.random.default_rng(7)
    X, target = rng.normal(size=(200, 3)), rng.normal(0.5, 1.0, size=(100, 3))
    y = np.abs(rng.normal(size=200)) * np.exp(0.3 * X[:, 0])
    found = []
    for size in (1e4, 1e12):
        y[11] = size
        model = ThresholdModel("lrqr", feature_map=feature_map).fit(X, y, X_target=target)
        found.append(model.predict(target))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)
    assert np.median(found[1]) < 4.0


@pytest.mark.parametrize("method", [LRQR(), Conditional()])
def test_scores_too_large_to_be_squared_are_named(method: Any) -> None:
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(8, 2)), 1e200 * np.abs(rng.normal(size=8))
    with pytest.raises(
        DataError, match=r"scores reach \S+e\+200 in size, beyond 1e\+150 too large to be squared"
    ):
        method.fit(X, y, X_target=X)
