"""The conditional method: worked numbers, HiGHS programs, the guarantee, hard designs."""

from __future__ import annotations

import math
import time

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

from lrqr.errors import LrqrWarning, UsageError
from lrqr.methods.conditional import Conditional, _uniform, _Vertex
from lrqr.methods.lrqr import LRQR
from lrqr.methods.split import SplitConformal

pytestmark = pytest.mark.filterwarnings("ignore::lrqr.errors.LrqrWarning")
IRREGULAR = [1, 2.3, 1.7, 3.9, 2.2, 5.1, 4.4, 6.8, 3.7, 8.1, 5.9, 9.6]


def _mass(X: np.ndarray, y: np.ndarray, row: np.ndarray, score: float, level: float) -> float:
    """η*(s): the dual of the fit with (row, score) added, straight from HiGHS."""
    design = np.column_stack([np.ones(len(X) + 1), np.vstack([X, row])])
    answer = linprog(
        -np.append(y, score), A_eq=design.T, b_eq=np.zeros(design.shape[1]), bounds=(level - 1, level)
    )
    return float(answer.x[-1])


def _by_program(X: np.ndarray, y: np.ndarray, row: np.ndarray, mass: float, level: float) -> float:
    """The threshold from one HiGHS program per row with the new row's mass fixed."""
    design = np.column_stack([np.ones(len(X)), X])
    answer = linprog(-y, A_eq=design.T, b_eq=-mass * np.append(1.0, row), bounds=(level - 1, level))
    return (
        float(-answer.eqlin.marginals @ np.append(1.0, row))
        if answer.status == 0
        else math.copysign(math.inf, mass)
    )


def _pinball(y: np.ndarray, threshold: np.ndarray, level: float) -> float:
    over = y - threshold
    return float(np.maximum(level * over, (level - 1) * over).sum())


@pytest.mark.parametrize(("n", "imputed", "naive"), [(7, 6.0, 6.0), (8, 7.0, None), (9, 8.0, 7.0)])
def test_intercept_only(n: int, imputed: float, naive: float | None) -> None:
    """C7.1: equal to split; at n = 8 any naive value in [6, 7] is a minimum."""
    X, y = np.zeros((n, 1)), np.arange(1.0, n + 1)
    assert Conditional(0.75).fit(X, y).predict(X[:1]) == pytest.approx([imputed])
    assert imputed == SplitConformal(0.75).fit(X, y).threshold_
    got = Conditional(0.75, mode="naive").fit(X, y).predict(X[:1])[0]
    assert 6.0 <= got <= 7.0 if naive is None else got == pytest.approx(naive)


def test_two_groups() -> None:
    """C7.2: the split threshold of each group."""
    X = np.repeat([[0.0], [1.0]], [5, 6], axis=0)
    y = np.r_[np.arange(1.0, 6), np.arange(10.0, 61, 10)]
    assert Conditional(0.7).fit(X, y).predict(np.array([[0.0], [1.0]])) == pytest.approx([5.0, 50.0])
    naive = Conditional(0.7, mode="naive").fit(X, y).predict(np.array([[0.0], [1.0]]))
    assert 4.0 <= naive[0] <= 5.0
    assert naive[1] == pytest.approx(50.0)


def test_linear_class() -> None:
    """C7.3, with a row that the sample does not support."""
    X, y, new = np.arange(12.0)[:, None], np.array(IRREGULAR), np.array([[0.0], [5.5], [11.0], [20.0]])
    assert Conditional(0.8).fit(X, y).predict(new) == pytest.approx([1.7625, 5.68125, 9.8, math.inf])
    naive = Conditional(0.8, mode="naive").fit(X, y)
    assert naive.predict(new) == pytest.approx([1.57, 5.585, 9.6, 16.17])
    assert (naive.intercept_, naive.coef_[0]) == pytest.approx((1.57, 0.73))


