"""Learned features: honest about the rows they learned from, the same for any order; the laws of the lift."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from lrqr.arrays import LARGEST_SEED
from lrqr.calibrate import store as artifact
from lrqr.calibrate.learned import COMPONENTS, WIDE, LearnedFeatures
from lrqr.calibrate.offset import TEST_MASS, Offset, shape_level
from lrqr.calibrate.threshold import ThresholdModel
from lrqr.errors import DataError, UsageError
from lrqr.stats.quantiles import conformal_quantile, weighted_quantile
from lrqr.stats.ratio import LikelihoodRatio


def shifted(n: int = 400, m: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Source rows, scores whose spread is exp(first feature), target rows moved along the first feature."""
    rng = np.random.default_rng(seed)
    source, target = rng.normal(size=(n, 3)), rng.normal([1.0, 0.0, 0.0], 1.0, size=(m, 3))
    return source, np.abs(rng.normal(size=n)) * np.exp(source[:, 0]), target


@pytest.fixture(scope="module")
def fitted() -> tuple[LearnedFeatures, np.ndarray, np.ndarray]:
    features = LearnedFeatures(random_state=3)
    own, of_target = features.fit_transform(*shifted())
    return features, own, of_target


def test_they_see_the_shift_and_the_spread(fitted: tuple[LearnedFeatures, np.ndarray, np.ndarray]) -> None:
    features, own, of_target = fitted
    source, _, _ = shifted()
    true_log_ratio = source[:, 0] - 0.5
    assert np.corrcoef(own[:, 0], true_log_ratio)[0, 1] > 0.7
    assert np.corrcoef(own[:, 1], np.exp(source[:, 0]))[0, 1] > 0.6
    assert of_target[:, 0].mean() > own[:, 0].mean()
    assert features.source_ratio_.mean() == pytest.approx(1.0)
    np.testing.assert_allclose(features.ratio(own), features.source_ratio_)


def test_a_row_is_judged_by_models_that_have_not_seen_it() -> None:
    """Scores of pure noise: seen rows would correlate with their own score, unseen ones do not."""
    rng = np.random.default_rng(5)
    X, y, target = rng.normal(size=(400, 4)), rng.exponential(size=400), rng.normal(size=(200, 4))
    features = LearnedFeatures()
    own, of_target = features.fit_transform(X, y, target)
    assert np.corrcoef(features.transform(X)[:, 1], y)[0, 1] > 0.3
    assert abs(np.corrcoef(own[:, 1], y)[0, 1]) < 0.15
    # without a shift the log-odds of unseen rows tell nothing, those of seen rows would
    assert abs(own[:, 0].mean() - of_target[:, 0].mean()) < 0.15
    seen = features.transform(target)[:, 0].mean() - features.transform(X)[:, 0].mean()
    assert seen > 0.3


def test_the_order_of_the_rows_does_not_matter(
    fitted: tuple[LearnedFeatures, np.ndarray, np.ndarray],
) -> None:
    features, own, of_target = fitted
    source, scores, target = shifted()
    rng = np.random.default_rng(1)
    order, other = rng.permutation(len(source)), rng.permutation(len(target))
    again = LearnedFeatures(random_state=3)
    own_again, target_again = again.fit_transform(source[order], scores[order], target[other])
    np.testing.assert_array_equal(own_again, own[order])
    np.testing.assert_array_equal(target_again, of_target[other])
    np.testing.assert_array_equal(again.transform(target), features.transform(target))


@pytest.mark.usefixtures("small_map")
@pytest.mark.parametrize("d", [3, WIDE + 20])
def test_a_row_does_not_depend_on_its_batch(d: int) -> None:
    rng = np.random.default_rng(2)
    X, y, target = rng.normal(size=(60, d)), rng.exponential(size=60), rng.normal(size=(50, d))
    X[:, 1] = 7.0  # a constant column
    target[:, 1] = 7.0
    features = LearnedFeatures()
    features.fit_transform(X, y, target)
    together = features.transform(target)
    one_by_one = np.vstack([features.transform(target[i : i + 1]) for i in range(len(target))])
    np.testing.assert_array_equal(one_by_one, together)
    assert np.isfinite(together).all()
    assert features.transform(target[:0]).shape == (0, 2)
    wide = features.directions_
    assert (wide is None) == (d <= WIDE)
    if wide is not None:
        assert wide.shape == (d - 1, COMPONENTS)  # the constant column stays out


