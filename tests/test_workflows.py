"""From files to a model, to answers, to a judgement: what each command gives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from commands import LABELS, NUMBERS, classes, lrqr, predicted, scored, table, write

import lrqr as package
from lrqr import plugins

if TYPE_CHECKING:
    from pathlib import Path

# The default, with all its models, is fitted in test_recorded.py.
pytestmark = pytest.mark.usefixtures("small_map")


def test_fit_says_what_it_came_to_and_what_is_next(folder: Path) -> None:
    ran = lrqr("fit", folder / "source.csv", folder / "target.csv", *NUMBERS, "-o", folder / "m1")
    assert ran.code == 0
    assert ran.out == ""
    assert (
        "lrqr: calibrated on 200 source rows for 200 target rows, "
        "2 features learned from 2 features, 90 % coverage" in ran.err
    )
    assert "shift: shift within reach" in ran.err
    assert "converged" in ran.err
    assert f"Next: lrqr predict {folder / 'm1'} NEW_ROWS" in ran.err


def test_predict_gives_one_row_out_per_row_in(folder: Path) -> None:
    ran = lrqr("predict", folder / "model", folder / "test.csv", "-o", folder / "p.csv")
    assert ran.code == 0
    assert f"Wrote 200 rows to {folder / 'p.csv'}" in ran.err
    out, test = pd.read_csv(folder / "p.csv"), pd.read_csv(folder / "test.csv")
    assert list(out.columns) == ["row", "threshold", "lower", "upper", "outside_support"]
    assert list(out["row"]) == list(range(200))
    np.testing.assert_allclose(out["upper"] - test["yhat"], out["threshold"], rtol=1e-12)
    np.testing.assert_allclose(test["yhat"] - out["lower"], out["threshold"], rtol=1e-12)
    share = lrqr("evaluate", folder / "model", folder / "test.csv", "--format", "json").json["coverage"][
        "value"
    ]
    assert share == np.mean((out["lower"] <= test["y"]) & (test["y"] <= out["upper"]))


@pytest.mark.parametrize(("name", "count"), [("model", 7), ("learned", 3)])
def test_rows_one_by_one_in_batches_and_all_at_once(
    folder: Path, learned: Path, name: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = {"model": folder / "model", "learned": learned}[name]
    test = pd.read_csv(folder / "test.csv").head(count)
    write(folder, few=test)
    whole = _predicted(folder, model, folder / "few.csv", "whole")
    monkeypatch.setattr("lrqr.commands.predict._BATCH", 2)
    assert _predicted(folder, model, folder / "few.csv", "batches") == whole
    alone = [whole.splitlines()[0]]
    for k in range(count):
        path = folder / f"row{k}.csv"
        test.iloc[[k]].to_csv(path, index=False)
        alone.append(f"{k}" + _predicted(folder, model, path, f"out{k}").splitlines()[1][1:])
    assert "\n".join(alone) + "\n" == whole


def _predicted(folder: Path, model: Path, source: Path, name: str) -> str:
    out = folder / f"{name}.csv"
    assert lrqr("predict", model, source, "-o", out, "--force").code == 0
    return out.read_text()


def test_a_learned_model_goes_all_the_way(folder: Path, learned: Path) -> None:
    found = lrqr("evaluate", learned, folder / "test.csv", "--format", "json").json
    assert found["model"]["feature_map"] == "learned"
    assert 0.8 < found["coverage"]["value"] <= 1.0
    text = lrqr("inspect", learned).out
    assert "2 features learned from" in text
    frame = pd.read_csv(folder / "test.csv")
    loaded = package.load(learned)
    loaded.save(folder / "learned-again", force=True)
    again = package.load(folder / "learned-again")
    assert np.array_equal(loaded.predict_threshold(frame), again.predict_threshold(frame))


def test_identifiers_are_kept(folder: Path) -> None:
    frame = pd.read_csv(folder / "test.csv").assign(name=[f"id-{k}" for k in range(200)])
    write(folder, named=frame)
    assert (
        lrqr("predict", folder / "model", folder / "named.csv", "-o", folder / "n.csv", "--id", "name").code
        == 0
    )
    assert list(pd.read_csv(folder / "n.csv")["name"]) == list(frame["name"])


def test_columns_are_passed_through_as_they_stand(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lrqr.commands.predict._BATCH", 64)
    frame = pd.read_csv(folder / "test.csv").assign(code=[f"0{k}" if k % 3 else None for k in range(200)])
    given = write(folder, coded=frame)["coded"]
    out = folder / "kept.csv"
    kept = ("--keep", "code,yhat", "--keep", "y*")
    assert lrqr("predict", folder / "model", given, "-o", out, *kept).code == 0
    found, before = (pd.read_csv(path, dtype=str) for path in (out, given))
    assert list(found)[:5] == ["row", "code", "yhat", "y", "threshold"]
    pd.testing.assert_frame_equal(found[["code", "yhat", "y"]], before[["code", "yhat", "y"]])


def test_parquet_keeps_the_types_of_what_is_passed_through(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole numbers with a gap stay whole, also where the gap is in one batch only."""
    monkeypatch.setattr("lrqr.commands.predict._BATCH", 64)
    count = pd.array([None if k == 150 else k for k in range(200)], dtype="Int64")
    frame = pd.read_csv(folder / "test.csv").assign(count=count)
    frame.to_parquet(folder / "typed.parquet")
    out = folder / "kept.parquet"
    ran = lrqr("predict", folder / "model", folder / "typed.parquet", "-o", out, "--keep", "count,yhat")
    assert ran.code == 0, ran.err
    found = pd.read_parquet(out)
    assert found["count"].dropna().tolist() == [k for k in range(200) if k != 150]
    np.testing.assert_array_equal(found["yhat"], frame["yhat"])


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ("yhta", "--keep 'yhta' is no column, did you mean 'yhat'?"),
        ("row", "--keep 'row': predict writes a column of that name itself"),
        ("lower", "--keep 'lower': predict writes a column of that name itself"),
    ],
)
def test_what_cannot_be_passed_through_is_refused(folder: Path, keep: str, message: str) -> None:
    frame = pd.read_csv(folder / "test.csv").assign(row=1, lower=2)
    given = write(folder, clash=frame)["clash"]
    out = folder / "never.csv"
    ran = lrqr("predict", folder / "model", given, "-o", out, "--keep", keep)
    assert ran.code != 0
    assert message in ran.err
    assert not out.exists()