@pytest.mark.parametrize("mode", ["imputed", "randomized", "naive"])
def test_agrees_with_linear_programs(mode: str) -> None:
    """60 random problems with d <= 5 and n <= 80."""
    rng = np.random.default_rng(0)
    infinite = 0
    for trial in range(60):
        n, d, level = int(rng.integers(10, 81)), int(rng.integers(1, 6)), (0.87, 0.6, 0.95)[trial % 3]
        X, y = rng.normal(size=(n, d)), rng.exponential(size=n)
        new = rng.normal(size=(3, d)) * (1, 4)[trial % 2]
        model = Conditional(level, mode=mode).fit(X, y)
        got = model.predict(new)
        if mode == "naive":
            design = np.column_stack([np.ones(n), X])
            zeros = np.zeros(d + 1)
            best = -linprog(-y, A_eq=design.T, b_eq=zeros, bounds=(level - 1, level)).fun
            assert _pinball(y, model.predict(X), level) == pytest.approx(best, rel=1e-9)
            continue
        for row, threshold in zip(new, got, strict=True):
            full = model._design(row[None, :])[0]
            mass = level if mode == "imputed" else level - 1 + _uniform(full, 0)
            expected = _by_program(X, y, row, mass, level)
            assert threshold == pytest.approx(expected, abs=1e-6)
            infinite += math.isinf(threshold)
    assert mode == "naive" or infinite > 0


def test_threshold_is_where_the_mass_of_the_new_row_is_full() -> None:
    """The definition sup{s : η*(s) < 1-α}, by the program with the new row in it."""
    rng = np.random.default_rng(1)
    X, y, new = rng.normal(size=(40, 2)), rng.exponential(size=40), rng.normal(size=(5, 2))
    for row, threshold in zip(new, Conditional(0.8).fit(X, y).predict(new), strict=True):
        assert _mass(X, y, row, threshold - 1e-5, 0.8) < 0.8 - 1e-9
        assert _mass(X, y, row, threshold + 1e-5, 0.8) == pytest.approx(0.8, abs=1e-9)


