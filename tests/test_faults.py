"""Faults that users of neighboring tools have met, on the command line, with the messages that users see.

The numbers are those of the list in docs/faq.md.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from commands import Ran, classes, files, lrqr, table, write

from lrqr.stats import metrics

if TYPE_CHECKING:
    from pathlib import Path

USER_MODEL = ("--outcome", "y", "--prediction", "yhat")


def scored(folder: Path, scores: Any, *options: object, features: Any = None, name: str = "model") -> Ran:
    """Fit on scores of the user's own; the target is the source itself."""
    x = np.linspace(0.0, 1.0, len(scores)) if features is None else features
    source = pd.DataFrame({"x": x, "s": scores})
    paths = write(folder, source=source, target=source[["x"]])
    arguments = (
        "fit",
        paths["source"],
        paths["target"],
        "--score-column",
        "s",
        "-o",
        folder / name,
        "--force",
    )
    return lrqr(*arguments, *options)


def predicted(folder: Path, *options: object, rows: str = "target", model: str = "model") -> pd.DataFrame:
    out = folder / "out.csv"
    ran = lrqr("predict", folder / model, folder / f"{rows}.csv", "-o", out, "--force", *options)
    assert ran.code == 0, ran.err
    return pd.read_csv(out)


# ------------------------------------------------------------------------------------- weights and shift


def test_2_weights_reach_the_thresholds(tmp_path: Path) -> None:
    frame = table(200, seed=1).assign(one=1.0, tilt=lambda f: np.exp(f["a"]))
    paths = write(tmp_path, source=frame, target=frame[["a", "b"]], test=frame.drop(columns="y"))
    found = {}
    for name in ("one", "tilt"):
        options = (*USER_MODEL, "--method", "weighted", "--weight-column", name, "--exclude", "one,tilt")
        ran = lrqr("fit", paths["source"], paths["target"], *options, "-o", tmp_path / name)
        assert ran.code == 0, ran.err
        found[name] = predicted(tmp_path, rows="test", model=name)["threshold"]
    assert (found["one"] != found["tilt"]).all()
    split = (
        "fit",
        paths["source"],
        paths["target"],
        *USER_MODEL,
        "--method",
        "split",
        "--exclude",
        "one,tilt",
    )
    assert lrqr(*split, "-o", tmp_path / "split").code == 0
    assert (found["one"] == predicted(tmp_path, rows="test", model="split")["threshold"]).all()
    linear = (*USER_MODEL, "--weight-column", "tilt", "--feature-map", "given")
    ran = lrqr("fit", paths["source"], paths["target"], *linear, "-o", tmp_path / "no")
    assert ran.code == 2
    assert "method 'lrqr' with given features uses no likelihood ratio" in ran.err
    assert lrqr(*split, "--weights", "tilt", "-o", tmp_path / "no").code == 2


def test_2_a_file_without_the_weights_is_refused(tmp_path: Path) -> None:
    frame = table(100, seed=1).assign(w=lambda f: np.exp(f["a"]))
    paths = write(tmp_path, source=frame, target=frame[["a", "b", "yhat"]])
    options = (*USER_MODEL, "--method", "weighted", "--weight-column", "w")
    assert lrqr("fit", paths["source"], paths["target"], *options, "-o", tmp_path / "model").code == 0
    ran = lrqr("predict", tmp_path / "model", paths["target"], "-o", tmp_path / "p.csv")
    assert ran.code == 1
    assert "weight column 'w' does not exist" in ran.err