@pytest.mark.parametrize("kind", ["intervals", "sets"])
def test_finite_answers_without_overlap_carry_no_promise(tmp_path: Path, kind: str) -> None:
    rows, columns = (table, NUMBERS) if kind == "intervals" else (classes, LABELS)
    paths = write(tmp_path, source=rows(120, seed=1), target=rows(120, 9.0, seed=2).drop(columns="y"))
    model, out = tmp_path / "model", tmp_path / "out.csv"
    fit = ("fit", paths["source"], paths["target"], *columns, "--method", "split", "-o", model)
    assert "no overlap" in lrqr(*fit).err
    ran = lrqr("-q", "predict", model, paths["target"], "-o", out)
    assert ran.code == 0
    assert ran.err == (
        f"Warning: source and target of the fit have no overlap: 120 of 120 {kind} are finite all the same, "
        "and carry no promise\n"
    )


def test_where_there_is_overlap_nothing_is_taken_back(folder: Path) -> None:
    ran = lrqr("-q", "predict", folder / "model", folder / "test.csv", "-o", folder / "overlap.csv")
    assert (ran.code, ran.err) == (0, "")


def test_a_feature_may_name_the_rows(folder: Path) -> None:
    out = folder / "by-feature.csv"
    ran = lrqr("predict", folder / "model", folder / "test.csv", "-o", out, "--id", "a")
    assert ran.code == 0, ran.err
    np.testing.assert_array_equal(pd.read_csv(out)["a"], pd.read_csv(folder / "test.csv")["a"])
    paths = (folder / "source.csv", folder / "target.csv")
    fit = lrqr("fit", *paths, *NUMBERS, "--features", "a,b", "--id", "a", "-o", folder / "by-a")
    assert fit.code == 0, fit.err
    assert package.load(folder / "by-a").encoder.columns_ == ("a", "b")


@pytest.mark.parametrize("suffix", [".parquet", ".npz", ".csv.gz"])
def test_the_suffix_says_the_kind_of_file(folder: Path, suffix: str) -> None:
    out = folder / f"kind{suffix}"
    assert lrqr("predict", folder / "model", folder / "test.csv", "-o", out).code == 0
    assert (
        lrqr("predict", folder / "model", folder / "test.csv", "-o", folder / "kind.csv", "--force").code == 0
    )
    want = pd.read_csv(folder / "kind.csv", engine="pyarrow")
    if suffix == ".parquet":
        got: Any = pd.read_parquet(out)
    elif suffix == ".npz":
        with np.load(out) as arrays:
            got = pd.DataFrame(dict(arrays))
    else:
        got = pd.read_csv(out, engine="pyarrow")
    for name in want:
        np.testing.assert_array_equal(got[name], want[name])


def test_evaluate_prints_the_contract(folder: Path) -> None:
    found = lrqr("evaluate", folder / "model", folder / "test.csv", "--format", "json").json
    assert found["n"] == 200
    assert found["nominal"] == 0.9
    assert set(found["coverage"]) == {"value", "low", "high", "verdict"}
    assert {"mean", "median", "infinite", "empty", "full"} <= found["size"].keys()
    assert found["groups"] == []
    assert found["shift"]["verdict"] == "shift within reach"
    assert found["model"]["method"] == "lrqr"
    assert [row["name"] for row in found["methods"]] == ["lrqr", "split", "weighted"]
    assert found["methods"][0]["coverage"] == found["coverage"]["value"]
    assert all(0.5 < row["coverage"] <= 1.0 for row in found["methods"])