def test_predictions_help_and_must_be_given_again() -> None:
    """The score's spread is a function of the prediction that the features do not show."""
    rng = np.random.default_rng(4)
    X, target = rng.normal(size=(500, 2)), rng.normal(size=(300, 2))
    hidden, hidden_target = rng.normal(size=(500, 1)), rng.normal(size=(300, 1))
    y = np.abs(rng.normal(size=500)) * np.exp(hidden[:, 0])
    blind, _ = LearnedFeatures().fit_transform(X, y, target)
    features = LearnedFeatures()
    seeing, _ = features.fit_transform(X, y, target, prediction=hidden, prediction_target=hidden_target)
    assert abs(np.corrcoef(blind[:, 1], np.exp(hidden[:, 0]))[0, 1]) < 0.2
    assert np.corrcoef(seeing[:, 1], np.exp(hidden[:, 0]))[0, 1] > 0.6
    assert features.transform(target, prediction=hidden_target).shape == (300, 2)
    with pytest.raises(DataError, match="fitted with predictions"):
        features.transform(target)
    with pytest.raises(DataError, match="299 rows, expected 300"):
        features.transform(target, prediction=hidden_target[:-1])
    with pytest.raises(DataError, match="or of neither"):
        LearnedFeatures().fit_transform(X, y, target, prediction=hidden)


def test_of_probabilities_only_size_and_spread_matter() -> None:
    """Naming the classes in another order changes nothing; zero probabilities are no trouble."""
    rng = np.random.default_rng(6)
    X, y, target = rng.normal(size=(80, 2)), rng.uniform(size=80), rng.normal(size=(60, 2))
    P, P_target = (rng.dirichlet([0.2] * 4, size=n) for n in (80, 60))
    P[0] = [1.0, 0.0, 0.0, 0.0]
    first = LearnedFeatures().fit_transform(X, y, target, prediction=P, prediction_target=P_target)
    turned = LearnedFeatures().fit_transform(
        X, y, target, prediction=P[:, ::-1], prediction_target=P_target[:, ::-1]
    )
    for a, b in zip(first, turned, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_too_few_rows_and_unfitted_maps_say_so() -> None:
    with pytest.raises(DataError, match="2 rows or more"):
        LearnedFeatures().fit_transform(np.ones((1, 2)), [1.0], np.ones((5, 2)))
    with pytest.raises(NotFittedError):
        LearnedFeatures().transform(np.ones((1, 2)))
    own, of_target = LearnedFeatures().fit_transform([[0.0], [1.0]], [1.0, 2.0], [[0.0], [3.0]])
    assert np.isfinite(own).all()
    assert np.isfinite(of_target).all()


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95])
def test_half_the_mass_makes_the_mean_coverage_exact(level: float) -> None:
    """Rank ⌈(n+½)(1-α)⌉ of n: averaged over a period of the rounding, coverage is 1-α + α/(2(n+1))."""
    exact = Fraction(str(level))
    excess = []
    for n in range(40, 80):
        scores = np.arange(1.0, n + 1.0)
        rank = Offset(scores, np.full(n, 0.7), level).lift(np.array([0.7]))[0]
        assert rank == math.ceil((n + Fraction(1, 2)) * exact)
        excess.append((Fraction(int(rank), n + 1) - exact) * (n + 1) - (1 - exact) / 2)
    assert abs(np.mean(excess)) <= Fraction(1, 2 * exact.denominator)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.floats(-5, 5), st.floats(0.01, 4)), min_size=1, max_size=30), st.floats(0.01, 50)
)
def test_the_lift_is_a_weighted_quantile_between_plug_in_and_conformal(
    pairs: list[tuple[float, float]], ratio: float
) -> None:
    residuals, ratios = (np.array(values) for values in zip(*pairs, strict=True))
    test = np.array([ratio])
    lift = Offset(residuals, ratios, 0.9).lift(test)
    assert weighted_quantile(residuals, ratios, 0.0 * test, 0.9)[0] <= lift[0]
    assert lift[0] <= weighted_quantile(residuals, ratios, test, 0.9)[0]
    brute = [
        q
        for q in sorted(residuals)
        if ratios[residuals <= q].sum() >= 0.9 * (ratios.sum() + ratio / 2) - 1e-9
    ]
    assert lift[0] == (brute[0] if brute else math.inf)
    np.testing.assert_array_equal(Offset(residuals, 7.0 * ratios, 0.9).lift(7.0 * test), lift)