def test_6_lrqr_is_quantile_regression_where_there_is_no_shift(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    assert scored(tmp_path, np.abs(rng.normal(size=2000)), features=rng.normal(size=2000)).code == 0
    assert predicted(tmp_path)["threshold"].median() == pytest.approx(1.645, abs=0.1)


@pytest.mark.usefixtures("small_map")
def test_7_ties_are_covered(tmp_path: Path) -> None:
    for options in (
        ["--method", "split"],
        ["--method", "weighted"],
        ["--feature-map", "given"],
        ["--feature-map", "learned"],
    ):
        assert scored(tmp_path, np.full(50, 0.5), *options).code == 0
        found = lrqr("evaluate", tmp_path / "model", tmp_path / "source.csv", "--format", "json").json
        assert found["coverage"]["value"] == 1.0, options


def test_8_no_shift_is_said_to_be_none(tmp_path: Path) -> None:
    rows = table(300, seed=8)
    paths = write(tmp_path, source=rows, target=rows[["a", "b"]])
    found = lrqr("diagnose", paths["source"], paths["target"], "--format", "json").json
    assert found["verdict"] == "no shift detected"
    assert found["auc_low"] <= 0.5 <= found["auc_high"]
    assert found["effective_size"] > 0.8 * 300
    for method in ("split", "lrqr"):
        fitted = lrqr(
            "fit", paths["source"], paths["target"], *USER_MODEL, "--method", method, "-o", tmp_path / method
        )
        assert "shift: no shift detected" in fitted.err
    middle = [
        predicted(tmp_path, rows="source", model=name)["threshold"].median() for name in ("split", "lrqr")
    ]
    assert middle[0] == pytest.approx(middle[1], rel=0.2)


def test_9_disjoint_supports_are_no_overlap(tmp_path: Path) -> None:
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
    arguments = ("fit", paths["source"], paths["target"], *USER_MODEL, "-o", tmp_path / "model")
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


def test_9_bad_weights_are_named_by_row_and_column(tmp_path: Path) -> None:
    frame = table(50, seed=1).assign(w=1.0)
    frame.loc[[3, 7, 11], "w"] = [-1.0, np.nan, np.inf]
    paths = write(tmp_path, source=frame, target=frame[["a", "b"]])
    options = (*USER_MODEL, "--method", "weighted", "--weight-column", "w", "-o", tmp_path / "model")
    ran = lrqr("fit", paths["source"], paths["target"], *options)
    assert ran.code == 1
    assert ran.err.startswith(
        f"Error: {paths['source']}: 3 problems (rows are data rows counted from 1; row 1 is line 2"
    )
    assert "column 'w': 1 of 50 values are missing (row 8)" in ran.err
    assert "column 'w': 1 of 50 values are infinite (row 12)" in ran.err
    assert "column 'w': 1 of 50 values are negative: -1; a ratio of densities is not (row 4)" in ran.err


def test_10_one_heavy_weight_is_worth_one_row(tmp_path: Path) -> None:
    frame = table(100, seed=1).assign(w=1.0)
    frame.loc[0, "w"] = 1e6
    paths = write(tmp_path, source=frame, target=frame[["a", "b"]], test=frame.drop(columns="y"))
    options = (*USER_MODEL, "--method", "weighted", "--weight-column", "w", "-o", tmp_path / "model")
    ran = lrqr("fit", paths["source"], paths["target"], *options)
    assert ran.code == 0
    assert "Warning: the weights of the 100 source rows are worth 1 equally weighted ones" in ran.err
    thresholds = predicted(tmp_path, rows="test")["threshold"]
    total = frame["w"].sum()
    assert (np.isfinite(thresholds) == (frame["w"] / (total + frame["w"]) <= 0.1)).all()


# ------------------------------------------------------------------------- ranks, small samples, levels


@pytest.mark.parametrize(
    ("n", "alpha"),
    [(9, "0.1"), (99, "0.1"), (19, "0.05"), (20, "0.05"), (100, "0.01"), (38, "0.2"), (41, "0.1")],
)
def test_11_ranks_are_exact(tmp_path: Path, n: int, alpha: str) -> None:
    assert scored(tmp_path, np.arange(1.0, n + 1), "--method", "split", "--alpha", alpha).code == 0
    rank = ceil((n + 1) * (1 - Fraction(alpha)))
    assert (predicted(tmp_path)["threshold"] == rank).all()


def test_12_quantiles_are_not_interpolated(tmp_path: Path) -> None:
    assert scored(tmp_path, np.arange(1.0, 9), "--method", "split").code == 0
    assert (predicted(tmp_path)["threshold"] == np.inf).all()


def test_13_too_few_rows_give_infinite_answers_and_a_warning(tmp_path: Path) -> None:
    frame = table(5, seed=1)
    paths = write(tmp_path, source=frame, target=frame[["a", "b"]], test=frame)
    ran = lrqr(
        "fit", paths["source"], paths["target"], *USER_MODEL, "--method", "split", "-o", tmp_path / "model"
    )
    assert ran.code == 0
    assert "coverage 0.9 needs n >= 9 calibration rows, got 5" in ran.err
    out = predicted(tmp_path, rows="test")
    assert (out["lower"] == -np.inf).all()
    assert (out["upper"] == np.inf).all()
    clipped = predicted(tmp_path, "--infinite", "clip", rows="test")
    np.testing.assert_allclose(clipped["threshold"], (frame["y"] - frame["yhat"]).abs().max(), rtol=1e-12)
    ran = lrqr("predict", tmp_path / "model", paths["test"], "-o", tmp_path / "e.csv", "--infinite", "error")
    assert ran.code == 1
    assert "row 1 (data rows counted from 1) has an infinite threshold" in ran.err
    assert not (tmp_path / "e.csv").exists()
    found = lrqr("evaluate", tmp_path / "model", paths["test"], "--format", "json").json
    assert found["size"]["infinite"] == 1.0
    assert (found["size"]["mean"], found["size"]["median"], found["methods"][0]["size"]) == ("inf",) * 3
    text = lrqr("evaluate", tmp_path / "model", paths["test"]).out
    assert "mean ∞, median ∞" in text


@pytest.mark.usefixtures("small_map")
def test_13_few_rows_are_warned_about_with_lrqr_too(tmp_path: Path) -> None:
    ran = scored(tmp_path, np.arange(1.0, 6.0))
    assert ran.code == 0, ran.err
    assert "5 calibration rows cannot support a coverage of 0.9, which needs n >= 9: add rows" in ran.err


def test_14_full_sets_are_warned_about_and_counted(tmp_path: Path) -> None:
    frame = classes(10, seed=4)
    paths = write(tmp_path, source=frame, target=frame[["a", "b"]], test=classes(50, seed=5))
    options = ("--outcome", "y", "--probability", "p_*", "--alpha", "0.05", "--method", "split")
    ran = lrqr("fit", paths["source"], paths["target"], *options, "-o", tmp_path / "model")
    assert "coverage 0.95 needs n >= 19 calibration rows, got 10" in ran.err
    assert (predicted(tmp_path, rows="test")["size"] == 3).all()
    assert lrqr("evaluate", tmp_path / "model", paths["test"], "--format", "json").json["size"]["full"] == 1.0


# ----------------------------------------------------------------------------------------- scores and sets


def test_17_classes_of_probability_zero_stay_out(tmp_path: Path) -> None:
    sure = pd.DataFrame({"x": 0.0, "p_0": 1.0, "p_1": 0.0, "p_2": 0.0, "y": 0}, index=range(50))
    wrong = pd.DataFrame({"x": 0.0, "p_0": 0.4, "p_1": 0.3, "p_2": 0.3, "y": 1}, index=range(5))
    frame = pd.concat([sure, wrong]).assign(x=np.linspace(0.0, 1.0, 55))
    paths = write(tmp_path, source=frame, target=frame[["x"]], test=frame.head(1))
    for score in ("lac", "aps"):
        options = (
            "--outcome",
            "y",
            "--probability",
            "p_*",
            "--score",
            score,
            "--method",
            "split",
            "--alpha",
            "0.05",
        )
        model = tmp_path / score
        assert lrqr("fit", paths["source"], paths["target"], *options, "-o", model).code == 0
        out = predicted(tmp_path, rows="test", model=score)
        assert out[["in_0", "in_1", "in_2"]].to_numpy().tolist() == [[True, False, False]]


@pytest.mark.usefixtures("small_map")
def test_18_classes_without_rows_and_labels_without_class(tmp_path: Path) -> None:
    frame = classes(100, seed=4)
    seen = frame[frame["y"] != "blue"]
    paths = write(tmp_path, source=seen, target=frame[["a", "b"]])
    options = ("--outcome", "y", "--probability", "p_*", "-o")
    ran = lrqr("fit", paths["source"], paths["target"], *options, tmp_path / "model")
    assert ran.code == 0
    assert (
        "1 of 3 classes have no labeled row: 'blue'; their sets rest on the other classes' scores" in ran.err
    )
    frame.loc[16, "y"] = "zzz"
    paths = write(tmp_path, source=frame)
    ran = lrqr("fit", paths["source"], tmp_path / "target.csv", *options, tmp_path / "other")
    assert ran.code == 1
    expected = (
        "column 'y': 1 of 100 labels are not among the classes: 'zzz'; classes: red, green, blue (row 17)"
    )
    assert expected in ran.err


@pytest.mark.usefixtures("small_map")
def test_19_an_outcome_of_two_values_suggests_classes(tmp_path: Path) -> None:
    frame = table(100, seed=1).assign(y=lambda f: (f["a"] > 0).astype(int))
    paths = write(tmp_path, source=frame, target=frame[["a", "b"]])
    ran = lrqr("fit", paths["source"], paths["target"], *USER_MODEL, "-o", tmp_path / "model")
    assert ran.code == 0
    expected = "the outcome 'y' has only two values (0 and 1): if they are classes, use --probability"
    assert expected in ran.err


# ----------------------------------------------------------------------------------------------------- data


@pytest.mark.usefixtures("small_map")
@pytest.mark.parametrize("count", [5, 12])
def test_20_missing_outcomes_stop_or_are_dropped(tmp_path: Path, count: int) -> None:
    frame = table(100, seed=1)
    whole = frame.iloc[count:]
    frame.loc[frame.index[:count], "y"] = np.nan
    paths = write(tmp_path, source=frame, target=frame[["a", "b"]], whole=whole)
    arguments = ("fit", paths["source"], paths["target"], *USER_MODEL, "-o", tmp_path / "model")
    ran = lrqr(*arguments)
    assert ran.code == 1
    assert (
        f"column 'y': {count} of 100 values are missing (rows 1, 2, 3, 4, 5{', ...' if count > 5 else ''})"
        in ran.err
    )
    assert "--on-missing drop leaves these rows out" in ran.err
    ran = lrqr(*arguments, "--on-missing", "drop")
    assert ran.code == 0
    assert f"left out {count} of 100 rows with missing values" in ran.err
    same = lrqr("fit", paths["whole"], paths["target"], *USER_MODEL, "-o", tmp_path / "other")
    assert same.code == 0
    left, right = (predicted(tmp_path, rows="whole", model=name) for name in ("model", "other"))
    pd.testing.assert_frame_equal(left, right)


@pytest.mark.usefixtures("small_map")
def test_20_missing_features_are_imputed_if_asked(tmp_path: Path) -> None:
    frame = table(100, seed=1)
    frame.loc[3, "a"], frame.loc[4, "b"] = np.nan, np.inf
    paths = write(tmp_path, source=frame, target=frame[["a", "b"]], rows=frame.drop(columns="y"))
    arguments = ("fit", paths["source"], paths["target"], *USER_MODEL, "-o", tmp_path / "model")
    ran = lrqr(*arguments)
    assert ran.code == 1
    assert "column 'a': 1 of 100 values are missing (row 4)" in ran.err
    assert "column 'b': 1 of 100 values are infinite (row 5)" in ran.err
    assert lrqr(*arguments, "--on-missing", "impute").code == 0
    out = predicted(tmp_path, rows="rows")
    filled = frame.assign(a=frame["a"].fillna(frame["a"].median()))
    filled["b"] = filled["b"].replace(np.inf, np.median(frame["b"][np.isfinite(frame["b"])]))
    write(tmp_path, filled=filled)
    pd.testing.assert_frame_equal(out, predicted(tmp_path, rows="filled"))


@pytest.mark.usefixtures("small_map")
def test_20_rows_to_be_answered_are_never_dropped(tmp_path: Path) -> None:
    paths = files(tmp_path)
    assert lrqr("fit", paths["source"], paths["target"], *USER_MODEL, "-o", tmp_path / "model").code == 0
    frame = table(20, seed=2)
    frame.loc[[4, 5], "a"] = np.nan
    write(tmp_path, holes=frame)
    ran = lrqr("predict", tmp_path / "model", tmp_path / "holes.csv", "-o", tmp_path / "p.csv")
    assert ran.code == 1
    assert "column 'a': 2 of 20 values are missing (rows 5, 6)" in ran.err
    assert (
        "every row must get an answer, so fill these values in first (fit with --on-missing impute" in ran.err
    )
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.usefixtures("small_map")
def test_21_columns_are_matched_by_name(tmp_path: Path) -> None:
    def make(n: int, shift: float, seed: int) -> pd.DataFrame:
        frame = table(n, shift, seed)
        return frame.assign(c=np.where(frame["b"] > 0, "up", "down"))

    test = make(40, 0.5, 3).drop(columns="y")
    shuffled = test[["c", "yhat", "b", "a"]].assign(extra=1.0)
    novel = test.assign(c=["sideways", *test["c"][1:]])
    paths = write(
        tmp_path,
        source=make(200, 0.0, 1),
        target=make(200, 0.5, 2)[["c", "b", "a"]].assign(extra=2.0),
        test=test,
        shuffled=shuffled,
        lacking=test.drop(columns="b"),
        novel=novel,
    )
    ran = lrqr("fit", paths["source"], paths["target"], *USER_MODEL, "-o", tmp_path / "model")
    assert ran.code == 0, ran.err
    pd.testing.assert_frame_equal(predicted(tmp_path, rows="test"), predicted(tmp_path, rows="shuffled"))
    ran = lrqr("predict", tmp_path / "model", paths["lacking"], "-o", tmp_path / "l.csv")
    assert ran.code == 1
    assert "feature column 'b' does not exist" in ran.err
    ran = lrqr("predict", tmp_path / "model", paths["novel"], "-o", tmp_path / "n.csv")
    assert ran.code == 0
    assert "'sideways'" in ran.err
    assert pd.read_csv(tmp_path / "n.csv")["outside_support"][0]


def test_22_metrics_take_no_swapped_arguments() -> None:
    y, lower, upper = np.array([1.0]), np.array([2.0]), np.array([3.0])
    score = metrics.winkler_score(y=y, lower=lower, upper=upper, nominal=0.9)
    assert score["mean"] == pytest.approx(21.0)  # the length 1, and 2 / 0.1 times the distance 1
    with pytest.raises(TypeError):
        metrics.winkler_score(y, lower, upper, 0.9)  # type: ignore[misc]


# ------------------------------------------------------------------------------------ scale, solver, files


@pytest.mark.parametrize("case", ["duplicate", "constant", "huge", "wide", "equal"])
def test_25_hard_inputs_end_in_certified_thresholds(tmp_path: Path, case: str) -> None:
    rng = np.random.default_rng(25)
    given = (*USER_MODEL, "--feature-map", "given", "-o")
    source, target = table(80, 0.0, 1), table(80, 0.5, 2)
    if case == "wide":
        noise = [pd.DataFrame(rng.normal(size=(80, 100))).add_prefix("x") for _ in range(2)]
        source, target = (pd.concat(pair, axis=1) for pair in zip((source, target), noise, strict=True))
    for frame in (source, target):
        if case == "duplicate":
            frame["a2"] = frame["a"]
        if case == "constant":
            frame["one"] = 1.0
        if case == "huge":
            frame["a"] *= 1e8
        if case == "equal":
            frame["y"] = frame["yhat"] + 1.0
    write(tmp_path, source=source, target=target.drop(columns=["y", "yhat"]), test=target)
    ran = lrqr("fit", tmp_path / "source.csv", tmp_path / "target.csv", *given, tmp_path / "model")
    assert ran.code == 0, ran.err
    fit = lrqr("inspect", tmp_path / "model", "--format", "json").json["fit"]
    assert fit["converged"]
    assert fit["gap"] < 1e-5
    thresholds = predicted(tmp_path, rows="test")["threshold"]
    assert np.isfinite(thresholds).all()
    if case in {"duplicate", "constant", "huge"}:
        # a copy, a constant, or another unit changes nothing
        write(
            tmp_path, source=table(80, 0.0, 1), target=table(80, 0.5, 2)[["a", "b"]], plain=table(80, 0.5, 2)
        )
        assert (
            lrqr("fit", tmp_path / "source.csv", tmp_path / "target.csv", *given, tmp_path / "m2").code == 0
        )
        np.testing.assert_allclose(
            thresholds, predicted(tmp_path, rows="plain", model="m2")["threshold"], rtol=1e-5
        )


def test_26_two_runs_give_the_same_bytes(tmp_path: Path) -> None:
    def columns(n: int, shift: float, seed: int) -> pd.DataFrame:
        frame = table(n, shift, seed).drop(columns="yhat")
        return frame.assign(c=np.where(frame["b"] > 0, "up", "down"))

    paths = write(tmp_path, source=columns(120, 0.0, 1), target=columns(60, 0.5, 2).drop(columns="y"))
    run = (
        "import sys\nfrom click.testing import CliRunner\nfrom lrqr.cli import cli\n"
        "from lrqr.calibrate import learned\nlearned.FOLDS, learned.REPEATS = 2, 1\n"
        "source, target, folder = sys.argv[1:]\n"
        "for base in ('ridge', 'hist-gradient-boosting'):\n"
        "    model = f'{folder}/{base}'\n"
        "    fit = ['fit', source, target, '--outcome', 'y', '--base', base, '-o', model]\n"
        "    for command in (fit, ['predict', model, target, '-o', f'{model}.csv']):\n"
        "        assert CliRunner().invoke(cli, command).exit_code == 0\n"
    )
    for name in ("1", "2"):
        (tmp_path / name).mkdir()
        arguments = [sys.executable, "-c", run, paths["source"], paths["target"], tmp_path / name]
        subprocess.run(arguments, check=True, env=os.environ | {"PYTHONHASHSEED": name})
    produced = [path for path in (tmp_path / "1").rglob("*") if path.is_file()]
    assert {path.name for path in produced} >= {"artifact.json", "arrays.npz", "base.skops", "ridge.csv"}
    for path in produced:
        assert path.read_bytes() == (tmp_path / "2" / path.relative_to(tmp_path / "1")).read_bytes(), (
            path.name
        )


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fitted")
    files(path, n=60)
    options = ("--outcome", "y", "--base", "ridge", "--exclude", "yhat")
    assert lrqr("fit", path / "source.csv", path / "target.csv", *options, "-o", path / "model").code == 0
    return path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("artifact.json", "is truncated or damaged"),
        ("arrays.npz", "is truncated or was changed (its sha256 differs); fit the model again"),
        ("base.skops", "is truncated or was changed (its sha256 differs); fit the model again"),
    ],
)
def test_27_a_truncated_model_is_one_clear_error(
    fitted: Path, tmp_path: Path, name: str, message: str
) -> None:
    model = shutil.copytree(fitted / "model", tmp_path / "model")
    (model / name).write_bytes((model / name).read_bytes()[:-20])
    for command in (["evaluate", model, fitted / "test.csv"], ["inspect", model]):
        ran = lrqr(*command)
        assert ran.code == 1
        assert ran.err.startswith(f"Error: {model / name} {message}")
        assert ran.err.count("\n") == 1


