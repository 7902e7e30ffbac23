"""The likelihood ratio: Bayes' rule, cross-fitting, scale, overlap, state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from lrqr.errors import DataError, UsageError
from lrqr.methods.estimator import as_ratio
from lrqr.stats.folds import canonical_order, deal_folds
from lrqr.stats.ratio import PENALTIES, LikelihoodRatio, _prior, effective_size, largest_share


def _gaussians(n: int, m: int, d: int, shift: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    source, target = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    target[:, 0] += shift
    return source, target


def test_effective_size_and_share() -> None:
    """One weight of a million among a hundred is worth one row."""
    assert effective_size(np.array([3.0, 1, 4, 2])) == pytest.approx(10 / 3)
    assert effective_size(np.ones(7)) == 7.0
    assert effective_size(np.zeros(3)) == 0.0
    assert effective_size(np.full(4, 1e300)) == pytest.approx(4.0)
    assert effective_size(np.r_[1e6, np.ones(99)]) == pytest.approx(1.0, abs=1e-3)
    assert largest_share(np.array([3.0, 1, 4, 2])) == 0.4
    assert largest_share(np.zeros(2)) == 1.0


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30))
def test_effective_size_lies_between_one_and_n(weights: list[float]) -> None:
    assert 1.0 - 1e-9 <= effective_size(np.array(weights)) <= len(weights) + 1e-9


def test_prior_correction() -> None:
    """W2.5: rows that no feature tells apart have p = m/(n+m), and ratio 1 whatever n and m are."""
    prior = _prior(np.repeat([0, 1], [100, 50]))
    assert np.exp(logit(0.5) + prior) == pytest.approx(2.0)
    assert np.exp(logit(0.25) + prior) == pytest.approx(2 / 3)
    for n, m in ((100, 50), (50, 100)):
        ratio = LikelihoodRatio(normalize=False).fit(np.zeros((n, 1)), np.zeros((m, 1)))
        assert ratio.source_ == pytest.approx(np.ones(n), abs=1e-4)
        assert ratio.predict(np.array([[0.0]])) == pytest.approx([1.0], abs=1e-4)


def test_two_cells_give_the_ratio_of_shares() -> None:
    """A feature of two values: r is the quotient of the cells' shares, up to the weak penalty."""
    source, target = (
        np.repeat([[0.0], [1.0]], [300, 100], axis=0),
        np.repeat([[0.0], [1.0]], [100, 100], axis=0),
    )
    ratio = LikelihoodRatio(C=100.0).fit(source, target)
    assert ratio.predict(np.array([[0.0], [1.0]])) == pytest.approx([0.5 / 0.75, 0.5 / 0.25], rel=0.01)


@pytest.mark.parametrize("classifier", ["logistic", "hist-gradient-boosting"])
def test_finds_the_true_ratio_of_gaussians(classifier: str) -> None:
    """N(1,1) against N(0,1): log r(x) = x - 1/2, KL = 1/2, AUC = Φ(1/√2)."""
    source, target = _gaussians(6000, 3000, 1, 1.0)
    ratio = LikelihoodRatio(classifier).fit(source, target)
    grid = np.linspace(-1.5, 2.5, 9)[:, None]
    assert np.abs(ratio.log_odds(grid) - (grid[:, 0] - 0.5)).max() < (
        0.15 if classifier == "logistic" else 0.5
    )
    assert ratio.source_.mean() == pytest.approx(1.0)
    assert ratio.auc_ == pytest.approx(0.760, abs=0.02)


def test_logistic_fold_equals_scikit_learn() -> None:
    """Without folds it is scikit-learn's model on pooled-standardized features plus the log prior."""
    source, target = _gaussians(80, 40, 4, 0.7)
    ratio = LikelihoodRatio(cross_fit=0, C=0.3, normalize=False).fit(source, target)
    rows = np.vstack([source, target])
    Z = (rows - rows.mean(0)) / rows.std(0)
    model = LogisticRegression(C=0.3, tol=1e-8, max_iter=1000).fit(Z, np.repeat([0, 1], [80, 40]))
    odds = np.exp(model.decision_function(Z)) * 80 / 40
    assert np.concatenate([ratio.source_, ratio.target_]) == pytest.approx(odds, rel=5e-3)
    assert ratio.predict(source) == pytest.approx(ratio.source_)


