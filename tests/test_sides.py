"""One bound alone (`--side`), and intervals cut to what an outcome can be (`--bounds`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from commands import LABELS, NUMBERS, classes, lrqr

import lrqr as package
from lrqr import ConformalClassifier, ConformalRegressor
from lrqr.data.roles import as_bounds
from lrqr.errors import DataError, UsageError
from lrqr.stats.metrics import coverage_summary

if TYPE_CHECKING:
    from pathlib import Path

SPLIT = ("--method", "split", "--feature-map", "given")
FIT = (*NUMBERS, *SPLIT)


def write(frame: pd.DataFrame, path: Path) -> Path:
    """Write a table and return where it is."""
    frame.to_csv(path, index=False)
    return path


def positive(n: int, mean: float, seed: int) -> pd.DataFrame:
    """Outcomes above 0, skewed to the right."""
    rng = np.random.default_rng(seed)
    x = rng.normal(mean, 1.0, size=n)
    return pd.DataFrame({"x": x, "yhat": np.exp(x), "y": np.exp(x + 0.6 * rng.normal(size=n))})


class Known:
    """A model that was fitted elsewhere."""

    def predict(self, X: Any) -> Any:
        return np.exp(np.asarray(X)[:, 0])


@pytest.fixture(name="files")
def _files(tmp_path: Path) -> dict[str, Path]:
    frames = {"s": positive(400, 0.0, 0), "t": positive(300, -0.7, 1), "u": positive(2000, -0.7, 2)}
    return {name: write(frame, tmp_path / f"{name}.csv") for name, frame in frames.items()}


def answers(files: dict[str, Path], folder: Path, *options: str) -> tuple[pd.DataFrame, Any]:
    """Fit, predict and evaluate."""
    model, out = folder / "m", folder / "o.csv"
    for ran in (
        lrqr("fit", files["s"], files["t"], *FIT, *options, "-o", model, "--force"),
        lrqr("predict", model, files["u"], "-o", out, "--force"),
    ):
        assert ran.code == 0, ran.err
    return pd.read_csv(out), lrqr("evaluate", model, files["u"], "--format", "json").json


@pytest.mark.parametrize("side", ["upper", "lower"])
def test_one_bound_is_a_quantile_of_signed_residuals(
    files: dict[str, Path], tmp_path: Path, side: str
) -> None:
    found, judged = answers(files, tmp_path, "--side", side)
    source, rows = pd.read_csv(files["s"]), pd.read_csv(files["u"])
    sign = 1.0 if side == "upper" else -1.0
    residual = np.sort(sign * (source["y"] - source["yhat"]))
    quantile = residual[int(np.ceil(0.9 * (len(source) + 1))) - 1]
    np.testing.assert_allclose(found[side], rows["yhat"] + sign * quantile)
    other = "lower" if side == "upper" else "upper"
    assert (found[other] == -sign * np.inf).all()
    inside = sign * (rows["y"] - found[side]) <= 0
    assert judged["coverage"]["value"] == inside.mean()
    assert judged["size"]["of"] == "distance"
    np.testing.assert_allclose([judged["size"]["mean"], judged["size"]["median"]], quantile)
    assert judged["size"]["infinite"] == 0.0
    assert judged["interval_score"] is None


def test_one_bound_is_nearer_than_that_of_an_interval(files: dict[str, Path], tmp_path: Path) -> None:
    one, both = (answers(files, tmp_path, *options)[0]["upper"] for options in (("--side", "upper"), ()))
    assert (one < both).all()


def test_a_bound_may_lie_below_the_prediction() -> None:
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(200, 1)), rng.uniform(-1.0, 1.0, size=200)
    model = ConformalRegressor(Known(), prefit=True, method="split", feature_map="given", side="upper")
    bounds = model.fit(X, np.exp(X[:, 0]) - 5.0 + noise).predict_interval(X)
    assert (bounds[:, 1] < np.exp(X[:, 0])).all()
    judged = package.evaluate(model, X, np.exp(X[:, 0]) - 5.0 + noise)
    assert judged.size.mean is not None
    assert -6.0 < judged.size.mean < -3.0
    assert judged.size.empty == 0.0


@pytest.mark.parametrize("options", [("--bounds", "0,"), ("--bounds", "0,4"), ("--bounds", ",4")])
def test_bounds_cut_and_cost_no_coverage(files: dict[str, Path], tmp_path: Path, options: Any) -> None:
    low, high = (None if end == "" else float(end) for end in options[1].split(","))
    for path in files.values():  # an outcome beyond the bounds is an error
        frame = pd.read_csv(path)
        write(frame.assign(y=frame["y"].clip(low, high)), path)
    free, before = answers(files, tmp_path)
    cut, after = answers(files, tmp_path, *options)
    full = cut["upper"] >= cut["lower"]
    np.testing.assert_array_equal(cut["lower"][full], free["lower"].clip(lower=low)[full])
    np.testing.assert_array_equal(cut["upper"][full], free["upper"].clip(upper=high)[full])
    beyond = (free["upper"] < (-np.inf if low is None else low)) | (
        free["lower"] > (np.inf if high is None else high)
    )
    np.testing.assert_array_equal(~full, beyond)
    assert after["coverage"] == before["coverage"]
    assert after["size"]["mean"] < before["size"]["mean"]
    lengths = np.where(full, cut["upper"] - cut["lower"], 0.0)
    np.testing.assert_allclose(after["size"]["mean"], lengths.mean())


def test_an_infinite_threshold_gives_the_whole_range(files: dict[str, Path], tmp_path: Path) -> None:
    options = ("--bounds", "0,100", "--coverage", "0.999")
    found, judged = answers(files, tmp_path, *options)
    assert (found["threshold"] == np.inf).all()
    assert (found[["lower", "upper"]].to_numpy() == [0.0, 100.0]).all()
    assert judged["size"]["infinite"] == judged["size"]["full"] == 1.0
    assert judged["size"]["mean"] == 100.0


def test_both_cut_one_bound_to_what_is_possible(files: dict[str, Path], tmp_path: Path) -> None:
    found, judged = answers(files, tmp_path, "--side", "lower", "--bounds", "0,")
    rows = pd.read_csv(files["u"])
    assert (found["lower"] >= 0.0).all()
    assert (found["upper"] == np.inf).all()
    np.testing.assert_allclose(judged["size"]["mean"], (rows["yhat"] - found["lower"]).mean())


@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_outcomes_beyond_the_bounds_are_named(files: dict[str, Path], tmp_path: Path, command: str) -> None:
    frame = pd.read_csv(files["u"])
    frame.loc[[3, 7], "y"] = -1.5
    bad, out = write(frame, tmp_path / "bad.csv"), tmp_path / "m"
    fit = [*FIT, "--bounds", "0,", "-o", out]
    assert lrqr("fit", files["s"], files["t"], *fit).code == 0
    again = {"fit": ("fit", bad, files["t"], *fit, "--force"), "evaluate": ("evaluate", out, bad)}
    ran = lrqr(*again[command])
    assert ran.code == 1
    assert "2 of 2000 values lie beyond the bounds 0 to inf: -1.5" in ran.err
    assert "rows 4, 8" in ran.err
    with pytest.raises(DataError, match=r"rows 3, 7, counted from 0; the first is -1\.5"):
        ConformalRegressor(Known(), prefit=True, bounds=(0, None)).fit(frame[["x"]], frame["y"])


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ((*NUMBERS, "--side", "up"), "unknown side 'up'"),
        ((*NUMBERS, "--bounds", "5,1"), "the low end must lie below the high one, got '5,1'"),
        ((*NUMBERS, "--bounds", "0"), "two numbers LOW,HIGH"),
        ((*NUMBERS, "--bounds", "a,1"), "two numbers LOW,HIGH"),
        ((*NUMBERS, "--bounds", ","), "at least one end"),
        (("--outcome", "y", "--prediction", "yhat,y2", "--score", "cqr", "--side", "upper"), "score 'cqr'"),
        (("--score-column", "y", "--side", "lower"), "score 'precomputed'"),
        (("--score-column", "y", "--bounds", "0,"), "--bounds cuts intervals"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(
    files: dict[str, Path], tmp_path: Path, options: Any, named: str
) -> None:
    for name in ("s", "t"):
        frame = pd.read_csv(files[name])
        write(frame.assign(y2=frame["y"]), files[name])
    ran = lrqr("fit", files["s"], files["t"], *options, "-o", tmp_path / "m")
    assert ran.code == 2, ran.err
    assert named in ran.err


@pytest.mark.parametrize("option", [("--side", "upper"), ("--bounds", "0,")])
def test_classes_have_neither_side_nor_bounds(tmp_path: Path, option: Any) -> None:
    path = write(classes(60, 0.0, 0), tmp_path / "s.csv")
    ran = lrqr("fit", path, path, *LABELS, *option, "-o", tmp_path / "m")
    assert ran.code == 2
    assert option[0] in ran.err
    with pytest.raises(TypeError, match="unexpected keyword"):
        ConformalClassifier(Known(), **{option[0].removeprefix("--"): option[1]})


def test_a_configuration_file_says_the_same(files: dict[str, Path], tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text('side = "upper"\nbounds = "0,60"\n')
    said = answers(files, tmp_path, "--side", "upper", "--bounds", "0,60")[0]
    read = answers(files, tmp_path, "-c", str(config))[0]
    pd.testing.assert_frame_equal(said, read)


def test_python_gives_what_the_command_line_gives(files: dict[str, Path], tmp_path: Path) -> None:
    found, judged = answers(files, tmp_path, "--side", "upper", "--bounds", "0,60")
    source, target, rows = (pd.read_csv(files[name]) for name in ("s", "t", "u"))
    model = ConformalRegressor(
        Known(), prefit=True, method="split", feature_map="given", side="upper", bounds=(0, 60)
    ).fit(source[["x"]], source["y"], X_target=target[["x"]])
    np.testing.assert_allclose(model.predict_interval(rows[["x"]]), found[["lower", "upper"]])
    assert package.evaluate(model, rows[["x"]], rows["y"]).size.mean == pytest.approx(judged["size"]["mean"])
    folder = model.save(tmp_path / "python")
    table, _ = model.table(rows[["x"]])
    np.testing.assert_allclose(package.load(folder).predict_interval(table), found[["lower", "upper"]])
    with pytest.raises(UsageError, match="--side upper bounds a number"):
        ConformalRegressor(Known(), prefit=True, conformity_score="normalized", side="upper").fit(
            source[["x"]], source["y"]
        )


def test_compare_measures_what_is_asked_for() -> None:
    given = positive(300, 0.0, 0), positive(300, -0.5, 1), positive(500, -0.5, 2)
    roles = {"outcome": "y", "prediction": "yhat"}
    runs = {
        name: package.compare(*given, ["split"], splits=1, **roles, **options)
        for name, options in {
            "free": {},
            "upper": {"side": "upper"},
            "cut": {"bounds": (0, None)},
        }.items()
    }
    size = {name: float(found["size"].iloc[0]) for name, found in runs.items()}
    residual = np.sort(given[0]["y"] - given[0]["yhat"])
    assert size["upper"] == pytest.approx(residual[int(np.ceil(0.9 * 301)) - 1])
    half = size["free"] / 2.0
    lengths = given[2]["yhat"] + half - np.maximum(given[2]["yhat"] - half, 0.0)
    assert size["cut"] == pytest.approx(lengths.mean())
    assert runs["cut"]["coverage"].iloc[0] == runs["free"]["coverage"].iloc[0]


def test_one_sided_bounds_cover_under_a_shift() -> None:
    """Exact interval over 20 draws of 200 rows from a fixed seed."""
    hits = []
    for seed in range(20):
        source, target, rows = (
            positive(300, 0.0, seed),
            positive(300, -0.7, 1000 + seed),
            positive(200, -0.7, 2000 + seed),
        )
        model = ConformalRegressor(Known(), prefit=True, method="weighted", side="upper", bounds=(0, None))
        model.fit(source[["x"]], source["y"], X_target=target[["x"]])
        hits.append(rows["y"] <= model.predict_interval(rows[["x"]])[:, 1])
    found = coverage_summary(covered=np.concatenate(hits), nominal=0.9)
    assert found["verdict"] != "below"


@pytest.mark.parametrize(
    ("value", "bounds"),
    [
        ("0,", (0.0, None)),
        (",1", (None, 1.0)),
        ((0, None), (0.0, None)),
        ([-np.inf, 2], (None, 2.0)),
        (None, None),
    ],
)
def test_spellings_of_bounds(value: Any, bounds: Any) -> None:
    assert as_bounds(value) == bounds