def test_evaluate_by_group(folder: Path) -> None:
    frame = pd.read_csv(folder / "test.csv")
    write(folder, grouped=frame.assign(sex=np.where(np.arange(200) < 190, "f", "m")))
    found = lrqr(
        "evaluate", folder / "model", folder / "grouped.csv", "--group", "sex", "--format", "json"
    ).json
    assert [(row["name"], row["n"], row["small"]) for row in found["groups"]] == [
        ("f", 190, False),
        ("m", 10, True),
    ]
    text = lrqr("evaluate", folder / "model", folder / "grouped.csv", "--group", "sex").out
    assert "by sex" in text
    assert "(few rows)" in text


def test_evaluate_without_labels_never_says_coverage(folder: Path) -> None:
    frame = pd.read_csv(folder / "test.csv").drop(columns="y")
    write(folder, unlabeled=frame)
    found = lrqr("evaluate", folder / "model", folder / "unlabeled.csv", "--format", "json").json
    assert found["coverage"] is None
    assert 0.7 < found["certificate"]["lower_bound"] < 0.9
    text = lrqr("evaluate", folder / "model", folder / "unlabeled.csv").out
    assert "coverage                  not known: the file has no outcomes" in text
    assert "certified without labels  95 % sure: at least" in text
    assert text.replace("promised coverage", "").count("coverage") == 1  # in "not known"


def test_fail_under(folder: Path) -> None:
    arguments = ("evaluate", folder / "model", folder / "test.csv", "--fail-under")
    assert lrqr(*arguments, "0.5").code == 0
    ran = lrqr(*arguments, "0.999")
    assert ran.code == 3
    assert "on 200 rows is below --fail-under 0.999 (95 % interval" in ran.err
    assert "promised coverage" in ran.out
    unlabeled = folder / "u.csv"
    pd.read_csv(folder / "test.csv").drop(columns="y").to_csv(unlabeled, index=False)
    ran = lrqr("evaluate", folder / "model", unlabeled, "--fail-under", "0.5")
    assert ran.code == 3
    assert "the file has no outcomes, so its coverage is not known" in ran.err


def test_evaluate_writes_a_report(folder: Path) -> None:
    ran = lrqr("evaluate", folder / "model", folder / "test.csv", "--report", folder / "r.html")
    assert ran.code == 0
    assert (folder / "r.html").read_text().startswith("<!DOCTYPE html>")
    assert json.loads((folder / "r.json").read_text())["n"] == 200


@pytest.mark.parametrize("name", ["page.html", "page.json", "page.csv"])
def test_what_a_report_would_replace_is_seen_before_the_work(folder: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    for command in (
        ("evaluate", folder / "model", folder / "test.csv"),
        ("diagnose", *[folder / "test.csv"] * 2),
    ):
        ran = lrqr(*command, "--report", tmp_path / "page.html")
        assert ran.code == 2
        assert name in ran.err
        assert ran.out == ""
    assert lrqr(*command, "--report", tmp_path / "no" / "page.html").code == 2
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "mine")]


