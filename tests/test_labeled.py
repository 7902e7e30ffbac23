"""Labels from the target: what they test, what they correct, and that no row is judged by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from commands import NUMBERS, classes, files, lrqr, predicted, table, write
from scipy.stats import beta, binom, binomtest
from sklearn.linear_model import LinearRegression

from lrqr import ConformalRegressor, load
from lrqr.calibrate.labeled import Correction, Sample, agreement, correct, learn
from lrqr.errors import DataError, LrqrWarning, UsageError
from lrqr.stats.power import power, rows_to_halve, rows_to_tell, spread
from lrqr.stats.quantiles import conformal_quantile

if TYPE_CHECKING:
    from pathlib import Path

# The default, with all its models, is fitted in test_recorded.py.
pytestmark = pytest.mark.usefixtures("small_map")

LEVEL = 0.9
SPLIT = ("--method", "split")


def samples(
    n: int, *, drift: float = 1.0, rows: int = 400, seed: int = 0
) -> tuple[Sample, Sample, np.ndarray[Any, Any]]:
    """Exponential scores, thresholds that cover 90 % of the source's; the target's are ``drift`` as large."""
    rng = np.random.default_rng(seed)
    top = -np.log(1.0 - LEVEL)
    source = Sample(rng.exponential(size=rows), np.full(rows, top), np.ones(rows))
    target = Sample(drift * rng.exponential(size=n), np.full(n, top), np.ones(n))
    return source, target, rng.permutation(n) % 5


def reached(correction: Correction, drift: float = 1.0) -> float:
    """Return the coverage of a corrected threshold on new rows of the target: a law that is known."""
    return float(-np.expm1(-correction.apply(np.full(1, -np.log(1.0 - LEVEL)))[0] / drift))


# ------------------------------------------------------------------------------------------- power


@pytest.mark.parametrize(
    ("n", "level", "truth"), [(20, 0.9, 0.8), (40, 0.9, 0.8), (137, 0.95, 0.9), (5, 0.5, 0.1)]
)
def test_power_is_the_chance_that_the_whole_interval_lies_below(n: int, level: float, truth: float) -> None:
    below = [
        k
        for k in range(n + 1)
        if binomtest(k, n).proportion_ci(confidence_level=0.95, method="exact").high < level
    ]
    assert power(n, level, truth) == pytest.approx(binom.pmf(below, n, truth).sum(), abs=1e-12)


@pytest.mark.parametrize(("level", "truth"), [(0.9, 0.85), (0.9, 0.8), (0.95, 0.9), (0.6, 0.3)])
def test_from_the_number_of_rows_on_the_power_stays(level: float, truth: float) -> None:
    n = rows_to_tell(level, truth)
    assert power(n - 1, level, truth) < 0.8 <= power(np.arange(n, 20 * n), level, truth).min()


def test_spread_is_that_of_the_coverage_of_split_conformal() -> None:
    assert spread(99, 0.9) == pytest.approx(beta(90, 10).std())
    n = rows_to_halve(99)
    assert spread(n, 0.9) <= spread(99, 0.9) / 2 < spread(n - 1, 0.9)


def test_diagnose_says_how_many_labels_would_tell(tmp_path: Path) -> None:
    paths = files(tmp_path)
    ran = lrqr("diagnose", paths["source"], paths["target"], "--exclude", "y,yhat", "--format", "json").json
    needed = ran["labels"]
    assert (needed["drop"], needed["to_tell"]) == pytest.approx((0.85, rows_to_tell(0.9, 0.85)))
    assert spread(needed["to_halve"], 0.9) <= needed["spread"] / 2
    text = lrqr("diagnose", paths["source"], paths["target"], "--exclude", "y,yhat").out
    assert str(needed["to_tell"]) in text
    assert str(needed["to_halve"]) in text


# ------------------------------------------------------------------------------------------- tests


def test_evidence_is_the_exact_binomial_test() -> None:
    source, target, _ = samples(60, drift=1.6)
    found = agreement(source, target, LEVEL)
    covered = int((target.scores <= target.thresholds).sum())
    tails = [binomtest(covered, 60, LEVEL, alternative=side).pvalue for side in ("less", "greater")]
    assert found["p_coverage"] == pytest.approx(min(1.0, 2 * min(tails)))
    interval = binomtest(covered, 60).proportion_ci(method="exact")
    assert (found["low"], found["high"]) == pytest.approx((interval.low, interval.high))


def test_labels_of_the_same_law_rarely_contradict() -> None:
    draws = 300
    wrong = sum(agreement(*samples(50, seed=seed)[:2], LEVEL)["contradicted"] for seed in range(draws))
    assert wrong <= binom.ppf(0.999, draws, 0.05)


def test_the_test_of_scores_sees_what_coverage_does_not() -> None:
    """Scores that all lie just below the threshold: covered as often, by another law."""
    source, target, _ = samples(60)
    squeezed = np.where(target.scores <= target.thresholds, 0.99 * target.thresholds, target.scores)
    found = agreement(source, Sample(squeezed, target.thresholds, target.weights), LEVEL)
    assert found["p_coverage"] > 0.05
    assert found["p_scores"] < 1e-6
    assert found["contradicted"]


def test_weights_make_a_shifted_source_agree() -> None:
    """Scores grow with x; in the target x is 1 three times as often as in the source."""
    rng = np.random.default_rng(3)
    x, x_target = rng.uniform(size=3000) < 0.25, rng.uniform(size=200) < 0.75
    ratio = np.where(x, 3.0, 1.0 / 3.0)

    def rows(inside: Any, weights: Any) -> Sample:
        return Sample(
            (1.0 + 3.0 * inside) * rng.exponential(size=len(inside)), np.full(len(inside), 7.0), weights
        )

    target = rows(x_target, np.ones(200))
    assert agreement(rows(x, ratio), target, LEVEL)["p_scores"] > 0.01
    assert agreement(rows(x, np.ones(3000)), target, LEVEL)["p_scores"] < 1e-6


# ------------------------------------------------------------------------------------ the correction


@pytest.mark.parametrize("drift", [1.0, 0.3, 4.0])
def test_mean_coverage_is_near_the_promise_whatever_happened(drift: float) -> None:
    found = [
        reached(
            correct(*samples(100, drift=drift, seed=seed)[:2], LEVEL, samples(100, seed=seed)[2])[0], drift
        )
        for seed in range(60)
    ]
    assert abs(np.mean(found) - LEVEL) < 0.02


def test_labels_and_a_source_that_agree_spread_less_than_labels_alone() -> None:
    found = [
        reached(correct(*samples(100, rows=2000, seed=seed)[:2], LEVEL, samples(100, seed=seed)[2])[0])
        for seed in range(60)
    ]
    assert np.std(found) < 0.8 * spread(100, LEVEL)


@pytest.mark.parametrize("seed", range(5))
def test_a_source_that_covers_all_cannot_take_more_than_the_labels_allow(seed: int) -> None:
    """Whatever the source says, the labels have half of the mass: at least 1 - α/½ of them stay covered."""
    _, target, folds = samples(100, seed=seed)
    tiny = Sample(np.zeros(10_000), np.full(10_000, 5.0), np.ones(10_000))
    correction, mass = correct(tiny, target, LEVEL, folds)
    assert mass >= 0.5
    assert np.mean(target.scores <= correction.apply(target.thresholds)) >= 1.0 - 0.1 / 0.5


@pytest.mark.parametrize("seed", range(5))
def test_a_source_that_was_not_trusted_does_not_lower_thresholds(seed: int) -> None:
    """Thresholds above what the source asks for, as a floor makes them, and labels that bear them out."""
    source, target, folds = samples(60, drift=1.3, seed=seed)
    raised = Sample(source.scores, 1.3 * source.thresholds, source.weights)
    theirs = Sample(target.scores, 1.3 * target.thresholds, target.weights)
    correction, _ = correct(raised, theirs, LEVEL, folds)
    alone = conformal_quantile(theirs.scores - theirs.thresholds, LEVEL - 0.01)
    assert correction.offset >= min(0.0, alone) - 1e-9


def test_the_mass_of_the_source_falls_as_labels_disagree() -> None:
    masses = []
    for drift in (1.0, 1.7, 4.0):
        source, target, folds = samples(100, drift=drift, seed=1)
        masses.append(correct(source, target, LEVEL, folds)[1])
    assert masses == sorted(masses)
    assert masses[0] < 0.7
    assert masses[-1] > 0.95


def test_a_shape_that_labels_do_not_bear_out_becomes_a_constant() -> None:
    """The thresholds vary tenfold, the scores of the target not at all with them."""
    rng = np.random.default_rng(0)
    thresholds = rng.uniform(0.5, 5.0, size=600)
    source = Sample(thresholds[:400] * rng.uniform(size=400), thresholds[:400], np.ones(400))
    target = Sample(rng.exponential(size=200), thresholds[400:], np.ones(200))
    kept = Sample(thresholds[400:] * rng.uniform(size=200), thresholds[400:], np.ones(200))
    folds = np.arange(200) % 5
    assert correct(source, target, LEVEL, folds)[0].share == 0.0
    assert correct(source, kept, LEVEL, folds)[0].share == 1.0


def test_infinite_thresholds_become_finite_and_order_does_not_matter() -> None:
    source, target, _ = samples(80, seed=2)
    endless = Sample(target.scores, np.where(np.arange(80) < 20, np.inf, target.thresholds), target.weights)
    features = np.random.default_rng(1).normal(size=(80, 2))
    order = np.random.default_rng(2).permutation(80)
    shuffled = Sample(*(part[order] for part in vars(endless).values()))
    one = learn({LEVEL: source}, {LEVEL: endless}, features, LEVEL)
    other = learn({LEVEL: source}, {LEVEL: shuffled}, features[order], LEVEL)
    assert one.corrections == other.corrections
    assert np.isfinite(one.apply(np.array([1.0, np.inf]), LEVEL)).all()


# ------------------------------------------------------------------------------ from files and frames


def labeled(folder: Path, n: int = 60, factor: float = 1.0) -> dict[str, Path]:
    few = table(n, 0.5, seed=9)
    few["y"] = few["yhat"] + factor * (few["y"] - few["yhat"])
    return files(folder) | write(folder, few=few)


def fitted(folder: Path, *options: Any, **kind: Any) -> Any:
    paths = labeled(folder, **kind)
    model = folder / "model"
    arguments = ("--labeled-target", paths["few"], *NUMBERS, *options)
    return lrqr("fit", paths["source"], paths["target"], *arguments, "-o", model, "--force")


def test_fit_says_what_labels_say_and_inspect_too(tmp_path: Path) -> None:
    ran = fitted(tmp_path)
    assert ran.code == 0, ran.err
    assert "do not contradict that only the features shifted" in ran.err
    found = lrqr("inspect", tmp_path / "model", "--format", "json").json["fit"]["labeled"]
    assert found["n"] == 60
    assert not found["contradicted"]
    assert found["power"] == pytest.approx(float(power(60, 0.9, 0.8)))
    assert "do not contradict" in lrqr("inspect", tmp_path / "model").out
    page = tmp_path / "report.html"
    judged = lrqr("evaluate", tmp_path / "model", tmp_path / "test.csv", "--report", page)
    assert "labels at the fit" in judged.out
    assert "do not contradict that only the features shifted" in page.read_text(encoding="utf-8")


def test_a_contradiction_is_a_warning_and_the_intervals_grow(tmp_path: Path) -> None:
    assert fitted(tmp_path, *SPLIT).code == 0
    before = predicted(tmp_path, rows="test")["threshold"].mean()
    ran = fitted(tmp_path, *SPLIT, factor=3.0)
    assert "contradict that only the features shifted" in ran.err.partition("calibrated on")[0]
    assert predicted(tmp_path, rows="test")["threshold"].mean() > 2.0 * before


def test_fewer_than_twenty_are_refused(tmp_path: Path) -> None:
    ran = fitted(tmp_path, *SPLIT, n=19)
    assert ran.code == 1
    assert "19 labeled target rows are too few" in ran.err
    assert not (tmp_path / "model").exists()
    assert fitted(tmp_path, *SPLIT, n=20).code == 0


def test_labeled_rows_without_the_outcome_are_refused(tmp_path: Path) -> None:
    paths = labeled(tmp_path)
    unlabeled = write(tmp_path, few=table(60, 0.5).drop(columns="y"))["few"]
    ran = lrqr(
        "fit", paths["source"], paths["target"], "--labeled-target", unlabeled, *NUMBERS, "-o", tmp_path / "m"
    )
    assert ran.code == 1
    assert "'y'" in ran.err


def test_evaluate_names_the_rows_that_the_fit_had(tmp_path: Path) -> None:
    assert fitted(tmp_path, *SPLIT).code == 0
    both = pd.concat([table(60, 0.5, seed=9), table(40, 0.5, seed=4)])
    for name, frame, known in (("own", both[:60], 60), ("mixed", both, 60), ("other", both[60:], 0)):
        path = write(tmp_path, **{name: frame})[name]
        found = lrqr("evaluate", tmp_path / "model", path, "--format", "json").json
        assert found["known_labels"] == known
        assert any("labeled target rows" in sentence for sentence in found["causes"]) == (known > 0)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--method", "split"),
        ("--method", "weighted"),
        ("--feature-map", "given"),
        ("--feature-map", "constant"),
    ],
)
def test_a_stored_model_answers_as_before_with_every_method(tmp_path: Path, options: tuple[str, ...]) -> None:
    assert fitted(tmp_path, *options).code == 0
    model = load(tmp_path / "model")
    assert model.threshold.labeled_ is not None
    again = type(model.threshold).from_state(model.threshold.to_state())
    rows = table(50, 0.5, seed=5)
    X, prediction = rows[["a", "b"]].to_numpy(), rows[["yhat"]].to_numpy()
    thresholds = model.threshold.predict(X, prediction=prediction)
    np.testing.assert_array_equal(again.predict(X, prediction=prediction), thresholds)
    for level in model.threshold.levels_:
        assert np.isfinite(model.threshold.at(level).predict(X, prediction=prediction)).all()


def test_labels_that_the_model_abstains_from_play_no_part(tmp_path: Path) -> None:
    paths = labeled(tmp_path)
    few = pd.read_csv(paths["few"])
    few.loc[:9, "a"] += 1000.0
    few.to_csv(paths["few"], index=False)
    arguments = ("--labeled-target", paths["few"], *NUMBERS, *SPLIT, "--abstain", "-o", tmp_path / "model")
    assert lrqr("fit", paths["source"], paths["target"], *arguments).code == 0
    model = load(tmp_path / "model").threshold
    assert model.support_ is not None
    assert model.labeled_ is not None
    inside = ~model.support_.outside(few[["a", "b"]].to_numpy())
    assert model.labeled_.evidence["n"] == inside.sum() <= 50


def test_sets_take_labels_too(tmp_path: Path) -> None:
    paths = write(
        tmp_path,
        source=classes(300, seed=1),
        target=classes(200, 0.5, seed=2).drop(columns="y"),
        few=classes(60, 0.5, seed=3),
    )
    ran = lrqr(
        "fit", paths["source"], paths["target"], "--labeled-target", paths["few"],
        "--outcome", "y", "--probability", "p_*", "-o", tmp_path / "model",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "60 labeled target rows" in ran.err


def test_the_option_stands_in_a_configuration_file(tmp_path: Path) -> None:
    paths = labeled(tmp_path)
    (tmp_path / "c.toml").write_text(f'[fit]\nlabeled-target = "{paths["few"].as_posix()}"\n')
    ran = lrqr(
        "fit", paths["source"], paths["target"], "-c", tmp_path / "c.toml", *NUMBERS, "-o", tmp_path / "m"
    )
    assert "60 labeled target rows" in ran.err


def wrapped(few: Any, **options: Any) -> ConformalRegressor:
    source, target = table(300, seed=1), table(200, 0.5, seed=2)
    model = LinearRegression().fit(source[["a", "b"]].to_numpy(), source["yhat"])
    wrapper = ConformalRegressor(model, prefit=True)
    X = source[["a", "b"]].to_numpy()
    return wrapper.fit(X, source["y"], X_target=target[["a", "b"]].to_numpy(), labeled_target=few, **options)


def test_the_wrapper_takes_a_pair_and_warns_of_a_contradiction() -> None:
    few = table(60, 0.5, seed=9)
    pair = few[["a", "b"]].to_numpy(), few["y"].to_numpy()
    model = wrapped(pair)
    assert model.threshold_model_.labeled_ is not None
    assert not model.threshold_model_.labeled_.evidence["contradicted"]
    with pytest.warns(LrqrWarning, match="contradict that only the features shifted"):
        wrapped((pair[0], pair[1] + 10.0))


@pytest.mark.parametrize(
    "few", [np.zeros((30, 3)), (np.zeros((30, 2)), np.zeros(29)), (np.zeros((5, 2)), np.zeros(5))]
)
def test_the_wrapper_refuses_what_is_no_pair_of_enough_rows(few: Any) -> None:
    with pytest.raises(
        (UsageError, DataError), match=r"pair \(X, y\)|one value per row|5 labeled target rows"
    ):
        wrapped(few)


def test_known_ratios_do_not_go_with_labels() -> None:
    with pytest.raises(UsageError, match="cannot go together"):
        wrapped((np.zeros((30, 2)), np.zeros(30)), ratio=np.ones(300))