@pytest.mark.parametrize("classifier", ["logistic", "hist-gradient-boosting"])
def test_own_values_are_out_of_fold(classifier: str) -> None:
    """Each row's value comes from a model that has not seen it, new rows get the mean of all log-odds."""
    source, target = _gaussians(60, 30, 3, 0.5)
    ratio = LikelihoodRatio(classifier, 3, C=1.0).fit(source, target)
    held = LikelihoodRatio(classifier, 3, C=1.0).fit(source, target)
    assert np.array_equal(ratio.source_, held.source_)
    # move one source row: no model of its own fold has seen it, so the row beside it in that fold stays put
    order, fold = canonical_order(source), deal_folds(60, 3, 0)
    first, second = order[np.flatnonzero(fold == 0)[:2]]
    model = LikelihoodRatio(classifier, 3, C=1.0)
    moved = source.copy()
    moved[first, 2] += 0.01  # the order of rows, and so the folds, stay as they are
    model.fit(moved, target)
    change = np.abs(model.source_log_odds_ - ratio.source_log_odds_)
    if classifier == "logistic":  # the pooled scale moves everything by a hair
        assert change[second] < 0.02 * max(1.0, change[order[fold != 0]].max())
    else:
        assert change[second] == 0.0


def test_in_sample_values_are_too_extreme() -> None:
    """The reason for cross-fitting: without shift, in 40 dimensions, the ratio should be 1."""
    source, target = _gaussians(150, 100, 40, 0.0)
    inside = LikelihoodRatio(cross_fit=0, C=1.0).fit(source, target)
    outside = LikelihoodRatio(cross_fit=5, C=1.0).fit(source, target)
    assert inside.auc_ > 0.75
    assert 0.4 < outside.auc_ < 0.6


def test_penalty_is_chosen_by_out_of_fold_loss() -> None:
    """No shift asks for the strongest penalty, a clear one in few dimensions for a weak one."""
    assert PENALTIES[0] == LikelihoodRatio().fit(*_gaussians(150, 100, 40, 0.0)).C_
    assert LikelihoodRatio().fit(*_gaussians(600, 600, 2, 2.0)).C_ >= 0.1
    source, target = _gaussians(100, 80, 5, 1.0)
    losses = []
    for penalty in PENALTIES:
        fitted = LikelihoodRatio(C=penalty).fit(source, target)
        prior = np.log(100 / 80)
        wrong = np.r_[expit(fitted.source_log_odds_ - prior), expit(prior - fitted.target_log_odds_)]
        losses.append(-np.log1p(-wrong).mean())
    assert PENALTIES[int(np.argmin(losses))] == LikelihoodRatio().fit(source, target).C_


def test_the_same_rows_show_no_shift() -> None:
    """The same 300×2 rows as both files, and two samples of one distribution."""
    rows = np.random.default_rng(0).normal(size=(300, 2))
    for source, target in ((rows, rows), (rows, rows[::-1]), _gaussians(300, 300, 2, 0.0, seed=3)):
        ratio = LikelihoodRatio().fit(source, target)
        assert abs(ratio.auc_ - 0.5) < 0.08
        assert effective_size(ratio.source_) > 0.8 * 300


def test_disjoint_supports_stay_finite() -> None:
    """X in [0,1] and in [2,3]."""
    rng = np.random.default_rng(0)
    source, target = rng.uniform(0, 1, (100, 1)), rng.uniform(2, 3, (100, 1))
    for classifier in ("logistic", "hist-gradient-boosting"):
        ratio = LikelihoodRatio(classifier).fit(source, target)
        assert ratio.auc_ == 1.0
        for values in (ratio.source_, ratio.target_, ratio.predict(np.array([[1e9], [-1e9], [1.5]]))):
            assert np.isfinite(values).all()
            assert (values >= 0).all()


def test_auc_equals_scikit_learn_with_ties() -> None:
    source, target = _gaussians(90, 70, 2, 0.8)
    ratio = LikelihoodRatio().fit(np.round(source), np.round(target))
    odds = np.r_[ratio.source_log_odds_, ratio.target_log_odds_]
    assert ratio.auc_ == pytest.approx(roc_auc_score(np.repeat([0, 1], [90, 70]), odds))


def test_clip_bounds_the_raw_ratio() -> None:
    source, target = _gaussians(200, 200, 1, 2.0)
    ratio = LikelihoodRatio(clip=(0.5, 3.0), normalize=False).fit(source, target)
    assert (ratio.source_.min(), ratio.target_.max()) == (0.5, 3.0)
    assert LikelihoodRatio(clip=(0.5, 3.0)).fit(source, target).source_.mean() == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(8))
def test_the_order_of_the_rows_does_not_matter_by_one_bit(seed: int) -> None:
    source, target = _gaussians(100, 60, 3, 0.5, seed)
    first = LikelihoodRatio().fit(source, target)
    order = np.random.default_rng(1).permutation(100)
    second = LikelihoodRatio().fit(source[order], target[::-1])
    assert np.array_equal(second.source_, first.source_[order])
    assert np.array_equal(second.target_, first.target_[::-1])


def test_units_of_the_data_do_not_matter() -> None:
    source, target = _gaussians(100, 60, 3, 0.5)
    first = LikelihoodRatio().fit(source, target)
    scale, offset = np.array([1e8, 1e-8, -3.0]), np.array([5.0, 0.0, 1e3])
    # folds follow the order of the first column, which these units keep
    third = LikelihoodRatio().fit(source * scale + offset, target * scale + offset)
    assert third.source_ == pytest.approx(first.source_, rel=1e-3)


