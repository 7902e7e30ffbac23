"""The law of the methods, tested over the registry: a new file is tested the moment it exists."""

from __future__ import annotations

import inspect
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from lrqr import plugins
from lrqr.errors import LrqrError, UsageError
from lrqr.stats.ratio import LikelihoodRatio

NAMES = plugins.names("methods")
# LR-QR chooses its penalties by cross-validation, whose folds follow the order of the rows
FIXED = {"lrqr": {"regularization": 0.1, "ridge": 1.0}}

pytestmark = [
    pytest.mark.parametrize("name", NAMES),
    pytest.mark.filterwarnings("ignore::lrqr.errors.LrqrWarning"),
]


def _class(name: str) -> Any:
    return plugins.load("methods", name).ESTIMATOR


def _make(name: str, **options: Any) -> Any:
    return _class(name)(**(FIXED.get(name, {}) | options))


def _data(seed: int = 0, n: int = 120, shift: float = 0.5) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.abs(rng.normal(size=n)) * (1 + 0.5 * np.abs(X[:, 0]))
    return X, y, shift + rng.normal(size=(n // 2, 3)), shift + rng.normal(size=(40, 3))


def _fitted(name: str, **options: Any) -> tuple[Any, np.ndarray]:
    X, y, target, new = _data()
    return _make(name, **options).fit(X, y, X_target=target), new


def test_is_a_scikit_learn_estimator(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(_class(name)())


def test_has_the_interface(name: str) -> None:
    parameters = inspect.signature(_class(name)).parameters
    assert next(iter(parameters.values())).name == "coverage"
    assert parameters["coverage"].default == 0.9
    assert isinstance(_class(name).USES_RATIO, bool)
    fit = inspect.signature(_class(name).fit).parameters
    assert [p for p in fit if p != "self"] == ["X", "y", "X_target", "X_source", "ratio", "groups"]
    assert all(fit[p].kind is inspect.Parameter.KEYWORD_ONLY for p in ("X_target", "X_source", "ratio"))
    assert "ratio" in inspect.signature(_class(name).predict).parameters


def test_is_documented(name: str) -> None:
    text = (Path(__file__).parents[1] / "docs" / "methods.md").read_text()
    assert f"| `{name}` |" in text
    paragraph = text.split(f"\n## {name}\n")[1].split("\n## ")[0]
    assert all(word in paragraph for word in ("*Assumes*", "*Guarantees*", "*Fails*", "*Costs*"))


def test_thresholds_have_one_axis_and_no_nan(name: str) -> None:
    model, new = _fitted(name)
    for count in (0, 1, 2, 40):
        got = model.predict(new[:count])
        assert got.shape == (count,)
        assert got.dtype == np.float64
        assert not np.isnan(got).any()


def test_order_of_rows_does_not_matter(name: str) -> None:
    X, y, target, new = _data()
    first = _make(name).fit(X, y, X_target=target).predict(new)
    rng = np.random.default_rng(5)
    order, other = rng.permutation(len(X)), rng.permutation(len(target))
    second = _make(name).fit(X[order], y[order], X_target=target[other]).predict(new)
    tolerance = 1e-4 if name == "lrqr" else 1e-12
    assert np.allclose(first, second, rtol=tolerance, atol=0)


def test_a_row_does_not_depend_on_its_batch(name: str) -> None:
    """One by one, in pairs and all at once, to the bit."""
    model, new = _fitted(name)
    whole = model.predict(new)
    for size in (1, 2, 7):
        parts = [model.predict(new[i : i + size]) for i in range(0, len(new), size)]
        assert np.array_equal(np.concatenate(parts), whole)


def test_two_fits_are_identical(name: str) -> None:
    (first, new), (second, _) = _fitted(name), _fitted(name)
    assert np.array_equal(first.predict(new), second.predict(new))
    assert np.array_equal(
        clone(first).fit(*_data()[:2]).predict(new), clone(first).fit(*_data()[:2]).predict(new)
    )


def _plain(value: Any) -> Any:
    """Split a state into JSON values and numeric arrays, refusing anything else."""
    if isinstance(value, dict):
        assert all(isinstance(key, str) for key in value)
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        assert value.dtype.kind in "fiub"
        assert np.isfinite(value).all()
        return None
    return json.loads(json.dumps(value, allow_nan=False))


def _stored(value: Any) -> Any:
    """Return a state as a file gives it back: new arrays, laid out by rows."""
    if isinstance(value, dict):
        return {key: _stored(item) for key, item in value.items()}
    return np.array(value, order="C") if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("n", [120, 6])
def test_state_round_trip(name: str, n: int) -> None:
    """Also with so few rows that thresholds are infinite."""
    X, y, target, new = _data(n=n)
    model = _make(name).fit(X, y, X_target=target)
    state = model.to_state()
    _plain(state)
    again = _class(name).from_state(_stored(state))
    assert again.get_params() == model.get_params()
    assert np.array_equal(again.predict(new), model.predict(new))
    with pytest.raises((LrqrError, ValueError)):
        again.predict(new[:, :2])


def test_covers_without_shift(name: str) -> None:
    """Mean coverage over seeds; the slack allows for estimated nuisances and three coefficients."""
    shares = []
    for seed in range(8):
        X, y, target, new = _data(seed, n=400, shift=0.0)
        rng = np.random.default_rng(1000 + seed)
        new = rng.normal(size=(150, 3))
        outcome = np.abs(rng.normal(size=150)) * (1 + 0.5 * np.abs(new[:, 0]))
        shares.append(np.mean(outcome <= _make(name).fit(X, y, X_target=target).predict(new)))
    assert np.mean(shares) >= 0.87
    if name != "dro":  # its ball is never empty, and soon holds everything
        assert np.mean(shares) <= 0.96


def test_scores_in_other_units_give_thresholds_in_other_units(name: str) -> None:
    X, y, target, new = _data()
    first = _make(name).fit(X, y, X_target=target).predict(new)
    second = _make(name).fit(X, 1000 * y, X_target=target).predict(new)
    assert np.allclose(second, 1000 * first, rtol=1e-4 if name == "lrqr" else 1e-7, atol=0)


def test_a_shared_ratio_equals_its_own(name: str) -> None:
    X, y, target, new = _data()
    shared = LikelihoodRatio().fit(X, target)
    alone = _make(name).fit(X, y, X_target=target).predict(new)
    together = _make(name).fit(X, y, X_target=target, ratio=shared).predict(new)
    assert np.array_equal(alone, together)


def test_a_separate_unlabeled_source_is_used(name: str) -> None:
    X, y, target, new = _data()
    source = np.random.default_rng(9).normal(size=(300, 3))
    model = _make(name).fit(X, y, X_target=target, X_source=source)
    assert not np.isnan(model.predict(new)).any()
    if _class(name).USES_RATIO:
        shared = LikelihoodRatio().fit(source, target)
        again = _make(name).fit(X, y, X_target=target, X_source=source, ratio=shared)
        assert np.array_equal(again.predict(new), model.predict(new))
        with pytest.raises(UsageError, match="300 source rows, but 120"):
            _make(name).fit(X, y, X_target=target, ratio=shared)


def test_known_ratios_are_used_or_refused(name: str) -> None:
    X, y, target, new = _data()
    known = np.exp(0.5 * X[:, 0])
    if not _class(name).USES_RATIO:
        with pytest.raises(UsageError, match="would be ignored"):
            _make(name).fit(X, y, X_target=target, ratio=known)
        return
    model = _make(name).fit(X, y, X_target=target, ratio=known)
    scaled = _make(name).fit(X, y, X_target=target, ratio=1e6 * known)
    tests = np.exp(0.5 * new[:, 0])
    assert np.allclose(model.predict(new, ratio=tests), scaled.predict(new, ratio=1e6 * tests), rtol=1e-12)
    again = _class(name).from_state(model.to_state())
    assert np.array_equal(again.predict(new, ratio=tests), model.predict(new, ratio=tests))


@pytest.mark.parametrize(
    ("coverage", "message"), [(90, "did you mean 0.9"), (0, "between"), (1, "between"), (1.5, "between")]
)
def test_levels_out_of_range_are_refused(name: str, coverage: float, message: str) -> None:
    X, y, *_ = _data()
    with pytest.raises(UsageError, match=message):
        _make(name, coverage=coverage).fit(X, y)


def test_hard_features_give_no_nan(name: str) -> None:
    """Disjoint supports, a constant, a duplicated and a huge column, equal scores."""
    X, y, target, new = _data(shift=30.0)
    hard = [np.column_stack([Z, np.ones(len(Z)), Z[:, 0], 1e8 * Z[:, 1]]) for Z in (X, target, new)]
    got = _make(name).fit(hard[0], y, X_target=hard[1]).predict(hard[2])
    assert got.shape == (40,)
    assert not np.isnan(got).any()
    X, y, target, new = _data()
    equal = _make(name).fit(X, np.full(len(X), 0.5), X_target=target).predict(X)
    assert np.mean(equal >= 0.5 - 1e-9) >= 0.9