def test_the_shape_is_fitted_at_a_lower_level() -> None:
    assert [round(shape_level(c), 12) for c in (0.8, 0.9, 0.95)] == [0.6, 0.8, 0.9]
    assert all(0.0 < shape_level(c) < c for c in np.linspace(0.01, 0.99, 50))
    assert TEST_MASS == 0.5


@pytest.mark.usefixtures("small_map")
def test_a_learned_model_lifts_its_residuals_and_survives_the_disk(tmp_path: object) -> None:
    source, scores, target = shifted()
    model = ThresholdModel("lrqr", feature_map="learned", random_state=1).fit(source, scores, X_target=target)
    assert model.estimator_.coverage == pytest.approx(0.8)
    assert model.coverage_ == 0.9
    own = model.estimator_.predict(model.learned_.transform(source[:5]))
    weights = model.learned_.ratio(model.learned_.transform(source[:5]))
    np.testing.assert_allclose(model.predict(source[:5]), own + model.offset_.lift(weights), rtol=1e-12)
    path = artifact.save(model.to_state(), f"{tmp_path}/model")
    again = ThresholdModel.from_state(artifact.load(path))
    np.testing.assert_array_equal(again.predict(target), model.predict(target))


def test_known_ratios_take_the_place_of_learned_ones() -> None:
    source, scores, target = shifted()
    ratio, at_target = np.exp(source[:, 0] - 0.5), np.exp(target[:, 0] - 0.5)
    model = ThresholdModel("lrqr", feature_map="learned")
    model.fit(source, scores, X_target=target, ratio=ratio)
    np.testing.assert_array_equal(model.offset_.ratios, ratio)
    assert model.predict(target, ratio=at_target).shape == (200,)
    with pytest.raises(UsageError, match="known ratios"):
        model.predict(target)


def test_without_target_rows_it_covers_like_split() -> None:
    """No shift: the mean threshold is near split's where the score does not depend on the features."""
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(600, 3)), rng.exponential(size=600)
    model = ThresholdModel("lrqr", feature_map="learned").fit(X, y)
    fresh = rng.exponential(size=4000)
    covered = (fresh <= model.predict(rng.normal(size=(4000, 3)))).mean()
    assert covered == pytest.approx((fresh <= conformal_quantile(y, 0.9)).mean(), abs=0.02)


@pytest.mark.coverage
def test_target_coverage_of_the_default_pipeline() -> None:
    """Known shift, spread and shift along one feature: mean coverage over 40 draws within .87 to .93."""
    covered = []
    for seed in range(40):
        source, scores, target = shifted(600, 300, seed)
        model = ThresholdModel("lrqr", feature_map="learned", random_state=seed)
        model.fit(source, scores, X_target=target)
        rng = np.random.default_rng(1000 + seed)
        rows = rng.normal([1.0, 0.0, 0.0], 1.0, size=(1000, 3))
        fresh = np.abs(rng.normal(size=1000)) * np.exp(rows[:, 0])
        covered.append((fresh <= model.predict(rows)).mean())
    assert 0.87 <= np.mean(covered) <= 0.93


@pytest.mark.usefixtures("small_map")
def test_constants_and_copies_change_nothing() -> None:
    rng = np.random.default_rng(4)
    X, target = rng.normal(size=(120, 2)), rng.normal(0.5, 1.0, size=(60, 2))
    scores = np.abs(rng.normal(size=120))

    def more(rows: np.ndarray) -> np.ndarray:
        return np.column_stack([rows[:, 0], np.full(len(rows), 7.0), rows[:, 1], rows[:, 0]])

    plain, padded = LearnedFeatures(), LearnedFeatures()
    few, many = plain.fit_transform(X, scores, target), padded.fit_transform(more(X), scores, more(target))
    np.testing.assert_array_equal(few[0], many[0])
    np.testing.assert_array_equal(few[1], many[1])
    np.testing.assert_array_equal(plain.transform(target), padded.transform(more(target)))
    ratios = [LikelihoodRatio().fit(rows(X), rows(target)) for rows in (np.asarray, more)]
    np.testing.assert_array_equal(ratios[0].source_, ratios[1].source_)


def test_the_last_seed_does() -> None:
    features = LearnedFeatures(random_state=LARGEST_SEED)
    assert features.fit_transform(*shifted(200, 100))[0].shape == (200, 2)