@pytest.mark.parametrize("classifier", ["logistic", "hist-gradient-boosting"])
def test_state_round_trip(classifier: str) -> None:
    source, target = _gaussians(80, 50, 3, 0.5)
    ratio = LikelihoodRatio(classifier, clip=(0.1, 10.0)).fit(source, target)
    state = ratio.to_state()
    again = LikelihoodRatio.from_state(state)
    assert np.array_equal(again.predict(target), ratio.predict(target))
    assert again.predict(target[:0]).shape == (0,)
    if classifier == "logistic":
        kinds = {type(value) for value in state["fitted"].values()}
        assert kinds <= {int, float, np.ndarray}


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 4), st.integers(0, 1000))
def test_canonical_order_is_the_lexicographic_one(n: int, d: int, values: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, values, (n, d)).astype(float), rng.integers(0, values, n).astype(float)
    rows = sorted(range(n), key=lambda row: (*X[row], y[row], row))
    assert canonical_order(X, y).tolist() == rows


@given(st.integers(2, 60), st.integers(2, 400), st.integers(4, 80), st.integers(0, 50))
def test_training_rows_are_sampled_from_both_domains(n: int, m: int, most: int, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lrqr.stats.ratio.TRAINING_ROWS", most)
        folds = LikelihoodRatio(random_state=seed)._folds(None, None, np.arange(n), np.arange(m))
    assert sorted(np.concatenate([held for _, held in folds])) == list(range(n + m))
    for training, held in folds:
        assert not set(training) & set(held)
        everything = n + m - len(held)
        assert min(everything, most - 1) <= len(training) <= most
        own, other = (training < n).sum(), (training >= n).sum()
        everyone = n - (held < n).sum(), m - (held >= n).sum()
        assert own == everyone[0] or own >= most // 2
        assert other == everyone[1] or other >= most // 2


def test_few_training_rows_give_nearly_the_same_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(6000, 2)), rng.normal(0.5, 1.0, size=(6000, 2))
    whole = LikelihoodRatio(random_state=0).fit(source, target)
    monkeypatch.setattr("lrqr.stats.ratio.TRAINING_ROWS", 2000)
    few = LikelihoodRatio(random_state=0).fit(source, target)
    assert np.corrcoef(few.source_log_odds_, whole.source_log_odds_)[0, 1] > 0.99
    turned = LikelihoodRatio().fit(source[::-1], target)
    assert np.array_equal(few.source_log_odds_, turned.source_log_odds_[::-1])


def test_canonical_order_sorts_by_content() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (40, 2)).astype(float), rng.normal(size=40)
    order = rng.permutation(40)
    a, b = canonical_order(X, y), canonical_order(X[order], y[order])
    assert np.array_equal(X[a], X[order][b])
    assert np.array_equal(y[a], y[order][b])
    assert np.all(np.diff(X[a, 0]) >= 0)


@given(st.integers(2, 60), st.integers(2, 7))
def test_folds_are_even_and_repeatable(n: int, folds: int) -> None:
    dealt = deal_folds(n, folds, 3)
    assert np.array_equal(dealt, deal_folds(n, folds, 3))
    sizes = np.bincount(dealt, minlength=folds)
    assert sizes.max() - sizes.min() <= 1


def _refusals() -> list[tuple[Any, type[Exception], str]]:
    X = np.zeros((5, 2))
    return [
        (lambda: LikelihoodRatio("logistik").fit(X, X), UsageError, "did you mean 'logistic'"),
        (lambda: LikelihoodRatio().fit(X, X[:0]), DataError, "5 source and 0 target"),
        (lambda: LikelihoodRatio().fit(X, np.zeros((5, 3))), DataError, "X_target has 3 columns, expected 2"),
        (lambda: LikelihoodRatio().fit(np.full((2, 1), np.nan), X[:, :1]), DataError, "X_source holds NaN"),
        (lambda: as_ratio(np.ones(3), 4), DataError, r"shape \(4,\)"),
        (
            lambda: as_ratio(np.array([1.0, -1, np.nan, np.inf, 2]), 5),
            DataError,
            r"3 of 5 rows \(row 1: -1, row 2: nan, row 3: inf; counted from 0\)",
        ),
    ]


@pytest.mark.parametrize(("call", "kind", "message"), _refusals())
def test_bad_input_is_named(call: Any, kind: type[Exception], message: str) -> None:
    """All kinds of bad weights in one message."""
    with pytest.raises(kind, match=message):
        call()


def test_single_rows_are_enough() -> None:
    ratio = LikelihoodRatio().fit(np.array([[0.0]]), np.array([[1.0]]))
    assert np.isfinite(ratio.predict(np.array([[0.5]]))).all()
