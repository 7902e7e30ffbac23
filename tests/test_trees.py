"""Trees as plain arrays say what scikit-learn's trees say, bit by bit, and are refused when they are none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from lrqr.arrays import few_threads
from lrqr.errors import ArtifactError
from lrqr.stats.trees import LEAVES, Trees

if TYPE_CHECKING:
    from lrqr.arrays import FloatArray


@few_threads()
def grow(X: FloatArray, y: FloatArray, leaves: int, seed: int, trees: int = 8) -> list[Any]:
    """Grow two regressors and a classifier."""
    options = {"max_leaf_nodes": leaves, "min_samples_leaf": 2, "max_iter": trees, "early_stopping": False}
    return [
        HistGradientBoostingRegressor(loss="quantile", quantile=0.8, random_state=seed, **options).fit(X, y),
        HistGradientBoostingRegressor(max_features=0.5, random_state=seed, **options).fit(X, y),
        HistGradientBoostingClassifier(random_state=seed, **options).fit(X, np.arange(len(y)) % 3 == 0),
    ]


def said(models: list[Any], rows: FloatArray) -> list[FloatArray]:
    return [getattr(model, "decision_function", model.predict)(rows) for model in models]


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    leaves=st.integers(2, LEAVES),
    d=st.integers(1, 4),
    digits=st.integers(0, 3),
)
def test_the_same_bits_as_scikit_learn(seed: int, leaves: int, d: int, digits: int) -> None:
    """Also for rows on a cut, next to it, far away, one alone, and none."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(60, d)), digits)
    models = grow(X, X[:, 0] * rng.normal(size=60), leaves, seed % 1000)
    trees = Trees.of(models)
    cuts = np.unique(trees.cut[np.isfinite(trees.cut)])
    beside = [np.nextafter(cuts, np.inf), np.nextafter(cuts, -np.inf)]
    near = np.concatenate([cuts, *beside, [-1e308, 1e308, 0.0]])
    for rows in (X, rng.choice(near, size=(300, d)), X[:1], X[:0]):
        expected = said(models, rows) if len(rows) else [np.empty(0)] * len(models)
        assert all(map(np.array_equal, trees.predict(rows), expected))
    again = Trees.from_state(trees.to_state())
    assert all(map(np.array_equal, again.predict(X), trees.predict(X)))


def test_many_rows_and_many_cuts() -> None:
    """More rows than a block, and more cuts of a column than a byte can count."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5_000, 1))
    models = grow(X[::2], np.sin(9.0 * X[::2, 0]), LEAVES, 0, trees=30)
    models += grow(X[1::2], np.sin(9.0 * X[1::2, 0]), LEAVES, 0, trees=30)
    trees = Trees.of(models)
    assert len(np.unique(trees.cut)) > 256
    together = trees.predict(X)
    assert all(map(np.array_equal, together, said(models, X)))
    parts = [trees.predict(X[start : start + 777]) for start in range(0, 5_000, 777)]
    assert np.array_equal(np.hstack(parts), np.array(together))


def test_a_constant_outcome_grows_leaves_only() -> None:
    models = [HistGradientBoostingRegressor(max_iter=3).fit(np.zeros((30, 2)), np.ones(30))]
    assert Trees.of(models).predict(np.ones((2, 2)))[0].tolist() == [1.0, 1.0]


def test_larger_trees_do_not_fit() -> None:
    X = np.random.default_rng(0).normal(size=(400, 2))
    with pytest.raises(IndexError):
        Trees.of(grow(X, X[:, 0], LEAVES + 1, 0))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("feature", lambda values: values + 2, r"feature: must hold numbers within \[0, d\)"),
        ("first", lambda values: values[:, ::-1], "first: must describe trees"),
        ("first", lambda values: values - 1, "first: must hold numbers within"),
        ("counts", lambda values: values + 1, "counts: must have trees = 24"),
        ("value", lambda values: values[:, :-1], "value: must have 8 = 8, as other fields say, got 7"),
        ("cut", lambda values: values.astype(np.float32), "cut: must be an array of float64"),
    ],
)
def test_what_is_no_tree_is_refused(name: str, change: Any, message: str) -> None:
    X = np.random.default_rng(0).normal(size=(80, 2))
    state = Trees.of(grow(X, X[:, 0], LEAVES, 0)).to_state()
    with pytest.raises(ArtifactError, match=message):
        Trees.from_state(state | {name: np.ascontiguousarray(change(state[name]))})
