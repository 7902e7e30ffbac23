"""Base learners: right answers where they are known, rows alone and together, and a safe way to disk."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lrqr.calibrate import store as artifact
from lrqr.calibrate.base import BaseLearner, training_rows
from lrqr.errors import DataError, UsageError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 3)) * [1.0, 100.0, 0.01]
Y = X[:, 0] + 0.01 * X[:, 1] + 0.1 * RNG.normal(size=240)
LABELS = np.array(["a", "b", "c"])[np.digitize(Y, [-0.7, 0.7])]
CASES = [
    ("ridge", False, Y),
    ("hist-gradient-boosting", False, Y),
    ("logistic", True, LABELS),
    ("logistic", True, Y > 0),
    ("hist-gradient-boosting", True, LABELS),
]


@pytest.mark.parametrize(("name", "classify", "y"), CASES)
def test_rows_alone_together_and_from_disk(name: str, classify: bool, y: Any, tmp_path: Any) -> None:
    learner = BaseLearner(name, classify=classify).fit(X, y)
    path = artifact.save({"base": learner.to_state()}, tmp_path / "model")
    again = BaseLearner.from_state(artifact.load(path)["base"])
    together = learner.predict(X[:40])
    assert together.shape == (40, len(learner.classes_) or 1)
    assert np.array_equal(together, again.predict(X[:40]))
    assert np.array_equal(together, np.vstack([learner.predict(X[i : i + 1]) for i in range(40)]))
    assert learner.predict(X[:0]).shape == (0, together.shape[1])
    if classify:
        np.testing.assert_allclose(together.sum(axis=1), 1.0, rtol=1e-12)
        np.testing.assert_allclose(together, learner.model_.predict_proba(X[:40]), rtol=1e-9, atol=1e-12)
        assert learner.classes_ == sorted({str(label) for label in y})


def test_ridge_is_the_ridge_of_its_penalty() -> None:
    learner = BaseLearner("ridge", classify=False).fit(X, Y)
    scaler = StandardScaler().fit(X)
    reference = Ridge(alpha=learner.model_[1].alpha).fit(scaler.transform(X), Y)
    np.testing.assert_allclose(learner.predict(X)[:, 0], reference.predict(scaler.transform(X)), rtol=1e-10)


def test_a_file_sorted_by_its_outcome_is_no_harder() -> None:
    order = np.argsort(Y)
    learner = BaseLearner("ridge", classify=False).fit(X[order], Y[order])
    assert np.mean((learner.predict(X)[:, 0] - Y) ** 2) < 0.02


def test_few_rows_still_give_a_model() -> None:
    assert BaseLearner("ridge", classify=False).fit(X[:1], Y[:1]).predict(X[:2]).shape == (2, 1)
    assert BaseLearner("logistic", classify=True).fit(X[:2], ["a", "b"]).predict(X[:2]).shape == (2, 2)


def test_wrong_choices_are_named() -> None:
    with pytest.raises(UsageError, match="did you mean 'ridge'"):
        BaseLearner("rigde", classify=False)
    with pytest.raises(UsageError, match="for classes use logistic"):
        BaseLearner("ridge", classify=True)
    with pytest.raises(UsageError, match="for numbers use ridge"):
        BaseLearner("logistic", classify=False)
    with pytest.raises(DataError, match=r"two classes or more, the outcome holds \['a'\]"):
        BaseLearner("logistic", classify=True).fit(X[:3], ["a", "a", "a"])


def test_training_rows_are_half_seeded_and_stratified() -> None:
    mask = training_rows(101, 0)
    assert mask.sum() in (50, 51)
    assert np.array_equal(mask, training_rows(101, 0))
    assert not np.array_equal(mask, training_rows(101, 1))
    labels = ["a"] * 90 + ["b"] * 10 + ["c"]
    mask = training_rows(101, 0, classes=labels)
    assert [mask[:90].sum(), mask[90:100].sum(), mask[100]] == [45, 5, True]


@pytest.mark.parametrize(("n", "seed"), [(240, 0), (37, 1), (12, 2)])
def test_the_ridge_penalty_is_that_of_a_grid_search(n: int, seed: int) -> None:
    noisy = RNG.normal(size=n) + 0.5 * X[:n, 0]
    learner = BaseLearner("ridge", classify=False, random_state=seed).fit(X[:n], noisy)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), Ridge()),
        {"ridge__alpha": np.logspace(-3, 4, 15)},
        scoring="neg_mean_squared_error",
        cv=KFold(5, shuffle=True, random_state=seed),
    ).fit(X[:n], noisy)
    assert learner.model_[1].alpha == search.best_params_["ridge__alpha"]
