"""How far source and target are apart: the numbers against independent ones, the verdicts on known shifts."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from commands import NUMBERS, lrqr, predicted, table, write
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.stats import ks_2samp, mannwhitneyu, norm

from lrqr.data.columns import schema_differences
from lrqr.errors import DataError, UsageError
from lrqr.stats.diagnosis import (
    _BLIND,
    NO_SHIFT,
    VERDICTS,
    _chance,
    _least_chance,
    _negative_mass,
    area_interval,
    diagnose,
    effective_rows_needed,
    weight_warning,
)
from lrqr.stats.ratio import LikelihoodRatio
from lrqr.stats.support import Support

if TYPE_CHECKING:
    from pathlib import Path

CONTRACT = {
    "n_source", "n_target", "auc", "auc_low", "auc_high", "effective_size", "largest_weight",
    "outside_support", "negative_mass", "verdict", "features",
    "copies_source", "copies_target", "shared_rows", "predictions",
}  # fmt: skip


def gauss(seed: int, n: int, d: int = 2, shift: float = 0.0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(n, d))
    rows[:, 0] += shift
    return rows


# ---- no shift, no overlap, one heavy weight


def test_the_same_rows_twice_are_no_shift() -> None:
    X = gauss(0, 300)
    found = diagnose(X, X.copy())
    assert found.auc_low <= 0.5 <= found.auc_high
    assert found.effective_size > 0.8 * 300
    assert found.verdict == "no shift detected"
    assert found.outside_support == 0.0


@pytest.mark.parametrize("d", [1, 10, 100])
@pytest.mark.parametrize(("n", "m"), [(300, 200), (12, 8)])
def test_disjoint_supports_are_no_overlap_and_never_nan(n: int, m: int, d: int) -> None:
    rng = np.random.default_rng(1)
    source, target = rng.uniform(size=(n, d)), rng.uniform(size=(m, d))
    target[:, 0] += 2.0
    found = diagnose(source, target)
    assert found.verdict == "no overlap" or (n == 12 and d == 100)  # 12 rows of 100 features tell nothing
    if d < 100:
        assert found.outside_support == pytest.approx(1.0, abs=0.02)
    numbers = [value for value in found.to_dict().values() if isinstance(value, float)]
    assert all(math.isfinite(value) for value in numbers)


def test_single_rows_and_constants_give_finite_answers() -> None:
    for source, target, verdict in [
        (np.zeros((1, 1)), np.ones((1, 1)), "no overlap"),
        (np.full((20, 2), 1.0), np.full((20, 2), 2.0), "no overlap"),
        (np.full((20, 2), 1.0), np.full((20, 2), 1.0), "no shift detected"),
        (np.full((20, 1), 1e9), np.full((9, 1), 1e9), "no shift detected"),
    ]:
        found = diagnose(source, target)
        assert found.verdict == verdict
        assert json.loads(json.dumps(found.to_dict(pictures=True), allow_nan=False))


def test_one_heavy_weight_is_told() -> None:
    weights = np.ones(100)
    weights[17] = 1e6
    message = weight_warning(weights, 0.9)
    assert message is not None
    assert "worth 1 equally weighted" in message
    # finite only where w_test / (Σw + w_test) <= α, that is w_test <= Σw α / (1-α)
    assert f"at most {weights.sum() / 9:.3g}" in message
    assert weight_warning(np.ones(100), 0.9) is None
    assert weight_warning(np.ones(100), 0.99) is not None


def test_rows_needed_keep_the_coverage_within_half_of_alpha() -> None:
    for alpha in (0.01, 0.1, 0.2):
        assert math.sqrt(alpha * (1 - alpha) / effective_rows_needed(1 - alpha)) == pytest.approx(alpha / 2)


# ---- the verdict


@pytest.mark.parametrize(
    ("shift", "verdict"),
    [(0.0, VERDICTS[0]), (0.7, VERDICTS[1]), (2.2, VERDICTS[2]), (5.0, VERDICTS[3])],
)
@pytest.mark.parametrize("seed", range(3))
def test_verdicts_follow_a_growing_shift(shift: float, verdict: str, seed: int) -> None:
    assert diagnose(gauss(seed, 500), gauss(seed + 100, 300, shift=shift)).verdict == verdict


def test_a_shift_that_a_line_cannot_see_is_seen() -> None:
    narrow = diagnose(gauss(0, 400, 1), 0.3 * gauss(1, 300, 1))
    assert narrow.auc_low <= 0.5  # the linear classifier is blind
    assert narrow.verdict == "shift within reach"
    angle = np.random.default_rng(3).uniform(0, 2 * np.pi, 400)
    ring = 5.0 * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.1 * gauss(4, 400)
    assert diagnose(ring, 0.5 * gauss(5, 300)).verdict == "no overlap"


def test_few_rows_without_a_visible_shift_are_not_called_alike() -> None:
    few, many = diagnose(gauss(0, 12), gauss(1, 12)), diagnose(gauss(0, 300), gauss(1, 300))
    assert few.verdict == many.verdict == "no shift detected"
    assert "12 source and 12 target rows are too few to see a moderate one" in few.promise
    assert "look alike" in many.promise
    assert norm.cdf(1.0 / math.sqrt(2.0)) == pytest.approx(_BLIND, abs=0.001)


def test_coverage_decides_what_is_little() -> None:
    source, target = gauss(0, 500), gauss(7, 300, shift=1.3)
    found = {level: diagnose(source, target, coverage=level) for level in (0.8, 0.99)}
    assert found[0.8].verdict == "shift within reach"
    assert found[0.99].verdict == "little overlap"  # needs 396 effective rows
    assert found[0.99].effective_size < effective_rows_needed(0.99)


@pytest.mark.coverage
@pytest.mark.parametrize(("n", "m", "d"), [(300, 300, 2), (300, 200, 20), (100, 100, 50), (50, 20, 1)])
@pytest.mark.parametrize("kind", ["gauss", "heavy", "discrete"])
def test_equal_distributions_are_rarely_called_shifted(n: int, m: int, d: int, kind: str) -> None:
    """At most 5 % false alarms: of 60 runs no more than 7 (a true 5 % passes 99 times of 100)."""
    draw: dict[str, Any] = {
        "gauss": lambda rng, k: rng.normal(size=(k, d)),
        "heavy": lambda rng, k: rng.standard_t(2, size=(k, d)),
        "discrete": lambda rng, k: rng.integers(0, 4, size=(k, d)),
    }
    alarms = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, n, m, d])
        alarms += diagnose(draw[kind](rng, n), draw[kind](rng, m)).verdict != "no shift detected"
    assert alarms <= 7


# ---- the AUC and its interval


@given(st.integers(2, 60), st.integers(2, 60), st.integers(0, 2**31))
@settings(max_examples=80, deadline=None)
def test_interval_holds_one_half_just_when_mann_whitney_does_not_reject(n: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    source, target = rng.normal(size=n), rng.normal(rng.choice([0.0, 0.6]), size=m)
    test = mannwhitneyu(target, source, method="asymptotic", use_continuity=False)
    low, high = area_interval(test.statistic / (n * m), n, m, inflation=1.0)
    assert (low <= 0.5 <= high) == (test.pvalue >= 0.05)


@given(st.floats(0, 1), st.integers(1, 500), st.integers(1, 500))
@settings(max_examples=200, deadline=None)
def test_interval_is_ordered_proper_and_never_a_point(area: float, n: int, m: int) -> None:
    low, high = area_interval(area, n, m)
    assert 0.0 <= low <= area <= high <= 1.0
    assert high - low > 1e-4
    mirrored = area_interval(1.0 - area, n, m)
    assert (1.0 - mirrored[1], 1.0 - mirrored[0]) == pytest.approx((low, high), abs=1e-9)
    wider = area_interval(area, n, m, 0.99)
    assert wider[0] <= low + 1e-9
    assert wider[1] >= high - 1e-9


def test_interval_agrees_with_a_bootstrap_of_fixed_scores() -> None:
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=150), rng.normal(1.2, size=100)
    areas = []
    for _ in range(1000):
        s, t = rng.choice(source, 150), rng.choice(target, 100)
        areas.append((t[:, None] > s).mean() + (t[:, None] == s).mean() / 2)
    low, high = area_interval(float((target[:, None] > source).mean()), 150, 100, inflation=1.0)
    assert [low, high] == pytest.approx(np.quantile(areas, [0.025, 0.975]), abs=0.015)


@pytest.mark.coverage
@pytest.mark.parametrize("shift", [0.0, 1.0, 2.5])
def test_interval_holds_the_area_that_the_classifier_has_on_fresh_rows(shift: float) -> None:
    held = 0
    runs = 60
    for seed in range(runs):
        source, target = gauss(seed, 200, 5), gauss(seed + 1000, 150, 5, shift)
        found = diagnose(source, target)
        direction = found.support.direction
        assert direction is not None
        # rows are normal with unit spread: the true area of a linear score is Φ(w·δ / (√2 |w|))
        raw = direction / found.support.scale
        true = norm.cdf(raw[0] * shift / (math.sqrt(2.0) * np.linalg.norm(raw)))
        held += found.auc_low <= true <= found.auc_high
    assert held >= 0.9 * runs


# ---- single numbers


def test_effective_size_and_largest_weight_are_those_of_the_out_of_fold_ratio() -> None:
    source, target = gauss(0, 200), gauss(1, 150, shift=1.0)
    ratio = LikelihoodRatio(random_state=3).fit(source, target)
    found = diagnose(source, target, ratio=ratio)
    weights = ratio.source_
    assert found.effective_size == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert found.largest_weight == pytest.approx(weights.max() / weights.sum())
    pairs = ratio.target_log_odds_[:, None] - ratio.source_log_odds_
    assert found.auc == pytest.approx(((pairs > 0) + 0.5 * (pairs == 0)).mean())


def test_negative_mass_against_a_dense_formula() -> None:
    source, target = gauss(0, 80, 3), gauss(1, 60, 3, shift=2.0)
    both = np.vstack([source, target])
    phi = [np.column_stack([np.ones(len(X)), (X - both.mean(0)) / both.std(0)]) for X in (source, target)]
    second = phi[0].T @ phi[0] / len(source) + 0.1 * np.diag([0.0, 1.0, 1.0, 1.0])
    r = phi[0] @ np.linalg.inv(second) @ phi[1].mean(0)
    assert _negative_mass(source, target) == pytest.approx(-r[r < 0].sum() / np.abs(r).sum(), rel=1e-9)
    assert _negative_mass(source, source) == 0.0


def test_smallest_kolmogorov_smirnov_chance_against_scipy() -> None:
    source, target = gauss(0, 400, 3), gauss(1, 300, 3)
    target[:, 1] *= 1.3
    p = min(ks_2samp(source[:, j], target[:, j], method="exact").pvalue for j in range(3))
    assert _least_chance(source, target) == pytest.approx(3 * p, rel=0.2)


def test_features_are_named_ordered_and_right() -> None:
    source, target = gauss(0, 300, 3), gauss(1, 200, 3)
    target[:, 2] -= 1.5
    first = diagnose(source, target, names=["a", "b", "c"]).features[0]
    assert first["name"] == "c"
    spread = math.sqrt((source[:, 2].var() + target[:, 2].var()) / 2)
    assert first["standardized_difference"] == pytest.approx((target - source.mean(0))[:, 2].mean() / spread)
    assert first["coefficient"] < 0
    assert first["mean_target"] == pytest.approx(target[:, 2].mean())


def test_json_has_exactly_the_keys_of_the_contract() -> None:
    found = diagnose(gauss(0, 60), gauss(1, 50, shift=0.5))
    assert set(found.to_dict()) == CONTRACT
    assert set(found.to_dict(pictures=True)) == CONTRACT | {"overlap", "concentration"}
    pictures = found.to_dict(pictures=True)
    assert sum(pictures["overlap"]["source"]) == 60
    assert sum(pictures["overlap"]["target"]) == 50
    assert pictures["concentration"]["weight"][0] == 0.0
    assert pictures["concentration"]["weight"][-1] == pytest.approx(1.0)
    assert found.promise


def test_order_and_units_do_not_matter() -> None:
    source, target = gauss(0, 120, 3), gauss(1, 90, 3, shift=1.0)
    found = diagnose(source, target)
    shuffled = diagnose(np.random.default_rng(2).permutation(source), target[::-1])
    scaled = diagnose(
        source * [1e6, 1.0, 1e-6] + [1.0, 5.0, 0.0], target * [1e6, 1.0, 1e-6] + [1.0, 5.0, 0.0]
    )
    for other in (shuffled, scaled):
        for key in ("auc", "effective_size", "outside_support", "negative_mass"):
            assert getattr(other, key) == pytest.approx(getattr(found, key), rel=1e-5, abs=1e-7)
        assert other.verdict == found.verdict


def test_trees_may_give_the_ratio() -> None:
    source, target = gauss(0, 60, 1), gauss(1, 50, 1, shift=1.0)
    ratio = LikelihoodRatio("hist-gradient-boosting", cross_fit=2).fit(source, target)
    found = diagnose(source, target, ratio=ratio)
    assert found.features[0]["coefficient"] is None
    assert found.support.direction is None
    assert found.auc == ratio.auc_


def test_bad_input_is_told() -> None:
    X = gauss(0, 20)
    with pytest.raises(DataError, match="at least one source row"):
        diagnose(X[:0], X)
    with pytest.raises(DataError, match="X_target has 1 columns, expected 2"):
        diagnose(X, X[:, :1])
    with pytest.raises(UsageError, match="3 names were given for 2 features"):
        diagnose(X, X, names=["a", "b", "c"])
    with pytest.raises(UsageError, match="not fitted on these"):
        diagnose(X, X, ratio=LikelihoodRatio().fit(X[:10], X))
    with pytest.raises(UsageError, match="between 0 and 1, got 90"):
        diagnose(X, X, coverage=90)


# ---- the support


def test_distances_are_those_of_brute_force() -> None:
    source, new = gauss(0, 90, 4), gauss(1, 50, 4, shift=1.5)
    support = Support.of(source)
    scale = np.quantile(source, 0.75, axis=0) - np.quantile(source, 0.25, axis=0)
    Z, Znew = source / scale, new / scale
    own = cdist(Z, Z)
    np.fill_diagonal(own, np.inf)
    assert support.radius == pytest.approx(own.min(1).max())  # rank ceil(.99 · 91) = 91 > 90: the largest
    assert support.expected == pytest.approx(1 / 91)
    assert (support.far(new) == (cdist(Znew, Z).min(1) > support.radius)).all()


@pytest.mark.parametrize("d", [1, 5, 60])
def test_fresh_source_rows_are_rarely_outside(d: int) -> None:
    shares = [
        float(Support.of(gauss(seed, 400, d)).outside(gauss(seed + 50, 400, d)).mean()) for seed in range(20)
    ]
    assert np.mean(shares) == pytest.approx(0.01, abs=0.005)


def test_copies_and_grids_are_inside() -> None:
    X = gauss(0, 100)
    assert not Support.of(np.vstack([X, X])).far(X).any()
    grid = np.random.default_rng(0).integers(0, 5, size=(500, 2)).astype(float)
    support = Support.of(grid)
    assert not support.far(grid).any()
    assert support.far(np.array([[9.0, 9.0]])).all()
    # ties with the radius, a step of the grid to a neighbor, are inside in any batch
    edge = np.array([[5.0, 2.0], [2.0, -1.0], [5.0, 4.0]])
    alone = np.concatenate([support.far(row[None]) for row in edge])
    assert (alone == support.far(edge)).all()


@given(st.integers(1, 60), st.integers(1, 4), st.integers(0, 500))
def test_far_is_farther_than_the_radius_from_every_reference_row(n: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    support = Support.of(rng.normal(size=(n, d)))
    rows = 2.0 * rng.normal(size=(200, d))
    standard = (rows - support.center) / support.scale
    nearest = np.linalg.norm(standard[:, None] - support.reference, axis=2).min(axis=1)
    never = (np.abs(rows - support.center) > 1e-6)[:, support.constant].any(axis=1)
    clear = np.abs(nearest - support.radius) > 1e-6
    assert np.array_equal(support.far(rows)[clear], (never | (nearest > support.radius))[clear])


def test_a_category_never_seen_is_outside() -> None:
    rng = np.random.default_rng(0)
    source = np.column_stack([rng.normal(size=200), np.zeros(200)])
    rows = np.array([[0.0, 0.0], [0.0, 1.0]])
    assert Support.of(source).outside(rows).tolist() == [False, True]


def test_direction_sees_what_distances_in_many_dimensions_do_not() -> None:
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(400, 150)), rng.normal(size=(400, 150))
    target[:, 0] += 6.0
    found = diagnose(source, target)
    assert found.support.far(target).mean() < 0.5
    assert found.support.outside(target).mean() > 0.9
    assert found.support.outside(source).mean() < 0.01


def test_support_goes_through_json() -> None:
    found = diagnose(gauss(0, 150, 3), gauss(1, 100, 3, shift=1.0))
    state = {
        key: value.tolist() if isinstance(value, np.ndarray) else value
        for key, value in found.support.to_state().items()
    }
    again = Support.from_state(json.loads(json.dumps(state, allow_nan=False)))
    new = gauss(2, 300, 3, shift=2.0)
    assert (again.outside(new) == found.support.outside(new)).all()
    assert 0 < again.outside(new).sum() < 300


def test_state_stays_small_and_batches_do_not_matter() -> None:
    support = Support.of(gauss(0, 3000, 150))
    assert support.reference.size <= 100_000
    new = gauss(1, 50, 150, shift=3.0)
    rows = np.concatenate([support.outside(row[None]) for row in new])
    assert (rows == support.outside(new)).all()


def test_chance_counts_the_uncertainty_of_the_radius() -> None:
    rng = np.random.default_rng(0)
    reference, n, runs = 199, 50, 20_000
    # exceedance probability of the 198th of 199 uniform order statistics
    beyond = 1.0 - np.sort(rng.uniform(size=(runs, reference)), axis=1)[:, 197]
    counts = rng.binomial(n, beyond)
    for count in (1, 2, 4):
        assert _chance(count, n, 2 / 200, reference) == pytest.approx((counts >= count).mean(), abs=0.012)


# ---- the schema


def test_schema_differences_are_listed() -> None:
    source = pd.DataFrame(
        {
            "a": [1, 2],
            "b": [1.0, 2.0],
            "c": ["x", "y"],
            "gone": [0, 0],
            "when": pd.to_datetime(["2020", "2021"]),
        }
    )
    target = pd.DataFrame(
        {"new": [1, 2], "c": ["y", "z"], "b": ["1", "2"], "a": [1.5, np.nan], "when": ["2020", "2021"]}
    )
    assert schema_differences(source, target) == {
        "only_source": ["gone"],
        "only_target": ["new"],
        "changed_types": [
            {"name": "b", "source": "number", "target": "text"},
            {"name": "when", "source": "time", "target": "text"},
        ],
        "unseen_categories": [{"name": "c", "categories": ["z"], "rows": 1}],
    }


def test_equal_schemas_in_another_order_do_not_differ() -> None:
    source = pd.DataFrame({"a": [True, False], "b": pd.Series(["u", None], dtype="category")})
    assert not any(schema_differences(source, source[["b", "a"]].iloc[::-1]).values())


# ---- data frames


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_frames_are_matched_by_name_and_name_the_features(kind: Any) -> None:
    source, target = gauss(3, 200), gauss(4, 150, shift=1.0)
    plain = diagnose(source, target, names=["a", "b"])
    frames = (
        kind({"a": source[:, 0], "b": source[:, 1]}),
        kind({"label": np.arange(150), "b": target[:, 1], "a": target[:, 0]}),
    )
    assert diagnose(*frames).to_dict(pictures=True) == plain.to_dict(pictures=True)
    renamed = diagnose(*frames, names=["first", "second"])
    assert {feature["name"] for feature in renamed.features} == {"first", "second"}
    with pytest.raises(DataError, match=r"X_target lacks 1 column\(s\) of X_source: 'b'"):
        diagnose(frames[0], kind({"a": target[:, 0], "c": target[:, 1]}))
    beside_a_matrix = diagnose(frames[0], target)
    assert [feature["name"] for feature in beside_a_matrix.features] == [
        row["name"] for row in plain.features
    ]


def test_a_column_name_that_occurs_twice_matches_nothing() -> None:
    twice = pd.DataFrame(gauss(3, 50), columns=["a", "a"])
    with pytest.raises(DataError, match="X_source: column names occur twice: 'a'"):
        diagnose(twice, twice)


def test_few_rows_are_not_called_alike() -> None:
    """Ten source rows whose interval of the AUC reaches .9: no shift shows, but one may be there."""
    rng = np.random.default_rng(8)
    promises = {
        found.promise
        for _ in range(20)
        if (found := diagnose(rng.normal(size=(10, 2)), rng.normal(size=(200, 2)))).verdict == NO_SHIFT
        and found.auc_high > 0.8
    }
    assert promises
    assert all("too few" in promise for promise in promises)


def test_no_shift_is_said_to_be_none(tmp_path: Path) -> None:
    rows = table(300, seed=8)
    paths = write(tmp_path, source=rows, target=rows[["a", "b"]])
    found = lrqr("diagnose", paths["source"], paths["target"], "--format", "json").json
    assert found["verdict"] == "no shift detected"
    assert found["auc_low"] <= 0.5 <= found["auc_high"]
    assert found["effective_size"] > 0.8 * 300
    for method in ("split", "lrqr"):
        fitted = lrqr(
            "fit", paths["source"], paths["target"], *NUMBERS, "--method", method, "-o", tmp_path / method
        )
        assert "shift: no shift detected" in fitted.err
    middle = [
        predicted(tmp_path, rows="source", model=name)["threshold"].median() for name in ("split", "lrqr")
    ]
    assert middle[0] == pytest.approx(middle[1], rel=0.2)


def test_disjoint_supports_are_no_overlap(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    source = pd.DataFrame({"x": rng.uniform(0, 1, 200), "yhat": 0.0, "y": rng.normal(size=200)})
    paths = write(tmp_path, source=source, target=pd.DataFrame({"x": rng.uniform(2, 3, 200), "yhat": 0.0}))
    ran = lrqr(
        "diagnose", paths["source"], paths["target"], "--features", "x", "--format", "json", "--strict"
    )
    assert ran.code == 3
    assert ran.json["verdict"] == "no overlap"
    assert ran.json["outside_support"] > 0.95
    assert "Error: no overlap: Most target rows lie where there is no source row." in ran.err
    assert "NaN" not in ran.out
    arguments = ("fit", paths["source"], paths["target"], *NUMBERS, "-o", tmp_path / "model")
    strict = lrqr(*arguments, "--strict")
    assert strict.code == 3
    assert "of the target rows lie where the source has none; no model was written (--strict)" in strict.err
    assert not (tmp_path / "model").exists()
    ran = lrqr(*arguments)
    assert ran.code == 0
    assert "shift: no overlap" in ran.err
    out = predicted(tmp_path)
    assert out["threshold"].notna().all()
    assert out["outside_support"].all()
