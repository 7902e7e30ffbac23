"""Likelihood ratios that the user knows, as a column of weights, on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from commands import LABELS, NUMBERS, classes, lrqr, predicted, table, write

from lrqr.stats.quantiles import rows_needed

if TYPE_CHECKING:
    from pathlib import Path


def test_weights_reach_the_thresholds(tmp_path: Path) -> None:
    frame = table(200, seed=1).assign(one=1.0, tilt=lambda f: np.exp(f["a"]))
    paths = write(tmp_path, source=frame, target=frame[["a", "b"]], test=frame.drop(columns="y"))
    found = {}
    for name in ("one", "tilt"):
        options = (*NUMBERS, "--method", "weighted", "--weight-column", name, "--exclude", "one,tilt")
        ran = lrqr("fit", paths["source"], paths["target"], *options, "-o", tmp_path / name)
        assert ran.code == 0, ran.err
        found[name] = predicted(tmp_path, rows="test", model=name)["threshold"]
    assert (found["one"] != found["tilt"]).all()
    split = (
        "fit",
        paths["source"],
        paths["target"],
        *NUMBERS,
        "--method",
        "split",
        "--exclude",
        "one,tilt",
    )
    assert lrqr(*split, "-o", tmp_path / "split").code == 0
    assert (found["one"] == predicted(tmp_path, rows="test", model="split")["threshold"]).all()
    linear = (*NUMBERS, "--weight-column", "tilt", "--feature-map", "given")
    ran = lrqr("fit", paths["source"], paths["target"], *linear, "-o", tmp_path / "no")
    assert ran.code == 2
    assert "method 'lrqr' with given features uses no likelihood ratio" in ran.err
    assert lrqr(*split, "--weights", "tilt", "-o", tmp_path / "no").code == 2


def test_a_file_without_the_weights_is_refused(tmp_path: Path) -> None:
    frame = table(100, seed=1).assign(w=lambda f: np.exp(f["a"]))
    paths = write(tmp_path, source=frame, target=frame[["a", "b", "yhat"]])
    options = (*NUMBERS, "--method", "weighted", "--weight-column", "w")
    assert lrqr("fit", paths["source"], paths["target"], *options, "-o", tmp_path / "model").code == 0
    ran = lrqr("predict", tmp_path / "model", paths["target"], "-o", tmp_path / "p.csv")
    assert ran.code == 1
    assert "weight column 'w' does not exist" in ran.err


def test_bad_weights_are_named_by_row_and_column(tmp_path: Path) -> None:
    frame = table(50, seed=1).assign(w=1.0)
    frame.loc[[3, 7, 11], "w"] = [-1.0, np.nan, np.inf]
    paths = write(tmp_path, source=frame, target=frame[["a", "b"]].assign(w=1.0))
    options = (*NUMBERS, "--method", "weighted", "--weight-column", "w", "-o", tmp_path / "model")
    ran = lrqr("fit", paths["source"], paths["target"], *options)
    assert ran.code == 1
    assert ran.err.startswith(
        f"Error: {paths['source']}: 3 problems (rows are data rows counted from 1; row 1 is line 2"
    )
    assert "column 'w': 1 of 50 values are missing (row 8)" in ran.err
    assert "column 'w': 1 of 50 values are infinite (row 12)" in ran.err
    assert "column 'w': 1 of 50 values are negative: -1; a ratio of densities is not (row 4)" in ran.err


def test_one_heavy_weight_is_worth_one_row(tmp_path: Path) -> None:
    frame = table(100, seed=1).assign(w=1.0)
    frame.loc[0, "w"] = 1e6
    paths = write(tmp_path, source=frame, target=frame[["a", "b"]], test=frame.drop(columns="y"))
    options = (*NUMBERS, "--method", "weighted", "--weight-column", "w", "-o", tmp_path / "model")
    ran = lrqr("fit", paths["source"], paths["target"], *options)
    assert ran.code == 0
    assert "Warning: the weights of the 100 source rows are worth 1 equally weighted ones" in ran.err
    thresholds = predicted(tmp_path, rows="test")["threshold"]
    total = frame["w"].sum()
    assert (np.isfinite(thresholds) == (frame["w"] / (total + frame["w"]) <= 0.1)).all()


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
