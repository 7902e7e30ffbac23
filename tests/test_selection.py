"""Choosing λ and the ridge: grids and criteria as stated, recomputed by other means; never a target label."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import QuantileRegressor

from lrqr import solvers
from lrqr.errors import UsageError
from lrqr.methods import selection, weighted
from lrqr.methods.lrqr import LRQR
from lrqr.solvers.problem import Problem
from lrqr.stats.folds import fold_rows
from lrqr.stats.moments import Moments
from lrqr.stats.ratio import LikelihoodRatio
from lrqr.study import config
from lrqr.study import run as study
from lrqr.study.datasets import communities

TASKS = config.load(study.find("selection")).data


def draw(n: int = 120, m: int = 60, d: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, target = rng.normal(size=(n, d)), rng.normal(0.5, 1.0, size=(m, d))
    return X, np.abs(rng.normal(size=n)) * np.exp(0.5 * X[:, 0]), target


def choose(
    X: np.ndarray, scores: np.ndarray, target: np.ndarray, **options: Any
) -> tuple[float, float, list[dict[str, Any]]]:
    settings: dict[str, Any] = {
        "coverage": 0.9,
        "rule": "auto",
        "regularization": "auto",
        "ridge": "auto",
        "tol": 1e-8,
        "solver": "newton",
        "random_state": 0,
    }
    return selection.select(X, scores, target, None, **(settings | options))


def pinball(residual: np.ndarray, level: float = 0.9) -> np.ndarray:
    return np.where(residual >= 0, level * residual, (level - 1) * residual)


def problem(X: np.ndarray, scores: np.ndarray, target: np.ndarray, ridge: float, strength: float) -> Problem:
    return Problem(
        features=np.hstack([np.ones((len(X), 1)), X]),
        scores=scores,
        second_moment=Moments.of(X).augmented_second(ridge),
        target_mean=Moments.of(target).augmented_mean(),
        coverage=0.9,
        regularization=strength,
    )


@pytest.mark.parametrize("rule", selection.RULES)
def test_one_pair_is_chosen(rule: str) -> None:
    ridge, strength, table = choose(*draw(), rule=rule)
    chosen = [row for row in table if row["chosen"]]
    assert len(chosen) == 1
    assert (chosen[0]["ridge"], chosen[0]["regularization"]) == (ridge, strength)
    assert all(row["standard_error"] >= 0 for row in table)
    smallest = min(row["criterion"] for row in table)
    if rule == "paper":
        assert chosen[0]["criterion"] == smallest
        return
    near = [row for row in table if row["criterion"] - smallest <= row["standard_error"]]
    assert chosen[0] == min(near, key=lambda row: (row["ridge"], -row["regularization"]))
    assert next(row for row in table if row["criterion"] == smallest)["standard_error"] == 0.0


def test_a_clear_winner_wins_and_a_tie_goes_to_the_small_ridge() -> None:
    """Rows of equal loss everywhere: 0 against 1 is clear; noise of equal mean is a tie."""
    rng = np.random.default_rng(0)
    clear = np.ones((100, 2, 1))
    clear[:, 1] = 0.5
    mean, error = selection._compare(clear, rng.uniform(size=100))
    np.testing.assert_allclose(mean[:, 0], [1.0, 0.5])
    np.testing.assert_allclose(error, 0.0, atol=1e-12)
    noisy = rng.normal(size=(10_000, 2, 1))
    mean, error = selection._compare(noisy, np.ones(10_000))
    worse = int(mean.argmax())
    assert error[worse, 0] == pytest.approx(np.sqrt(2 / 10_000), rel=0.05)
    assert error[1 - worse, 0] == 0.0


def test_the_grids_are_as_stated() -> None:
    X, scores, target = draw()
    largest = 120 ** (-1 / 3) * (1 / 60 + 1 / 120) ** (-1 / 3)
    assert selection.strongest(120, 60, 120) == pytest.approx(largest)
    paper = choose(X, scores, target, rule="paper")[2]
    np.testing.assert_allclose([row["regularization"] for row in paper], largest * np.arange(1, 11) / 10)
    assert {row["ridge"] for row in paper} == {10.0}
    auto = choose(X, scores, target)[2]
    pairs = {(row["ridge"], round(row["regularization"] / largest, 9)) for row in auto}
    assert pairs == {(ridge, share) for ridge in (10.0, 100.0, 1000.0) for share in (1.0, 0.3, 0.1)}


def test_numbers_are_kept() -> None:
    X, scores, target = draw()
    assert choose(X, scores, target, ridge=3.0, regularization=0.2) == (3.0, 0.2, [])
    ridge, _, table = choose(X, scores, target, ridge=3.0)
    assert ridge == 3.0
    assert {row["ridge"] for row in table} == {3.0}
    _, strength, table = choose(X, scores, target, regularization=0.2)
    assert strength == 0.2
    assert [row["ridge"] for row in table] == [10.0, 100.0, 1000.0]


def test_the_criteria_are_those_of_the_docstring() -> None:
    """Recomputed fold by fold: weighted held-out pinball loss, and the held-out gradient by differences."""
    X, scores, target = draw()
    folds, target_folds = fold_rows((X, scores), 3, 0), fold_rows((target,), 3, 0)
    weights = LikelihoodRatio().fit(X, target).source_
    losses, norms = [], []
    for k in range(3):
        inside, target_inside = folds != k, target_folds != k
        fit = solvers.path(
            problem(X[inside], scores[inside], target[target_inside], 10.0, 0.1), [0.1], tol=1e-8
        )[0]
        held = problem(X[~inside], scores[~inside], target[~target_inside], 10.0, 0.1)
        loss = pinball(scores[~inside] - fit.coef[0] - X[~inside] @ fit.coef[1:])
        losses.append(weights[~inside] @ loss)
        point, step = np.append(fit.coef, fit.beta), 1e-7
        slopes = [
            (
                held.objective((point + e)[:-1], (point + e)[-1])
                - held.objective((point - e)[:-1], (point - e)[-1])
            )
            / (2 * step)
            for e in step * np.eye(len(point))
        ]
        norms.append(np.linalg.norm(slopes))
    options = {"ridge": "auto", "regularization": 0.1}
    auto = choose(X, scores, target, **options)[2]
    assert auto[0]["criterion"] == pytest.approx(np.sum(losses) / weights.sum(), rel=1e-6)
    gradient = np.mean(
        [selection._gradient_norm(*pair) for pair in _fits(X, scores, target, folds, target_folds)]
    )
    assert gradient == pytest.approx(np.mean(norms), rel=1e-4)


def _fits(
    X: np.ndarray, scores: np.ndarray, target: np.ndarray, folds: np.ndarray, target_folds: np.ndarray
) -> list[tuple[Problem, solvers.Solution]]:
    made = []
    for k in range(3):
        inside, target_inside = folds != k, target_folds != k
        fit = solvers.path(
            problem(X[inside], scores[inside], target[target_inside], 10.0, 0.1), [0.1], tol=1e-8
        )[0]
        made.append((problem(X[~inside], scores[~inside], target[~target_inside], 10.0, 0.1), fit))
    return made


def test_without_a_pull_the_criterion_is_that_of_quantile_regression() -> None:
    """λ = 0 and no shift: the ridge does not matter, and the loss is scikit-learn's held-out pinball loss."""
    X, scores, _ = draw()
    table = choose(X, scores, X, regularization=0.0)[2]
    folds = fold_rows((X, scores), 3, 0)
    losses = []
    for k in range(3):
        inside = folds != k
        fit = QuantileRegressor(quantile=0.9, alpha=0.0).fit(X[inside], scores[inside])
        losses.append(pinball(scores[~inside] - fit.predict(X[~inside])).mean())
    for row in table:
        assert row["criterion"] == pytest.approx(np.mean(losses), rel=1e-3)