def test_naive_minimizes_the_pinball_loss() -> None:
    """An independent convex program in another form."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 4)), rng.normal(size=60)
    coef, intercept = cp.Variable(4), cp.Variable()
    over = y - X @ coef - intercept
    best = cp.Problem(cp.Minimize(cp.sum(cp.maximum(0.9 * over, -0.1 * over)))).solve(solver=cp.CLARABEL)
    model = Conditional(mode="naive").fit(X, y)
    assert _pinball(y, model.predict(X), 0.9) == pytest.approx(best, rel=1e-6)


def test_naive_is_lrqr_without_regularization() -> None:
    """LR-QR at λ = 0 (appendix B of arXiv:2502.13030): the same loss, whatever the coefficients."""
    rng = np.random.default_rng(6)
    X, y, target = rng.normal(size=(150, 5)), rng.exponential(size=150), 0.5 + rng.normal(size=(80, 5))
    lrqr = LRQR(regularization=0.0, ridge=0.0).fit(X, y, X_target=target)
    naive = Conditional(mode="naive").fit(X, y)
    best = _pinball(y, naive.predict(X), 0.9)
    assert best * (1 - 1e-9) <= _pinball(y, lrqr.predict(X), 0.9) <= best * (1 + 2e-6)


@pytest.mark.parametrize("mode", ["imputed", "randomized"])
def test_coverage_holds_under_every_tilt_of_the_class(mode: str) -> None:
    """E f(X)(1{covered} - level) >= 0 (= 0 if randomized) for f = 1, 1 + x and 1 - x, x in [-1, 1]."""
    rng = np.random.default_rng(0)
    gaps = []
    for _ in range(400):
        X = rng.uniform(-1, 1, (31, 1))
        y = np.exp(X[:, 0]) * rng.exponential(size=31)
        model = Conditional(0.8, mode=mode).fit(X[:30], y[:30])
        hit = float(y[30] <= model.predict(X[30:])[0]) - 0.8
        gaps.append([hit, (1 + X[30, 0]) * hit, (1 - X[30, 0]) * hit])
    mean, error = np.mean(gaps, axis=0), np.std(gaps, axis=0) / 20
    assert (mean > -3 * error).all()
    if mode == "randomized":
        assert (mean < 3 * error).all()


def test_ties_constants_and_duplicates() -> None:
    """A duplicated and a constant column change nothing; equal scores are covered."""
    rng = np.random.default_rng(3)
    X, new = rng.normal(size=(60, 2)), rng.normal(size=(8, 2))
    for y in (rng.integers(0, 3, 60).astype(float), np.full(60, 0.5), rng.normal(size=60)):
        plain = Conditional().fit(X, y).predict(new)
        wide = [np.column_stack([Z, Z[:, 0], np.full(len(Z), 7.0), 1e8 * Z[:, 1]]) for Z in (X, new)]
        assert Conditional().fit(wide[0], y).predict(wide[1]) == pytest.approx(plain, abs=1e-6)
        expected = [_by_program(X, y, row, 0.9, 0.9) for row in new]
        assert Conditional().fit(X, y).predict(new) == pytest.approx(expected, abs=1e-6)
    # rounding takes no tie out of a closed set
    for mode in ("imputed", "naive"):
        assert (Conditional(mode=mode).fit(X, np.full(60, 0.1)).predict(new[:, :2] / 3) >= 0.1).all()
    # a column that was constant in the sample and is not in the new row: nothing is known there
    wide[1][0, 3] = 8.0
    assert Conditional().fit(wide[0], y).predict(wide[1])[0] == math.inf


def test_more_columns_than_rows() -> None:
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(20, 30)), rng.normal(size=20)
    naive = Conditional(mode="naive").fit(X, y)
    assert naive.predict(X) == pytest.approx(y)
    assert np.isinf(Conditional().fit(X, y).predict(rng.normal(size=(3, 30)))).all()


def test_rounding_can_be_rescued_by_highs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the simplex not to end, HiGHS would take over, with the same thresholds."""
    rng = np.random.default_rng(5)
    X, y, new = rng.normal(size=(50, 3)), rng.exponential(size=50), 2 * rng.normal(size=(10, 3))
    expected = Conditional().fit(X, y).predict(new)
    monkeypatch.setattr(_Vertex, "descend", _Vertex._rescue)
    assert Conditional().fit(X, y).predict(new) == pytest.approx(expected, abs=1e-6)


def test_random_numbers_are_uniform_and_belong_to_the_row() -> None:
    rows = np.random.default_rng(0).normal(size=(2000, 2))
    draws = np.array([_uniform(row, 0) for row in rows])
    assert np.abs(np.quantile(draws, [0.1, 0.5, 0.9]) - [0.1, 0.5, 0.9]).max() < 0.04
    assert _uniform(np.array([0.0]), 0) == _uniform(np.array([-0.0]), 0)
    assert _uniform(rows[0], 0) != _uniform(rows[0], 1)


def test_too_few_rows_and_unknown_modes() -> None:
    X, y = np.zeros((8, 1)), np.arange(8.0)
    with pytest.warns(LrqrWarning, match="needs n >= 9"):
        assert Conditional().fit(X, y).predict(X[:1]).tolist() == [math.inf]
    with pytest.raises(UsageError, match="unknown mode 'exact'"):
        Conditional(mode="exact").fit(X, y)


@pytest.mark.bench
def test_ten_thousand_rows_cost_no_ten_thousand_programs() -> None:
    """Naive scores 10,000 rows in the time of one program; imputed rows beat one program each."""
    rng = np.random.default_rng(0)
    X, y, new = rng.normal(size=(500, 20)), rng.exponential(size=500), rng.normal(size=(10_000, 20))
    naive, imputed = Conditional(mode="naive").fit(X, y), Conditional().fit(X, y)

    def seconds(call: object) -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    program = min(seconds(lambda: _by_program(X, y, new[0], 0.9, 0.9)) for _ in range(3))
    assert min(seconds(lambda: naive.predict(new)) for _ in range(3)) < program
    assert min(seconds(lambda: imputed.predict(new[:20])) for _ in range(3)) / 20 < program / 3
