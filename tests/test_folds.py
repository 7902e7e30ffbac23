"""No split divides what belongs together: copies of a row, and clusters that the user names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from commands import lrqr
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

import lrqr as lrqr_package
from lrqr import ConformalClassifier, ConformalRegressor
from lrqr.calibrate.base import training_rows
from lrqr.errors import DataError, LrqrWarning
from lrqr.stats.diagnosis import NO_SHIFT, area_interval, diagnose
from lrqr.stats.folds import alike, deal_folds, fold_rows, group_size, together
from lrqr.stats.quantiles import conformal_quantile
from lrqr.stats.ratio import LikelihoodRatio

if TYPE_CHECKING:
    from pathlib import Path


def rows(n: int, seed: int, shift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[:, 0] += shift
    return X.round(4), (X[:, 0] + rng.normal(size=n)).round(4)


def repeated(X: np.ndarray, times: int) -> np.ndarray:
    return np.random.default_rng(0).permutation(np.concatenate([X] * times))


# ---- dealing


@given(st.lists(st.integers(1, 12), min_size=8, max_size=60), st.integers(2, 5), st.integers(0, 9))
def test_folds_divide_no_group_and_are_as_even_as_the_largest_allows(
    sizes: list[int], folds: int, seed: int
) -> None:
    groups = np.repeat(np.arange(len(sizes)), sizes)
    dealt = deal_folds(len(groups), folds, seed, groups)
    assert all(len(set(dealt[groups == group])) == 1 for group in range(len(sizes)))
    counts = np.bincount(dealt, minlength=folds)
    assert counts.max() - counts.min() <= max(sizes) + 1
    assert np.array_equal(dealt, deal_folds(len(groups), folds, seed, groups))


def test_without_groups_the_folds_are_what_they_were() -> None:
    X, y = rows(50, 0)
    assert together(X, y, other=rows(30, 1)[0]) is None
    plain = np.random.default_rng(3).permutation(50) % 5
    assert np.array_equal(deal_folds(50, 5, 3, None), plain)


def test_a_base_learner_gets_whole_groups_and_every_class() -> None:
    groups = np.repeat(np.arange(60), 3)
    classes = np.repeat(["a", "b", "c"], [90, 75, 15])
    mask = training_rows(180, 0, classes=classes, groups=groups)
    assert mask.sum() == pytest.approx(90, abs=3)
    assert all(len(set(mask[groups == group])) == 1 for group in range(60))
    for name in "abc":
        assert mask[classes == name].mean() == pytest.approx(0.5, abs=0.11)


def test_shuffled_rows_keep_their_folds() -> None:
    X, y = rows(60, 0)
    X, y = np.concatenate([X] * 3), np.concatenate([y] * 3)
    order = np.random.default_rng(1).permutation(180)
    held, moved = together(X, y), together(X[order], y[order])
    assert held is not None
    assert moved is not None
    one, other = fold_rows((X, y), 5, 0, held), fold_rows((X[order], y[order]), 5, 0, moved)
    assert np.array_equal(one[order], other)


# ---- what belongs together


def test_copies_are_found_and_rows_alike_by_nature_are_none() -> None:
    X, y = rows(100, 0)
    target = rows(150, 1)[0]
    twice, both = np.concatenate([X, X]), np.concatenate([y, y])
    for other in (None, target):
        held = together(twice, both, other=other)
        assert held is not None
        assert np.array_equal(held[:100], held[100:])
        assert len(np.unique(held)) == 100
    # the same features with other outcomes: a model would know them, and the target has none of them
    held = together(twice, np.concatenate([y, y + 1.0]), other=target)
    assert held is not None
    assert np.array_equal(held[:100], held[100:])
    # few values: rows are alike because there is not much else to be
    rng = np.random.default_rng(0)
    few, few_target = (rng.integers(0, 3, size=(n, 3)).astype(float) for n in (400, 200))
    labels = rng.integers(0, 2, 400)
    for outcome, other in ((labels, few_target), (labels, None), (None, few_target), (None, None)):
        assert together(few, outcome, other=other) is None
    age = rng.integers(18, 90, size=(2000, 1)).astype(float)
    assert together(age, labels.repeat(5), other=age[::3]) is None
    # but an outcome that is seldom the same twice tells copies even there
    scores = rng.normal(size=200)
    held = together(np.concatenate([few[:200]] * 2), np.concatenate([scores] * 2), other=few_target)
    assert held is not None
    assert np.array_equal(held[:200], held[200:])


def test_clusters_join_with_copies_and_more_than_half_of_the_rows_are_no_group() -> None:
    X, y = rows(60, 0)
    X[1], y[1] = X[0], y[0]
    held = together(X, y, clusters=np.repeat(["p", "q", "r"], [1, 29, 30]))
    assert held is not None
    assert len(np.unique(held)) == 2  # row 1 belongs to q and is a copy of the one row of p
    assert together(X[2:], y[2:], clusters=np.repeat([0, 1], [50, 8])) is not None
    alone = together(X[2:], y[2:], clusters=np.repeat([0, 1], [50, 8]))
    assert alone is not None
    assert len(np.unique(alone)) == 51


# ---- leaks


@pytest.mark.filterwarnings("ignore:the predictions are farther")
@pytest.mark.parametrize("times", [2, 6])
@pytest.mark.parametrize("kind", ["array", "frame with words", "other outcomes"])
def test_a_model_never_calibrates_on_a_copy_of_what_it_was_fitted_on(times: int, kind: str) -> None:
    """A model that remembers has no error on such rows: its intervals would be points."""
    X, y = rows(900 // times, 0)
    target, truth = rows(1500, 1)
    order = np.random.default_rng(0).permutation(len(X) * times)
    data, outcome = np.concatenate([X] * times)[order], np.concatenate([y] * times)[order]
    given_target = None
    made = (data, target)
    if kind == "frame with words":
        word = [np.where(part[:, 1] > 0, "high", "low") for part in (data, target)]
        made = tuple(
            pd.DataFrame(part).add_prefix("x").assign(w=w) for part, w in zip(made, word, strict=True)
        )
        made = tuple(part.assign(w=pd.Categorical(part["w"]).codes) for part in made)
    if kind == "other outcomes":  # known by the target, which has none of these rows
        outcome = outcome + 1e-6 * np.arange(len(outcome))
        given_target = made[1]
    model = ConformalRegressor(KNeighborsRegressor(1), method="split")
    with pytest.warns(
        LrqrWarning, match=f"{len(X) * (times - 1)} of the {len(X) * times} source rows are copies"
    ):
        model.fit(made[0], outcome, X_target=given_target)
    low, high = model.predict_interval(made[1]).T
    covered = int(((truth >= low) & (truth <= high)).sum())
    assert covered >= 0.8 * 1500  # 450 or fewer rows calibrate: 3.5 standard deviations at 150


def test_a_classifier_does_not_either() -> None:
    X, y = rows(200, 0)
    target, truth = rows(1500, 1)
    model = ConformalClassifier(KNeighborsClassifier(1), coverage=0.8, method="split")
    with pytest.warns(LrqrWarning, match="copies"):
        model.fit(np.concatenate([X] * 3), np.concatenate([y > 0] * 3))
    sets = model.predict_set(target)
    assert sets[np.arange(1500), (truth > 0).astype(int)].mean() >= 0.7


def test_groups_leave_room_for_a_whole_cluster_and_are_one_name_per_row() -> None:
    scores = np.arange(1.0, 21.0)
    assert conformal_quantile(np.repeat(scores, 5), 0.8, 5.0) == conformal_quantile(scores, 0.8)
    assert group_size(None, np.ones(3)) == 1.0
    X, y = rows(100, 0)
    with pytest.raises(DataError, match=r"groups must have shape \(100,\), one name per row, got \(99,\)"):
        ConformalRegressor(KNeighborsRegressor(), method="split").fit(X, y, groups=np.zeros(99))


def test_named_clusters_are_not_divided_by_a_wrapper() -> None:
    class Memory(KNeighborsRegressor):  # type: ignore[misc]
        def fit(self, X: np.ndarray, y: np.ndarray) -> Memory:
            Memory.seen = set(X[:, 0])
            return self._keep(X, y)

        def _keep(self, X: np.ndarray, y: np.ndarray) -> Memory:
            super().fit(X, y)
            return self

    X, y = rows(120, 0)
    groups = np.arange(120) % 30
    ConformalRegressor(Memory(), method="split").fit(X, y, groups=[f"patient {group}" for group in groups])
    inside = np.isin(X[:, 0], list(Memory.seen))
    assert inside.sum() == 60
    assert all(len(set(inside[groups == group])) == 1 for group in range(30))


def test_out_of_fold_ratios_of_copies_are_the_same_and_no_shift_is_seen() -> None:
    X, target = rows(150, 0)[0], rows(100, 1)[0]
    ratio = LikelihoodRatio("hist-gradient-boosting").fit(np.concatenate([X, X]), target)
    assert np.array_equal(ratio.source_[:150], ratio.source_[150:])


# ---- tests count distinct rows


def test_a_diagnosis_is_one_of_distinct_rows() -> None:
    alarms = 0
    for seed in range(12):
        X, target = rows(300, 1000 + seed)[0], rows(60, 2000 + seed)[0]
        found = diagnose(X, repeated(target, 20))
        assert (found.n_target, found.copies_target, found.copies_source) == (1200, 1140, 0)
        assert found.auc_low == area_interval(found.auc, 300, 60)[0]
        alarms += found.verdict != NO_SHIFT
    assert alarms <= 2  # three tests of .005 to .025 each: P(3 or more) < .01


def test_rows_of_both_files_are_named() -> None:
    X, target = rows(300, 0)[0], rows(100, 1)[0]
    found = diagnose(X, np.concatenate([target, X[:40]]))
    assert found.shared_rows == 40
    assert "40 of the 140 target rows are source rows too" in found.notes[0]


def test_fit_and_diagnose_name_copies(tmp_path: Path) -> None:
    X, y = rows(200, 0)
    source = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    pd.concat([source] * 2).to_csv(tmp_path / "s.csv", index=False)
    target = pd.DataFrame(rows(200, 1, 0.5)[0], columns=list("abcd"))
    pd.concat([target, target[:50]]).to_csv(tmp_path / "t.csv", index=False)
    arguments = [tmp_path / "s.csv", tmp_path / "t.csv", "--outcome", "y"]
    ran = lrqr("fit", *arguments, "--base", "ridge", "--method", "split", "-o", tmp_path / "m")
    assert ran.code == 0, ran.err
    for said in ("200 of the 400 source rows are copies", "50 of the 250 target rows are copies"):
        assert ran.err.count(said) == 1
    found = lrqr("diagnose", *arguments, "--format", "json")
    assert (found.json["copies_source"], found.json["copies_target"]) == (200, 50)
    assert "200 of the 400 source rows are copies" in found.err


def near_copies(n: int, times: int, seed: int, shift: float = 0.0) -> pd.DataFrame:
    """Return readings of n subjects, each ``times`` times and never quite the same."""
    X, y = rows(n, seed, shift)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y, subject=[f"{seed}-{k}" for k in range(n)])
    frame = pd.concat([frame] * times, ignore_index=True)
    frame[list("abcdy")] += np.random.default_rng(seed).normal(scale=1e-4, size=(n * times, 5))
    return frame.sample(frac=1.0, random_state=0)


@pytest.mark.parametrize("given", ["flag", "configuration"])
def test_a_named_cluster_is_no_feature_and_no_split_divides_it(given: str, tmp_path: Path) -> None:
    near_copies(100, 6, 0).to_csv(tmp_path / "s.csv", index=False)
    near_copies(200, 1, 1).drop(columns=["y", "subject"]).to_csv(tmp_path / "t.csv", index=False)
    near_copies(1500, 1, 2).drop(columns="subject").to_csv(tmp_path / "u.csv", index=False)
    (tmp_path / "fit.toml").write_text('cluster = "subject"\n', encoding="utf-8")
    fit = ["fit", tmp_path / "s.csv", tmp_path / "t.csv", "--outcome", "y", "--method", "split"]
    fit += ["--base", "hist-gradient-boosting", "-o", tmp_path / "m", "--force"]
    named = ["--cluster", "subject"] if given == "flag" else ["-c", tmp_path / "fit.toml"]
    reached = []
    for more in ([], named):
        ran = lrqr(*fit, *more, *([] if more else ["--exclude", "subject"]))
        assert ran.code == 0, ran.err
        found = lrqr("evaluate", tmp_path / "m", tmp_path / "u.csv", "--format", "json").json
        reached.append(found["coverage"]["high"])
    assert reached[0] < 0.7
    assert reached[1] > 0.85  # of 50 subjects
    model = lrqr("inspect", tmp_path / "m", "--format", "json").json
    assert model["features"] == list("abcd")
    assert model["roles"]["cluster"] == "subject"


def test_compare_takes_groups() -> None:
    source, target, test = near_copies(60, 4, 0), near_copies(80, 1, 1), near_copies(400, 1, 2)
    runs = lrqr_package.compare(
        source,
        target.drop(columns="y"),
        test,
        ["split"],
        splits=2,
        outcome="y",
        base="hist-gradient-boosting",
        groups="subject",
    )
    assert (runs["coverage"] > 0.75).all()  # without: .35


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_alike_where_all_their_bits_are(seed: int) -> None:
    """Against a dictionary of the rows' bytes; -0.0 is 0.0."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-1, 2, size=(60, seed % 5)) * rng.choice(
        [0.0, 1.0, np.nan], p=[0.2, 0.7, 0.1], size=(60, 1)
    )
    y = rng.integers(0, 3, size=60).astype(float)
    first: dict[bytes, int] = {}
    rows = (np.column_stack([X, y]) + 0.0).tolist()
    expected = [first.setdefault(np.array(row).tobytes(), k) for k, row in enumerate(rows)]
    assert alike(X, y).tolist() == expected
