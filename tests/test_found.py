"""Faults that reviewers of this tool found, on the command line and in Python, with the right answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from commands import classes, lrqr, table, write

from lrqr import LRQR
from lrqr.arrays import LARGEST_SEED
from lrqr.calibrate.learned import LearnedFeatures
from lrqr.calibrate.threshold import ThresholdModel
from lrqr.errors import DataError
from lrqr.stats.quantiles import rows_needed

if TYPE_CHECKING:
    from pathlib import Path

NUMBERS = ("--outcome", "y", "--prediction", "yhat")
LABELS = ("--outcome", "y", "--probability", "p_*")
X = np.random.default_rng(0).normal(size=(200, 2))
SCORES = np.abs(np.random.default_rng(1).normal(size=200))
TARGET = np.random.default_rng(2).normal(0.5, 1.0, size=(100, 2))


@pytest.mark.parametrize("selection", ["auto", "paper"])
def test_columns_that_never_vary_leave_a_quantile(selection: str) -> None:
    model = LRQR(selection=selection).fit(np.zeros((200, 1)), SCORES, X_target=np.zeros((100, 1)))
    (threshold,) = model.predict(np.zeros((1, 1)))
    assert (threshold >= SCORES).mean() == pytest.approx(0.9, abs=1 / 200)


def test_a_constant_shape_does_without_the_rule_of_the_paper() -> None:
    paper, auto = (
        ThresholdModel(method, feature_map="constant").fit(X, SCORES, X_target=TARGET).predict(TARGET)
        for method in (LRQR(selection="paper"), "lrqr")
    )
    np.testing.assert_allclose(paper, auto, rtol=1e-9)


def test_the_last_seed_does() -> None:
    features = LearnedFeatures(random_state=LARGEST_SEED)
    assert features.fit_transform(X, SCORES, TARGET)[0].shape == (200, 2)


def test_negative_ratios_are_refused_everywhere() -> None:
    model = ThresholdModel("lrqr", feature_map="constant")
    with pytest.raises(DataError, match="ratio is negative"):
        model.fit(X, SCORES, X_target=TARGET, ratio=-np.exp(X[:, 0]))
    model.fit(X, SCORES, X_target=TARGET, ratio=np.exp(X[:, 0]))
    with pytest.raises(DataError, match="ratio is negative"):
        model.predict(TARGET[:3], ratio=np.array([-1.0, 2.0, 3.0]))


@pytest.mark.usefixtures("small_map")
@pytest.mark.parametrize("name", ["threshold", "size", "in_red", "outside_support"])
def test_an_id_with_the_name_of_an_answer_is_refused(tmp_path: Path, name: str) -> None:
    source, target = classes(120, seed=1), classes(60, 0.5, seed=2).drop(columns="y")
    named = {"source": source.assign(**{name: range(120)}), "target": target.assign(**{name: range(60)})}
    paths = write(tmp_path, **named, plain=source, plain_target=target)
    ran = lrqr("fit", paths["source"], paths["target"], *LABELS, "--id", name, "-o", tmp_path / "m")
    assert ran.code == 2
    assert f"--id {name!r}: predict writes a column of that name itself" in ran.err
    assert not (tmp_path / "m").exists()
    assert lrqr("fit", paths["plain"], paths["plain_target"], *LABELS, "-o", tmp_path / "m").code == 0
    out = tmp_path / "out.csv"
    assert lrqr("predict", tmp_path / "m", paths["target"], "--id", name, "-o", out).code == 2
    assert not out.exists()


@pytest.mark.usefixtures("small_map")
def test_known_weights_need_no_further_word(tmp_path: Path) -> None:
    """They lift the default, however few the rows; nothing is said to be learned from the features."""
    frames = {"source": classes(60, seed=1), "target": classes(40, 0.5, seed=2)}
    weighted = {name: frame.assign(w=np.exp(0.5 * frame["a"])) for name, frame in frames.items()}
    paths = write(tmp_path, **weighted)
    options = (*LABELS, "--weight-column", "w", "-o", tmp_path / "m")
    ran = lrqr("fit", paths["source"], paths["target"], *options)
    assert ran.code == 0, ran.err
    assert "one constant threshold, corrected for the shift by likelihood ratios given" in ran.err
    assert "Next: lrqr predict" in ran.err
    assert "sets.csv" in ran.err


@pytest.mark.usefixtures("small_map")
def test_weights_too_few_for_the_level_say_up_to_which_weight_a_threshold_is_finite(tmp_path: Path) -> None:
    """Half of a row's weight sits at infinity by default, so the limit is twice as high."""
    limits = {}
    frame = table(120, seed=3).assign(w=1.0)
    paths = write(tmp_path, source=frame, target=frame[["a", "b"]])
    for method in ("lrqr", "weighted"):
        options = (*NUMBERS, "--weight-column", "w", "--coverage", "0.995", "--method", method)
        ran = lrqr("fit", paths["source"], paths["target"], *options, "-o", tmp_path / method)
        text = " ".join(ran.err.split())
        limits[method] = float(text.split("own weight is at most ")[1].split()[0].rstrip(";."))
    assert rows_needed(0.995) > 120
    assert limits["lrqr"] == pytest.approx(2.0 * limits["weighted"], rel=0.01)
    assert limits["weighted"] == pytest.approx(120 * 0.005 / 0.995, rel=0.01)


@pytest.mark.usefixtures("small_map")
def test_what_a_constant_shape_has_no_use_for_is_refused_or_said(tmp_path: Path) -> None:
    source, target = table(150, seed=4), table(80, 0.5, seed=5)[["a", "b", "yhat"]]
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


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\xff", "is not valid TOML"), (b"fit = 3\n", "'fit' must be a table of options")],
)
def test_a_file_of_options_that_is_none(tmp_path: Path, content: bytes, message: str) -> None:
    paths = write(tmp_path, source=table(20), target=table(20)[["a", "b"]])
    config = tmp_path / "c.toml"
    config.write_bytes(content)
    ran = lrqr("fit", paths["source"], paths["target"], *NUMBERS, "-c", config, "-o", tmp_path / "m")
    assert ran.code == 2
    assert message in ran.err
    if content == b"\xff":
        assert lrqr("reproduce", config).code == 2


@pytest.mark.usefixtures("small_map")
def test_compare_pairs_a_size_with_its_own_spread(tmp_path: Path) -> None:
    """Infinite thresholds give sets of all classes: a finite size, and not the clipped one."""
    frames = {
        "source": classes(60, seed=1),
        "target": classes(50, 1.0, seed=2).drop(columns="y"),
        "test": classes(120, 1.0, seed=3),
    }
    paths = write(tmp_path, **frames)
    options = (*LABELS, "--splits", "3", "--coverage", "0.98", "-o", tmp_path / "run", "--format", "json")
    ran = lrqr("compare", paths["source"], paths["target"], paths["test"], *options)
    assert ran.code == 0, ran.err
    runs = pd.read_csv(tmp_path / "run" / "results.csv")
    sizes = runs.pivot_table(index="split", columns="method", values="size_allow")
    for row in ran.json["methods"]:
        own = sizes[row["name"]]
        assert row["size"] == pytest.approx(own.mean())
        assert row["size_se"] == pytest.approx(own.std() / np.sqrt(3), abs=1e-9)
        assert row["size_difference"] == pytest.approx((own - sizes["lrqr"]).mean(), abs=1e-9)
    assert (runs["size_allow"] > runs["size"]).any()