def test_27_a_changed_byte_and_an_unknown_version(fitted: Path, tmp_path: Path) -> None:
    model = shutil.copytree(fitted / "model", tmp_path / "model")
    path = model / "artifact.json"
    text = path.read_text()
    path.write_text(text.replace('"coverage": 0.9', '"coverage": 0.1', 1))
    ran = lrqr("inspect", model)
    assert ran.code == 1
    assert (
        "artifact.json was changed after it was written (its sha256 differs); fit the model again" in ran.err
    )
    path.write_text(json.dumps(json.loads(text) | {"version": 7}))
    ran = lrqr("inspect", model)
    assert ran.code == 1
    assert "has format version 7, this program reads version 1; fit the model again" in ran.err


def test_predictions_do_not_replace_the_rows_they_are_of(tmp_path: Path) -> None:
    assert scored(tmp_path, np.arange(1.0, 31.0), "--method", "split").code == 0
    rows = tmp_path / "target.csv"
    before = rows.read_bytes()
    ran = lrqr("predict", tmp_path / "model", rows, "-o", rows, "--force")
    assert ran.code == 2
    assert "is the input itself" in ran.err
    assert rows.read_bytes() == before


def test_a_negative_seed_is_named(tmp_path: Path) -> None:
    ran = scored(tmp_path, np.arange(1.0, 31.0), "--seed", "-1")
    assert ran.code == 2
    assert "--seed" in ran.err