@pytest.mark.parametrize("rule", selection.RULES)
def test_shuffled_rows_choose_the_same(rule: str) -> None:
    X, scores, target = draw()
    order, other = np.random.default_rng(1).permutation(120), np.random.default_rng(2).permutation(60)
    first = choose(X, scores, target, rule=rule)
    again = choose(X[order], scores[order], target[other], rule=rule)
    assert first[:2] == again[:2]
    np.testing.assert_allclose(
        [row["criterion"] for row in first[2]], [row["criterion"] for row in again[2]], rtol=1e-6
    )


def test_too_few_rows_fall_back_and_a_wrong_rule_gets_a_hint() -> None:
    X, scores, target = draw()
    ridge, strength, table = choose(X, scores, target[:2])
    assert (ridge, table) == (100.0, [])
    assert strength == pytest.approx(0.1 * selection.strongest(120, 2, 120))
    assert choose(X, scores, target[:2], rule="paper")[:2] == (10.0, selection.strongest(120, 2, 120))
    with pytest.raises(UsageError, match="paper"):
        choose(X, scores, target, rule="papers")


def test_learned_features_get_a_light_pull_unless_told_otherwise() -> None:
    estimator = LRQR()
    selection.lighten(estimator, 600, 300)
    assert estimator.regularization == pytest.approx(selection.strongest(600, 300, 600) / 200)
    assert estimator.ridge == 0.01
    told = LRQR(regularization=0.5)
    selection.lighten(told, 600, 300)
    assert (told.regularization, told.ridge) == (0.5, 0.01)
    paper = LRQR(selection="paper")
    selection.lighten(paper, 600, 300)
    assert (paper.regularization, paper.ridge) == ("auto", "auto")


