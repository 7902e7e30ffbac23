"""Thresholds stay what they were: fits recorded before the house was redrawn, and models stored by it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import classes, lrqr, table

RECORDED = Path(__file__).parent / "recorded"
THRESHOLDS = RECORDED / "thresholds.json"
NUMBERS = ["--outcome", "y", "--prediction", "yhat"]
LABELS = ["--outcome", "y", "--probability", "p_*"]
GIVEN = ["--feature-map", "given"]

FITS: dict[str, list[str]] = {
    "default": NUMBERS,
    "lrqr-given": [*NUMBERS, *GIVEN],
    "lrqr-constant": [*NUMBERS, "--feature-map", "constant"],
    "lrqr-paper": [*NUMBERS, "--selection", "paper"],
    "lrqr-fixed": [*NUMBERS, "--regularization", "0.1", "--ridge", "1"],
    "split": [*NUMBERS, "--method", "split"],
    "split-learned": [*NUMBERS, "--method", "split", "--feature-map", "learned"],
    "weighted": [*NUMBERS, "--method", "weighted"],
    "doubly-robust": [*NUMBERS, "--method", "doubly-robust"],
    "dro": [*NUMBERS, "--method", "dro"],
    "dro-isotonic": [*NUMBERS, "--method", "dro-isotonic"],
    "robust-weighted": [*NUMBERS, "--method", "robust-weighted"],
    "conditional": [*NUMBERS, "--method", "conditional"],
    "normalized": ["--outcome", "y", "--prediction", "yhat", "--prediction", "sd", "--score", "normalized"],
    "precomputed": ["--score-column", "s"],
    "base": ["--outcome", "y", "--base", "ridge", "--exclude", "yhat", "--feature-map", "learned"],
    "known-ratio": [*NUMBERS, "--weight-column", "w"],
    "lac": LABELS,
    "aps-given": [*LABELS, "--score", "aps", *GIVEN],
    "raps-weighted": [*LABELS, "--score", "raps", "--method", "weighted"],
    "lac-learned": [*LABELS, "--feature-map", "learned"],
    "base-logistic": [
        "--outcome",
        "y",
        "--base",
        "logistic",
        "--exclude",
        "p_*",
        "--feature-map",
        "constant",
    ],
}


def _files(folder: Path, name: str) -> dict[str, Path]:
    """Write source, target and new rows with the columns that the fit uses."""
    make = classes if "p_*" in FITS[name] else table
    n = {"source": 300, "target": 160, "new": 60}
    frames = {
        part: make(count, 0.0 if part == "source" else 0.6, seed=seed)
        for seed, (part, count) in enumerate(n.items(), start=21)
    }
    extra = {
        "normalized": lambda frame: frame.assign(sd=1.0 + frame["b"] ** 2),
        "precomputed": lambda frame: frame.assign(s=(frame["y"] - frame["yhat"]).abs()).drop(
            columns=["y", "yhat"]
        ),
        "known-ratio": lambda frame: frame.assign(w=np.exp(0.6 * frame["a"] - 0.18)),
    }.get(name, lambda frame: frame)
    paths = {}
    for part, frame in frames.items():
        paths[part] = folder / f"{part}.csv"
        written = extra(frame)
        kept = written if part == "source" else written.drop(columns=["y", "s"], errors="ignore")
        kept.to_csv(paths[part], index=False)
    return paths


def thresholds(folder: Path, name: str) -> list[float]:
    """Fit by the command line and return the thresholds of new rows."""
    paths = _files(folder, name)
    fit = lrqr("fit", paths["source"], paths["target"], *FITS[name], "-o", folder / "model")
    assert fit.code == 0, fit.err
    predict = lrqr("predict", folder / "model", paths["new"], "-o", folder / "out.csv")
    assert predict.code == 0, predict.err
    return [float(value) for value in pd.read_csv(folder / "out.csv", dtype=str)["threshold"].astype(float)]


@pytest.mark.parametrize("name", FITS)
def test_thresholds_are_those_recorded(name: str, tmp_path: Path) -> None:
    recorded = [float(value) for value in json.loads(THRESHOLDS.read_text())[name]]
    np.testing.assert_allclose(thresholds(tmp_path, name), recorded, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["default", "aps-given", "weighted", "base"])
def test_models_of_the_first_version_still_answer(name: str, tmp_path: Path) -> None:
    recorded = [float(value) for value in json.loads(THRESHOLDS.read_text())[name]]
    paths = _files(tmp_path, name)
    predict = lrqr("predict", RECORDED / name, paths["new"], "-o", tmp_path / "out.csv")
    assert predict.code == 0, predict.err
    found = pd.read_csv(tmp_path / "out.csv", dtype=str)["threshold"].astype(float)
    np.testing.assert_allclose(found, recorded, rtol=1e-12, atol=1e-12)