def test_evaluate_says_what_the_report_draws(folder: Path) -> None:
    found = lrqr("evaluate", folder / "model", folder / "test.csv", "--format", "json").json
    assert [row["nominal"] for row in found["levels"]] == [0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
    reached = [row["coverage"] for row in found["levels"]]
    assert reached == sorted(reached)
    assert found["levels"][4]["coverage"] == found["coverage"]["value"]
    assert all(row["low"] <= row["coverage"] <= row["high"] for row in found["levels"])
    sizes = [row["size"] for row in found["by_size"]]
    assert sizes == sorted(sizes)
    assert np.average(sizes, weights=[row["n"] for row in found["by_size"]]) == pytest.approx(
        found["size"]["mean"]
    )
    chosen = [row for row in found["selection"] if row["chosen"]]
    assert [row["ridge"] for row in chosen] == [found["model"]["ridge"]]
    assert found["criterion"] == "weighted pinball loss"


def test_what_says_nothing_is_left_out(folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "split"
    arguments = ("fit", folder / "source.csv", folder / "target.csv", *NUMBERS, "-o", model)
    assert lrqr(*arguments, "--method", "split").code == 0
    ran = lrqr("evaluate", model, folder / "test.csv")
    assert "by interval length" not in ran.out  # all are equal
    assert "worst slab" not in ran.out  # fewer than 50 of 100 held-out rows are in it
    assert ran.out.endswith("%\n")
    write(tmp_path, many=table(2000, 0.5, seed=4))
    slab = lrqr("evaluate", model, tmp_path / "many.csv", "--format", "json").json["worst_slab"]
    assert slab["n"] >= 50
    text = lrqr("evaluate", model, tmp_path / "many.csv").out
    assert f"of {slab['n']} held-out rows ({100 * slab['low']:.1f} % to {100 * slab['high']:.1f} %)" in text


def test_infinite_thresholds_count_as_the_largest_score_in_sizes(tmp_path: Path) -> None:
    paths = write(
        tmp_path, source=table(60, 0.0, 1), target=table(60, 2.0, 2)[["a", "b"]], test=table(60, 2.0, 3)
    )
    model = tmp_path / "model"
    arguments = ("fit", paths["source"], paths["target"], *NUMBERS, "-o", model)
    assert lrqr(*arguments).code == 0
    found = lrqr("evaluate", model, paths["test"], "--format", "json").json
    weighted = next(row for row in found["methods"] if row["name"] == "weighted")
    assert weighted["infinite"] > 0.0
    assert weighted["size"] == "inf"
    loaded = package.load(model)
    thresholds = loaded.companions["weighted"].predict(pd.read_csv(paths["test"])[["a", "b"]].to_numpy())
    largest = (pd.read_csv(paths["source"])["y"] - pd.read_csv(paths["source"])["yhat"]).abs().max()
    assert weighted["size_clipped"] == pytest.approx(2 * np.minimum(thresholds, largest).mean())
    text = lrqr("evaluate", model, paths["test"]).out
    assert "infinite thresholds count as the largest calibration score in sizes." in text
    assert all("size_clipped" not in row for row in found["methods"] if row["infinite"] == 0.0)


def test_labels_may_show_what_the_fit_could_not_promise(tmp_path: Path) -> None:
    paths = write(
        tmp_path, source=table(200, 0.0, 1), target=table(200, 9.0, 2)[["a", "b"]], test=table(200, 9.0, 3)
    )
    model = tmp_path / "model"
    arguments = ("fit", paths["source"], paths["target"], *NUMBERS, "-o", model)
    assert lrqr(*arguments).code == 0
    assert "no overlap" in lrqr("evaluate", model, paths["test"]).out
    assert "their coverage was measured, not promised" in lrqr("evaluate", model, paths["test"]).out
    unlabeled = write(tmp_path, unlabeled=table(200, 9.0, 3).drop(columns="y"))["unlabeled"]
    assert "was measured, not promised" not in lrqr("evaluate", model, unlabeled).out


def test_inspect_a_model_and_a_table(folder: Path) -> None:
    found = lrqr("inspect", folder / "model", "--format", "json").json
    assert found["kind"] == "model"
    assert found["features"] == ["a", "b"]
    assert found["roles"]["outcome"] == "y"
    assert found["coefficients"].keys() == {"(constant)", "a", "b"}
    assert found["fit"]["gap"] < 1e-4
    assert found["provenance"]["inputs"]["source"]["name"] == "source.csv"
    assert len(found["fit"]["selection"]) > 1
    text = lrqr("inspect", folder / "model").out
    assert "threshold, largest coefficients" in text
    found = lrqr("inspect", folder / "target.csv", "--format", "json").json
    assert [(c["name"], c["kind"], c["missing"]) for c in found["columns"]] == [
        ("a", "numeric", 0),
        ("b", "numeric", 0),
    ]
    assert "200 rows, 2 columns" in lrqr("inspect", folder / "target.csv").out


def test_load_in_python_gives_the_same(folder: Path) -> None:
    model = package.load(folder / "model")
    frame = pd.read_csv(folder / "test.csv", engine="pyarrow")
    out = folder / "python.csv"
    assert lrqr("predict", folder / "model", folder / "test.csv", "-o", out).code == 0
    want = pd.read_csv(out, engine="pyarrow")
    bounds = model.predict_interval(frame)
    assert np.array_equal(bounds, want[["lower", "upper"]])
    assert np.array_equal(model.predict_threshold(pl.from_pandas(frame)), want["threshold"])
    assert model.predict_interval(frame.head(1)).shape == (1, 2)
    assert "method='lrqr'" in repr(model)
    with pytest.raises(package.errors.UsageError, match="gives intervals: use predict_interval"):
        model.predict_set(frame)


def test_saved_and_loaded_again_is_the_same_bytes(folder: Path) -> None:
    package.load(folder / "model").save(folder / "again")
    for path in (folder / "model").iterdir():
        assert path.read_bytes() == (folder / "again" / path.name).read_bytes()


@pytest.mark.parametrize("method", plugins.names("methods"))
def test_every_method_goes_all_the_way(folder: Path, tmp_path: Path, method: str) -> None:
    model = tmp_path / "model"
    fitted = lrqr(
        "fit", folder / "source.csv", folder / "target.csv", *NUMBERS, "-o", model, "--method", method
    )
    assert fitted.code == 0, fitted.err
    assert (
        lrqr("predict", model, folder / "test.csv", "-o", tmp_path / "p.csv", "--infinite", "clip").code == 0
    )
    found = lrqr("evaluate", model, folder / "test.csv", "--format", "json").json
    assert found["coverage"]["value"] > 0.7
    assert lrqr("inspect", model).code == 0


@pytest.mark.parametrize("score", ["lac", "aps", "raps"])
def test_classification(tmp_path: Path, score: str) -> None:
    paths = write(
        tmp_path,
        source=classes(300, seed=1),
        target=classes(200, 0.5, seed=2)[["a", "b"]],
        test=classes(300, 0.5, seed=3),
    )
    model = tmp_path / "model"
    options = ("--outcome", "y", "--probability", "p_*", "--score", score)
    ran = lrqr("fit", paths["source"], paths["target"], *options, "-o", model)
    assert ran.code == 0
    assert "corrected for the shift by likelihood ratios learned from 2 features" in ran.err
    assert "ridge" not in ran.err
    assert lrqr("predict", model, paths["test"], "-o", tmp_path / "p.csv").code == 0
    out, test = pd.read_csv(tmp_path / "p.csv"), pd.read_csv(paths["test"])
    members = ["in_red", "in_green", "in_blue"]
    assert list(out.columns) == ["row", "threshold", *members, "size", "outside_support"]
    assert (out["size"] == out[members].sum(axis=1)).all()
    inside = np.array([out[f"in_{label}"][k] for k, label in enumerate(test["y"])])
    found = lrqr("evaluate", model, paths["test"], "--format", "json").json
    assert found["task"] == "classification"
    assert found["coverage"]["value"] == inside.mean()
    assert found["size"]["mean"] == out["size"].mean()
    assert package.load(model).predict_set(test).shape == (300, 3)
    assert package.load(model).classes == ("red", "green", "blue")


@pytest.mark.parametrize(
    ("base", "make", "score"),
    [
        ("ridge", table, "absolute"),
        ("hist-gradient-boosting", table, "absolute"),
        ("logistic", classes, "lac"),
        ("hist-gradient-boosting", classes, "lac"),
    ],
)
def test_base_learners(tmp_path: Path, base: str, make: Any, score: str) -> None:
    columns = ["a", "b"]
    paths = write(
        tmp_path,
        source=make(200, seed=1)[[*columns, "y"]],
        target=make(100, 0.3, seed=2)[columns],
        test=make(100, 0.3, seed=3)[[*columns, "y"]],
    )
    model = tmp_path / "model"
    ran = lrqr("fit", paths["source"], paths["target"], "--outcome", "y", "--base", base, "-o", model)
    assert ran.code == 0, ran.err
    assert f"source rows (base learner {base}, fitted on the other half) for 100 target rows" in ran.err
    assert (model / "base.skops").exists()
    found = lrqr("evaluate", model, paths["test"], "--format", "json").json
    assert found["model"]["score"] == score
    assert found["coverage"]["value"] > 0.7
    assert lrqr("predict", model, paths["target"], "-o", tmp_path / "p.csv").code == 0
    assert len(pd.read_csv(tmp_path / "p.csv")) == 100


@pytest.mark.parametrize("options", [("logistic",), ("hist-gradient-boosting", "--score", "lac")])
@pytest.mark.parametrize("command", ["fit", "compare"])
def test_numbers_are_not_taken_for_as_many_classes(
    folder: Path, tmp_path: Path, command: str, options: tuple[str, ...]
) -> None:
    files = [folder / "source.csv", folder / "target.csv"]
    files += [folder / "test.csv"] if command == "compare" else []
    columns = ("--outcome", "y", "--exclude", "yhat")
    ran = lrqr(command, *files, *columns, "--base", *options, "-o", tmp_path / "out")
    assert ran.code == 2
    assert "the outcome 'y' takes 200 different values in 200 rows; for numbers use --base ridge" in ran.err


def test_a_score_of_the_users_own(tmp_path: Path) -> None:
    frames = {
        name: table(200, shift, seed) for seed, (name, shift) in enumerate([("source", 0.0), ("test", 0.5)])
    }
    for frame in frames.values():
        frame["s"] = (frame.pop("y") - frame.pop("yhat")).abs()
    paths = write(tmp_path, **frames, target=table(200, 0.5, 7)[["a", "b"]])
    model = tmp_path / "model"
    assert lrqr("fit", paths["source"], paths["target"], "--score-column", "s", "-o", model).code == 0
    assert lrqr("predict", model, paths["target"], "-o", tmp_path / "p.csv").code == 0
    assert list(pd.read_csv(tmp_path / "p.csv").columns) == ["row", "threshold", "outside_support"]
    found = lrqr("evaluate", model, paths["test"], "--format", "json").json
    thresholds = package.load(model).predict_threshold(frames["test"])
    assert found["coverage"]["value"] == np.mean(frames["test"]["s"] <= thresholds)
    assert found["size"]["of"] == "threshold"
    assert found["size"]["median"] == np.median(thresholds)


def test_cqr_takes_two_columns(tmp_path: Path) -> None:
    def make(n: int, shift: float, seed: int) -> pd.DataFrame:
        frame = table(n, shift, seed)
        return frame.assign(lo=frame["yhat"] - 1.0, hi=frame["yhat"] + 1.0).drop(columns="yhat")

    paths = write(
        tmp_path, source=make(200, 0.0, 1), target=make(200, 0.5, 2)[["a", "b"]], test=make(200, 0.5, 3)
    )
    model = tmp_path / "model"
    options = ("--outcome", "y", "--prediction", "lo,hi", "--score", "cqr")
    assert lrqr("fit", paths["source"], paths["target"], *options, "-o", model).code == 0
    assert lrqr("evaluate", model, paths["test"], "--format", "json").json["coverage"]["value"] > 0.75
    one = lrqr(
        "fit",
        paths["source"],
        paths["target"],
        "--outcome",
        "y",
        "--prediction",
        "lo",
        "--score",
        "cqr",
        "-o",
        "x",
    )
    assert one.code == 2
    assert "score 'cqr' needs 2 prediction column(s) (lower, upper), got 1: lo" in one.err


def test_more_unlabeled_source_rows_count(folder: Path, tmp_path: Path) -> None:
    more = write(tmp_path, more=table(400, seed=9)[["a", "b"]])["more"]
    plain = (
        "fit",
        folder / "source.csv",
        folder / "target.csv",
        *NUMBERS,
        "--feature-map",
        "given",
        "--ridge",
        "1",
        "--regularization",
        "1",
    )
    assert lrqr(*plain, "-o", tmp_path / "one").code == 0
    assert lrqr(*plain, "--unlabeled-source", more, "-o", tmp_path / "two").code == 0
    one, two = (package.load(tmp_path / name) for name in ("one", "two"))
    frame = pd.read_csv(folder / "test.csv")
    assert not np.array_equal(one.predict_threshold(frame), two.predict_threshold(frame))
    assert two.details["provenance"]["inputs"].keys() == {"source", "target", "unlabeled_source"}


def test_compare_puts_methods_side_by_side(folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    arguments = ("compare", folder / "source.csv", folder / "target.csv", folder / "test.csv", *NUMBERS)
    chosen = ("--method", "lrqr", "--method", "split", "--method", "weighted", "--splits", "3")
    ran = lrqr(*arguments, *chosen, "-o", run, "--format", "json")
    assert ran.code == 0, ran.err
    found = ran.json
    assert (found["nominal"], found["splits"]) == (0.9, 3)
    assert [row["name"] for row in found["methods"]] == ["lrqr", "split", "weighted"]
    for row in found["methods"]:
        assert {"coverage", "coverage_se", "size", "size_se", "infinite", "seconds"} <= row.keys()
    assert found["methods"][0]["coverage_difference"] == 0.0
    runs = pd.read_csv(run / "results.csv")
    assert len(runs) == 9
    np.testing.assert_allclose(
        runs.groupby("method")["coverage"].mean()["split"], found["methods"][1]["coverage"]
    )
    assert "Δ coverage" in lrqr(*arguments, *chosen).out
    again = lrqr(*arguments, *chosen, "-o", run)
    assert again.code == 2
    assert "exist already; pass --force" in again.err
    page = lrqr("report", run, "-o", tmp_path / "run.html")
    assert page.code == 0, page.err
    assert "weighted" in (tmp_path / "run.html").read_text()


def test_compare_of_one_split_is_a_fit_and_an_evaluation(folder: Path) -> None:
    arguments = ("compare", folder / "source.csv", folder / "target.csv", folder / "test.csv", *NUMBERS)
    found = lrqr(*arguments, "--method", "split", "--splits", "1", "--format", "json").json["methods"][0]
    alone = lrqr("evaluate", folder / "model", folder / "test.csv", "--format", "json").json["methods"][1]
    assert found["coverage"] == alone["coverage"]
    np.testing.assert_allclose(found["size"], alone["size"], rtol=1e-9)


def test_compare_in_python_takes_frames(folder: Path) -> None:
    frames = [pd.read_csv(folder / f"{name}.csv") for name in ("source", "target", "test")]
    options: dict[str, Any] = {"splits": 2, "outcome": "y", "prediction": ("yhat",)}
    runs = package.compare(*frames, ["split", "lrqr"], **options)
    assert list(runs["method"]) == ["split", "lrqr", "split", "lrqr"]
    from_paths = package.compare(
        *(folder / f"{n}.csv" for n in ("source", "target", "test")), ["split", "lrqr"], **options
    )
    columns = ["split", "method", "coverage", "size"]
    pd.testing.assert_frame_equal(runs[columns], from_paths[columns])
    with pytest.warns(package.errors.LrqrWarning, match="feature_map='given'"):
        old = package.compare(*frames, ["lrqr"], features="given", **options)
    new = package.compare(*frames, ["lrqr"], feature_map="given", **options)
    pd.testing.assert_frame_equal(old[columns], new[columns])
    mixed = [frames[0], folder / "target.csv", frames[2]]
    with pytest.raises(package.errors.UsageError, match="not some of each"):
        package.compare(*mixed, ["split"], **options)
    based = package.compare(*frames, ["split"], base="ridge", splits=1, outcome="y", exclude=("yhat",))
    assert 0.5 < based["coverage"][0] <= 1.0


def test_compare_with_classes_of_a_base_learner() -> None:
    frames = [classes(200, 0.0, 1), classes(100, 0.5, 2), classes(100, 0.5, 3)]
    frames = [frame[["a", "b", "y"]] for frame in frames]
    runs = package.compare(*frames, ["split", "lrqr"], base="logistic", splits=2, outcome="y")
    assert runs["coverage"].between(0.7, 1.0).all()
    assert runs["size"].between(1.0, 3.0).all()


def test_diagnose_prints_the_contract(folder: Path, tmp_path: Path) -> None:
    ran = lrqr(
        "diagnose", folder / "source.csv", folder / "target.csv", "--exclude", "y,yhat", "--format", "json"
    )
    assert ran.code == 0, ran.err
    keys = (
        "n_source n_target auc auc_low auc_high effective_size largest_weight outside_support negative_mass"
    )
    assert set(keys.split()) <= ran.json.keys()
    assert ran.json["verdict"] == "shift within reach"
    assert ran.json["features"][0]["name"] == "a"
    text = lrqr("diagnose", folder / "source.csv", folder / "target.csv").out
    assert "columns only in the source  yhat, y" in text
    for known in (NUMBERS, ("--outcome", "y", "--exclude", "yh*")):
        text = lrqr("diagnose", folder / "source.csv", folder / "target.csv", *known).out
        assert "columns only in" not in text
    with_model = lrqr("diagnose", folder / "source.csv", folder / "test.csv", "--model", folder / "model")
    assert with_model.code == 0
    assert "columns only in" not in with_model.out
    ran = lrqr("diagnose", folder / "source.csv", folder / "target.csv", "--report", tmp_path / "d.html")
    assert ran.code == 0, ran.err
    assert (tmp_path / "d.html").exists()


def test_datasets_and_experiments_are_listed() -> None:
    assert "communities" in lrqr("datasets", "list").out
    assert lrqr("datasets", "show", "communities", "--format", "json").json["license"] == "CC BY 4.0"
    shown = lrqr("datasets", "show", "comunities")
    assert shown.code == 2
    assert "did you mean 'communities'" in shown.err
    assert "communities" in lrqr("reproduce", "--list").out
    plan = lrqr("reproduce", "communities", "--dry-run", "--splits", "2", "--format", "json").json[
        "experiments"
    ][0]
    assert plan["splits"] == 2
    assert lrqr("reproduce", "comunities", "--dry-run").code == 2


def test_verification_of_data_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lrqr("datasets", "verify", "communities").code == 0
    monkeypatch.setenv("LRQR_DATA", str(tmp_path))
    ran = lrqr("datasets", "verify", "communities")
    assert ran.code == 3
    assert "data sets are not as recorded: communities" in ran.err


@pytest.mark.parametrize("command", ["fit", "compare", "diagnose"])
def test_files_without_a_common_feature_are_refused(tmp_path: Path, command: str) -> None:
    target = table(50, seed=2).drop(columns="y").rename(columns={"a": "A", "b": "B"})
    paths = write(tmp_path, source=table(50, seed=1), target=target, test=table(50, seed=3))
    more = {"fit": ("-o", tmp_path / "m"), "compare": (paths["test"],), "diagnose": ()}[command]
    ran = lrqr(command, paths["source"], paths["target"], *more, *NUMBERS)
    assert ran.code == 1
    assert "source and target share no feature columns: source has a, b, target has A, B" in ran.err


def test_columns_that_only_one_file_has_are_named(folder: Path, tmp_path: Path) -> None:
    source = table(80, seed=1).assign(traffic=0.5, key=1, odd=2)
    target = table(80, 0.5, seed=2).drop(columns=["y", "yhat"]).assign(Traffic=0.5, note=3, odd=4)
    paths = write(tmp_path, source=source, target=target)
    arguments = ("fit", paths["source"], paths["target"], *NUMBERS, "--id", "key", "-o", tmp_path / "m")
    ran = lrqr(*arguments)
    assert ran.code == 0
    assert (
        "Warning: columns that only one file has are not used as features; only in the source: 'traffic', "
        "did you mean 'Traffic'?; only in the target: 'Traffic', 'note'"
    ) in ran.err
    quiet = lrqr(*arguments, "--force", "--exclude", "traffic", "--exclude", "[Tn]*")
    assert quiet.code == 0, quiet.err  # a column of the target alone may be excluded too
    assert "only one file" not in quiet.err
    assert "only one file" not in lrqr(*arguments, "--force", "--features", "a,b").err
    plain = ("fit", folder / "source.csv", folder / "target.csv", *NUMBERS, "-o", tmp_path / "n")
    assert "only one file" not in lrqr(*plain).err


def test_a_model_that_learned_to_impute_does_so_everywhere(tmp_path: Path) -> None:
    source, test = table(100, seed=1), table(100, 0.5, seed=3)
    source.loc[3, "a"], test.loc[5, "b"] = np.nan, np.nan
    paths = write(tmp_path, source=source, target=table(100, 0.5, seed=2)[["a", "b"]], test=test)
    model = tmp_path / "model"
    fit = ("fit", paths["source"], paths["target"], *NUMBERS, "--on-missing", "impute", "-o", model)
    assert "filled in 1 missing feature values: 'a' 1" in lrqr(*fit).err
    ran = lrqr("evaluate", model, paths["test"], "--format", "json")
    assert (ran.code, ran.json["n"]) == (0, 100)
    assert "filled in 1 missing feature values: 'b' 1" in ran.err
    assert lrqr("evaluate", model, paths["test"], "--on-missing", "error").code == 1
    assert lrqr("diagnose", paths["source"], paths["test"], "--model", model).code == 0
    loaded = package.load(model)
    with pytest.warns(package.errors.LrqrWarning, match="filled in 1"):
        bounds = loaded.predict_interval(test)
    filled = test.fillna({"b": source["b"].median()})
    np.testing.assert_array_equal(bounds, loaded.predict_interval(filled))
    with pytest.raises(package.errors.DataError, match="every row must get an answer"):
        loaded.predict_interval(filled.assign(yhat=np.nan))


def test_rows_without_a_group_are_a_group(folder: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(folder / "test.csv")
    site = np.where(np.arange(200) < 150, "A", None)
    path = write(tmp_path, grouped=frame.assign(site=site))["grouped"]
    ran = lrqr("evaluate", folder / "model", path, "--group", "site", "--format", "json")
    assert ran.json["n"] == 200
    assert {row["name"]: row["n"] for row in ran.json["groups"]} == {"A": 150, "(missing)": 50}


def test_one_configuration_with_an_identifier_serves_all(folder: Path, tmp_path: Path) -> None:
    frames = {
        part: pd.read_csv(folder / f"{part}.csv").assign(key=range(200))
        for part in ("source", "target", "test")
    }
    paths = write(tmp_path, **frames)
    config = tmp_path / "c.toml"
    config.write_text('outcome = "y"\nprediction = "yhat"\nid = "key"\nmethod = "split"\n')
    three = (paths["source"], paths["target"], paths["test"])
    assert lrqr("fit", *three[:2], "-c", config, "-o", tmp_path / "m").code == 0
    assert lrqr("compare", *three, "-c", config, "--splits", "2").code == 0
    found = lrqr("diagnose", *three[:2], "-c", config, "--format", "json").json
    assert {row["name"] for row in found["features"]} == {"a", "b"}


def test_swapped_quantiles_are_warned_about(tmp_path: Path) -> None:
    def make(n: int, seed: int) -> pd.DataFrame:
        frame = table(n, 0.0, seed)
        return frame.assign(lo=frame["yhat"] - 1.0, hi=frame["yhat"] + 1.0).drop(columns="yhat")

    paths = write(tmp_path, source=make(100, 1), target=make(100, 2)[["a", "b"]])
    options = (
        "fit",
        paths["source"],
        paths["target"],
        "--outcome",
        "y",
        "--score",
        "cqr",
        "--method",
        "split",
    )
    swapped = lrqr(*options, "--prediction", "hi,lo", "-o", tmp_path / "m")
    assert "lower above upper in 100 % of rows: are the two columns swapped?" in swapped.err
    right = lrqr(*options, "--prediction", "lo,hi", "-o", tmp_path / "n")
    assert "are the two columns swapped" not in right.err


@pytest.mark.usefixtures("small_map")
def test_classes_without_rows_and_labels_without_class(tmp_path: Path) -> None:
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
def test_an_outcome_of_two_values_suggests_classes(tmp_path: Path) -> None:
    frame = table(100, seed=1).assign(y=lambda f: (f["a"] > 0).astype(int))
    paths = write(tmp_path, source=frame, target=frame[["a", "b"]])
    ran = lrqr("fit", paths["source"], paths["target"], *NUMBERS, "-o", tmp_path / "model")
    assert ran.code == 0
    expected = "the outcome 'y' has only two values (0 and 1): if they are classes, use --probability"
    assert expected in ran.err


@pytest.mark.usefixtures("small_map")
def test_columns_are_matched_by_name(tmp_path: Path) -> None:
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
    ran = lrqr("fit", paths["source"], paths["target"], *NUMBERS, "-o", tmp_path / "model")
    assert ran.code == 0, ran.err
    pd.testing.assert_frame_equal(predicted(tmp_path, rows="test"), predicted(tmp_path, rows="shuffled"))
    ran = lrqr("predict", tmp_path / "model", paths["lacking"], "-o", tmp_path / "l.csv")
    assert ran.code == 1
    assert "feature column 'b' does not exist" in ran.err
    ran = lrqr("predict", tmp_path / "model", paths["novel"], "-o", tmp_path / "n.csv")
    assert ran.code == 0
    assert "'sideways'" in ran.err
    assert pd.read_csv(tmp_path / "n.csv")["outside_support"][0]


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