def test_the_table_is_kept_by_the_estimator() -> None:
    X, scores, target = draw()
    model = LRQR().fit(X, scores, X_target=target)
    assert len(model.selection_table_) == 9
    assert (model.ridge_, model.regularization_) in {
        (row["ridge"], row["regularization"]) for row in model.selection_table_ if row["chosen"]
    }


def summary(runs: pd.DataFrame, method: str) -> list[str]:
    """Return dev, shortfall, threshold and size of a method as docs/selection.md prints them."""
    own, split = (
        runs[runs["method"] == name].set_index(["shift", "split"]).sort_index() for name in (method, "split")
    )
    miss = own["coverage"].groupby("shift").mean() - 0.9
    relative = [
        np.exp(np.log(own[name] / split[name]).groupby("shift").mean().mean())
        for name in ("threshold", "size")
    ]
    digits = [f"{value:.4f}".lstrip("0") for value in (miss.abs().mean(), (-miss).clip(lower=0).mean())]
    return digits + [f"{value:.3f}".lstrip("0") for value in relative]


def test_the_documented_numbers_are_those_of_the_runs() -> None:
    docs = Path(__file__).parents[1] / "docs"
    runs, text = pd.read_csv(docs / "results" / "selection.csv"), (docs / "selection.md").read_text()
    assert set(runs["shift"]) == set(TASKS.chosen())
    assert (runs.groupby(["shift", "method"]).size() == 20).all()
    held_out = runs["shift"].isin(["wine", "racePctHisp", "cifar-mixture"])
    for label, part, method in (
        ("**default**", runs, "default"),
        ("weighted conformal, true ratio", runs, "weighted, true ratio"),
        ("weighted conformal, logistic ratio", runs, "weighted"),
        ("LR-QR on given features, auto", runs, "given, auto"),
        ("LR-QR on given features, paper", runs, "given, paper"),
        ("the eleven it was designed on", runs[~held_out], "default"),
        ("held out: wine, racePctHisp, images", runs[held_out], "default"),
    ):
        cells = next(line for line in text.splitlines() if line.startswith(f"| {label} |")).split("|")[2:6]
        assert [cell.split()[0] for cell in cells] == summary(part, method), label


@pytest.mark.parametrize("shift", ["airfoil", "concrete", "mmlu-soft", "cifar-mixture"])
def test_the_true_ratio_of_a_task_turns_its_source_into_its_target(shift: str) -> None:
    """Weighted by the ratio, the source has the target's mean log-ratio, and the ratio its self-averages."""
    gaps = []
    for seed in range(5):
        data = study.draw(TASKS, shift, seed)
        ratio, log_target = data.source.ratio, np.log(data.test.ratio)
        weighted = (ratio * np.log(ratio)).sum() / ratio.sum()
        gaps.append((weighted - log_target.mean()) / log_target.std())
        assert data.target.outcome is None
        rows = [set(map(bytes, part.features)) for part in (data.source, data.test)]
        assert len(data.source) <= 600
        assert not (rows[0] & rows[1]) or shift == "concrete"  # concrete has duplicate rows
    assert abs(np.mean(gaps)) < 0.3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the effective sample size")  # of weighted conformal: domains nearly apart
def test_the_default_keeps_its_promise_on_communities() -> None:
    """20 splits of racepctblack: coverage .86 to .94, where split covers .67; sets below weighted's."""
    covered, sizes = [], []
    for seed in range(20):
        data = communities.split("racepctblack", seed=seed)
        scores, fresh = _ridge_scores(data)
        model = LRQR().fit(data.source.features, scores, X_target=data.target.features)
        rival = weighted.ESTIMATOR().fit(data.source.features, scores, X_target=data.target.features)
        thresholds = [m.predict(data.test.features) for m in (model, rival)]
        covered.append((fresh <= thresholds[0]).mean())
        sizes.append([np.clip(t, 0.0, scores.max()).mean() for t in thresholds])
    assert 0.86 <= np.mean(covered) <= 0.94
    ours, theirs = np.mean(sizes, axis=0)
    assert ours <= theirs


def _ridge_scores(data: Any) -> tuple[np.ndarray, np.ndarray]:
    from lrqr.calibrate.base import BaseLearner

    base = BaseLearner("ridge", classify=False).fit(data.train.features, data.train.outcome)
    return tuple(
        np.abs(base.predict(rows.features)[:, 0] - rows.outcome) for rows in (data.source, data.test)
    )
