"""Which features a threshold depends on: what "auto" takes, and what the constant map promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from commands import NUMBERS, lrqr, table, write
from sklearn.linear_model import LogisticRegression, Ridge

from lrqr.calibrate import store as artifact
from lrqr.calibrate.threshold import ThresholdModel, resolve_map
from lrqr.commands.wrapper import ConformalClassifier, ConformalRegressor
from lrqr.errors import DataError, UsageError
from lrqr.methods.lrqr import LRQR
from lrqr.methods.split import SplitConformal
from lrqr.methods.weighted import WeightedConformal
from lrqr.stats.quantiles import weighted_quantile

if TYPE_CHECKING:
    from pathlib import Path


def rows(n: int, shift: float, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal([shift, 0.0], 1.0, size=(n, 2))


SOURCE, TARGET = rows(300, 0.0, 0), rows(150, 0.7, 1)
SCORES = np.abs(np.random.default_rng(2).normal(size=300)) * np.exp(0.5 * SOURCE[:, 1])


@pytest.mark.parametrize(
    ("estimator", "classify", "counts", "expected"),
    [
        (LRQR(), False, (200, 100), "learned"),
        (LRQR(), True, (200, 100), "constant"),
        (LRQR(), True, (199, 100), "given"),
        (LRQR(), False, (200, 99), "given"),
        (LRQR(ridge=1.0), True, (500, 500), "given"),
        (LRQR(regularization=0.1), False, (500, 500), "given"),
        (LRQR(selection="paper"), False, (500, 500), "given"),
        (SplitConformal(), True, (500, 500), "given"),
        (WeightedConformal(), False, (500, 500), "given"),
    ],
)
def test_auto(estimator: Any, classify: bool, counts: tuple[int, int], expected: str) -> None:
    n_source, n_target = counts
    found = resolve_map("auto", estimator, classify=classify, n_source=n_source, n_target=n_target)
    assert found == expected


@pytest.mark.parametrize("name", ["given", "learned", "constant"])
def test_what_is_asked_for_is_taken(name: str) -> None:
    for classify in (False, True):
        assert resolve_map(name, LRQR(), classify=classify, n_source=3, n_target=3) == name


def test_what_cannot_be_is_refused() -> None:
    counts = {"classify": False, "n_source": 500, "n_target": 500}
    for name in ("learned", "constant"):
        with pytest.raises(UsageError, match=f"{name} features are for the methods that use none"):
            resolve_map(name, WeightedConformal(), **counts)
    with pytest.raises(UsageError, match="unknown feature map 'learnt', did you mean 'learned'"):
        resolve_map("learnt", LRQR(), **counts)


def test_a_constant_shape_is_weighted_conformal_prediction_with_half_the_mass(tmp_path: Path) -> None:
    """Adding a constant to all thresholds and taking it off all residuals changes nothing."""
    model = ThresholdModel("lrqr", feature_map="constant").fit(SOURCE, SCORES, X_target=TARGET)
    ratio = model.learned_.ratio(model.learned_.transform(TARGET))
    expected = weighted_quantile(SCORES, model.learned_.source_ratio_, 0.5 * ratio, 0.9)
    np.testing.assert_allclose(model.predict(TARGET), expected, rtol=1e-12)
    assert np.ptp(expected[np.isfinite(expected)]) < np.ptp(SCORES)
    path = artifact.save(model.to_state(), tmp_path / "model")
    again = ThresholdModel.from_state(artifact.load(path))
    np.testing.assert_array_equal(again.predict(TARGET), model.predict(TARGET))
    assert again.feature_map_ == "constant"
    assert again.predict(TARGET[:0]).shape == (0,)


def test_a_constant_shape_covers_every_calibration_row_of_a_tie() -> None:
    model = ThresholdModel("lrqr", feature_map="constant").fit(SOURCE, np.full(300, 0.3), X_target=TARGET)
    assert (model.predict(TARGET) >= 0.3).all()


def test_classes_get_the_constant_and_intervals_the_learned_features() -> None:
    X, target = rows(700, 0.0, 3), rows(150, 0.5, 4)
    rng = np.random.default_rng(5)
    label = (X[:, 0] + rng.logistic(size=700) > 0).astype(int)
    classifier = ConformalClassifier(LogisticRegression()).fit(X, label, X_target=target)
    regressor = ConformalRegressor(Ridge()).fit(X, X[:, 0] + rng.normal(size=700), X_target=target)
    assert classifier.threshold_model_.feature_map_ == "constant"
    assert regressor.threshold_model_.feature_map_ == "learned"
    # of rows with the same probabilities and the same ratio, none has a larger set
    thresholds = classifier.predict_threshold(target)
    order = np.argsort(
        classifier.threshold_model_.learned_.transform(target, prediction=classifier.predict_proba(target))[
            :, 0
        ]
    )
    assert (np.diff(thresholds[order]) >= -1e-12).all()


def test_a_constant_shape_does_without_the_rule_of_the_paper() -> None:
    paper, auto = (
        ThresholdModel(method, feature_map="constant").fit(SOURCE, SCORES, X_target=TARGET).predict(TARGET)
        for method in (LRQR(selection="paper"), "lrqr")
    )
    np.testing.assert_allclose(paper, auto, rtol=1e-9)


def test_negative_ratios_are_refused_everywhere() -> None:
    model = ThresholdModel("lrqr", feature_map="constant")
    with pytest.raises(DataError, match="ratio is negative"):
        model.fit(SOURCE, SCORES, X_target=TARGET, ratio=-np.exp(SOURCE[:, 0]))
    model.fit(SOURCE, SCORES, X_target=TARGET, ratio=np.exp(SOURCE[:, 0]))
    with pytest.raises(DataError, match="ratio is negative"):
        model.predict(TARGET[:3], ratio=np.array([-1.0, 2.0, 3.0]))


@pytest.mark.usefixtures("small_map")
def test_what_a_constant_shape_has_no_use_for_is_refused_or_said(tmp_path: Path) -> None:
    source, target = table(300, seed=4), table(150, 0.5, seed=5)[["a", "b", "yhat"]]
    paths = write(tmp_path, source=source, target=target, more=table(90, seed=6)[["a", "b", "yhat"]])
    command = ("fit", paths["source"], paths["target"], *NUMBERS, "-o", tmp_path / "m")
    ran = lrqr(*command, "--feature-map", "constant", "--ridge", "5")
    assert ran.code == 2
    assert "with --feature-map constant has no --ridge" in ran.err
    ran = lrqr(*command, "--unlabeled-source", paths["more"])
    assert ran.code == 0
    assert "--unlabeled-source is not used" in ran.err
    given = lrqr(*command, "--unlabeled-source", paths["more"], "--feature-map", "given", "--force")
    assert "--unlabeled-source is not used" not in given.err
