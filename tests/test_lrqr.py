"""LRQR, the estimator: its fixed interface, what must not change its thresholds, and its limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from lrqr.errors import DataError, UsageError
from lrqr.methods.lrqr import LRQR


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
    np.testing.assert_allclose(model.predict(target), phi_target @ gamma, rtol=1e-12)


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
