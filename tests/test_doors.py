"""Data as people have them: gaps, blanks, Unicode forms, categories nobody saw, numbers that name rows."""

from __future__ import annotations

import unicodedata
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import LABELS, NUMBERS, classes, lrqr, predicted, table, write
from sklearn.linear_model import Ridge

from lrqr import ConformalRegressor
from lrqr.data import tables
from lrqr.data.encoder import TableEncoder
from lrqr.data.roles import Roles
from lrqr.errors import DataError, LrqrWarning, UsageError

if TYPE_CHECKING:
    from pathlib import Path

SPLIT = ("--method", "split")
ALL = ("features", "outcome", "prediction")


def gaps(n: int, share: float, seed: int, *, texts: bool = False) -> pd.DataFrame:
    """Rows in which a feature is missing; the rows with gaps have noisier outcomes."""
    rng = np.random.default_rng(seed)
    values, x, gone = rng.integers(0, 4, n).astype(float), rng.normal(size=n), rng.random(n) < share
    y = x + np.where(gone, 3.0, 0.5) * rng.normal(size=n)
    children: Any = np.array(["none", "one", "two", "many"], dtype=object)[values.astype(int)]
    frame = pd.DataFrame({"x": x, "children": children if texts else values, "yhat": x, "y": y})
    frame.loc[gone, "children"] = None if texts else np.nan
    return frame


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_missing_is_something_a_row_can_be(tmp_path: Path, texts: bool, suffix: str) -> None:
    paths = {}
    for name, n, share, seed in (("s", 400, 0.1, 0), ("t", 300, 0.6, 1), ("u", 1500, 0.6, 2)):
        frame = gaps(n, share, seed, texts=texts)
        paths[name] = tmp_path / f"{name}{suffix}"
        frame.to_csv(paths[name], index=False) if suffix == ".csv" else frame.to_parquet(paths[name])
    options = (*NUMBERS, "--method", "weighted", "--on-missing", "impute")
    ran = lrqr("fit", paths["s"], paths["t"], *options, "-o", tmp_path / "m")
    assert ran.code == 0
    assert "missing: 'children' " in ran.err
    assert " % in the source, " in ran.err
    judged = lrqr("evaluate", tmp_path / "m", paths["u"], "--format", "json").json
    assert judged["coverage"]["high"] >= 0.9
    found = {row["name"]: row for row in judged["shift"]["features"]}["children is missing"]
    assert found["mean_source"] < 0.2
    assert found["mean_target"] > 0.5


def test_without_gaps_nothing_changes_and_a_gap_first_met_later_is_outside(tmp_path: Path) -> None:
    frame = gaps(200, 0.0, 0)
    whole = TableEncoder().fit(frame, frame, on_missing="impute")
    assert whole.names_ == TableEncoder().fit(frame, frame).names_
    paths = write(tmp_path, s=frame, t=gaps(100, 0.0, 1), u=gaps(50, 0.5, 2).drop(columns="y"))
    options = (*NUMBERS, *SPLIT, "--on-missing", "impute")
    assert lrqr("fit", paths["s"], paths["t"], *options, "-o", tmp_path / "model").code == 0
    out = predicted(tmp_path, rows="u")
    assert out["outside_support"][pd.read_csv(paths["u"])["children"].isna()].all()


def test_a_column_that_one_side_lacks_altogether_is_left_out_and_named(tmp_path: Path) -> None:
    source, target = table(100, seed=1), table(80, seed=2).drop(columns="y")
    filled = np.arange(100) % 7 / 3
    sides = {"target": (source.assign(lab=filled), target.assign(lab=np.nan))}
    sides["source"] = (source.assign(lab=np.nan), target.assign(lab=filled[:80]))
    for side, (own, other) in sides.items():
        paths = write(tmp_path, s=own, t=other)
        ran = lrqr("diagnose", paths["s"], paths["t"], *NUMBERS, "--on-missing", "impute", "--format", "json")
        assert f"no row has a value: 'lab' in the {side}" in ran.err
        assert [row["name"] for row in ran.json["features"] if "lab" in row["name"]] == []
    with pytest.warns(LrqrWarning), pytest.raises(DataError, match="no feature has values"):
        TableEncoder().fit(own[["lab"]], other[["lab"]], on_missing="impute")


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_names_categories_and_classes_are_the_same_in_either_unicode_form(tmp_path: Path, form: Any) -> None:
    name, word, label = (unicodedata.normalize(form, text) for text in ("größe", "Köln", "p_grün"))
    other = {"NFC": "NFD", "NFD": "NFC"}[form]
    frame = pd.DataFrame({name: np.arange(40.0) % 9, "town": [word, "Bonn"] * 20, label: 0.25, "p_rot": 0.75})
    frame["y"] = [unicodedata.normalize(other, "grün"), "rot"] * 20
    target = frame.drop(columns="y").rename(columns={name: unicodedata.normalize(other, name)})
    target["town"] = [unicodedata.normalize(other, text) for text in target["town"]]
    paths = write(tmp_path, s=frame, t=target)
    target.to_parquet(tmp_path / "t.parquet")
    for file in (paths["t"], tmp_path / "t.parquet"):
        options = ("--outcome", "y", "--probability", "p_*", "--exclude", unicodedata.normalize(other, name))
        ran = lrqr("fit", paths["s"], file, *options, *SPLIT, "-o", tmp_path / "model", "--force")
        assert (ran.code, "not used" in ran.err, "no source row" in ran.err) == (0, False, False)
        assert lrqr("inspect", tmp_path / "model", "--format", "json").json["features"] == [
            "town=Bonn",
            "town=Köln",
        ]


def test_blanks_around_texts_are_no_difference_and_case_is_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    source, target = table(100, seed=1), table(80, seed=2).drop(columns="y")
    source["work"], target["work"] = (
        rng.choice(["Private", "State"], 100),
        rng.choice(["Private", "State"], 80),
    )
    spaced = source.assign(work=" " + source["work"] + "\u00a0")
    paths = write(tmp_path, s=spaced, t=target, capital=source.assign(work=source["work"].str.upper()))
    ran = lrqr("diagnose", paths["s"], paths["t"], *NUMBERS)
    assert ("no shift" in ran.out, ran.err) == (True, "")
    for command in (("diagnose",), ("fit", "-o", tmp_path / "model", *SPLIT)):
        ran = lrqr(*command, paths["capital"], paths["t"], *NUMBERS)
        assert "'Private' and 'PRIVATE', 'State' and 'STATE' differ only in case or blanks" in ran.err
    model = ConformalRegressor(_Constant(), prefit=True, method="split")
    own = source.assign(work=source["work"].str.lower())[["a", "work"]]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(own, source["y"].to_numpy(), X_target=target[["a", "work"]])
    assert any("differ only in case or blanks" in str(warning.message) for warning in said)


class _Constant:
    """A model that says 0."""

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X))


def test_a_category_first_met_in_predict_is_outside_in_every_row(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    source, target, new = table(300, seed=1), table(200, 0.3, seed=2), table(90, 0.3, seed=3)
    for frame in (source, target):
        frame["site"] = rng.choice(["A", "B"], len(frame))
    new["site"] = np.repeat(["A", "B", "C"], 30)
    paths = write(tmp_path, s=source, t=target.drop(columns="y"), rows=new.drop(columns="y"))
    assert lrqr("fit", paths["s"], paths["t"], *NUMBERS, *SPLIT, "-o", tmp_path / "model").code == 0
    outside = predicted(tmp_path, rows="rows")["outside_support"]
    assert outside[60:].all()
    assert outside[:60].mean() < 0.2


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (np.arange(100), np.arange(80), "seems to number the rows"),
        (
            np.arange(500, 600),
            np.random.default_rng(0).permutation(np.arange(600, 680)),
            "to number the rows",
        ),
        (1e9 + 60.5 * np.arange(100), 2e9 + np.cumsum(1.0 + np.arange(80)), "seems to say only when"),
    ],
)
def test_numbers_that_name_rows_or_times_get_a_hint(
    tmp_path: Path, first: Any, second: Any, words: str
) -> None:
    source, target = table(100, seed=1), table(80, seed=2).drop(columns="y")
    paths = write(tmp_path, s=source.assign(order=first), t=target.assign(order=second))
    ran = lrqr("diagnose", paths["s"], paths["t"], *NUMBERS)
    assert "'order' " in ran.err
    assert words in ran.err
    assert "--exclude order, or --id" in ran.err


def test_sorted_or_repeated_numbers_get_no_hint(tmp_path: Path) -> None:
    source, target = table(100, seed=1).sort_values("a"), table(80, seed=2).sort_values("a")
    source["year"], target["year"] = 2000 + np.arange(100) // 10, 2000 + np.arange(80) // 8
    paths = write(tmp_path, s=source, t=target.drop(columns="y"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lrqr("diagnose", paths["s"], paths["t"], *NUMBERS).err == ""


def wordy(n: int, seed: int) -> pd.DataFrame:
    """Rows with a class None and a country NA."""
    frame = classes(n, seed=seed).rename(columns={"p_red": "p_None"})
    frame["y"] = frame["y"].replace("red", "None")
    return frame.assign(country=np.random.default_rng(seed).choice(["NA", "ZA", "?"], n))


@pytest.mark.parametrize(("words", "missing"), [(None, "NA"), ("NA,?", "NA?"), ("?", "?"), ("", "")])
def test_which_words_are_missing_is_the_same_in_every_format(
    tmp_path: Path, words: Any, missing: str
) -> None:
    frame = wordy(60, 0)
    frame.to_csv(tmp_path / "s.csv", index=False)
    frame.to_parquet(tmp_path / "s.parquet")
    option = () if words is None else ("--missing-values", words)
    count = sum(frame["country"].isin([*({"NA", "?"} if missing == "NA?" else {missing})]))
    for name in ("s.csv", "s.parquet"):
        found = lrqr("inspect", tmp_path / name, *option, "--format", "json").json["columns"]
        assert {row["name"]: row["missing"] for row in found}["country"] == count
    roles = Roles(
        missing_values=None if words is None else tuple(words.split(",")), features=("a", "country")
    )
    for data in (frame, tmp_path / "s.csv", tmp_path / "s.parquet"):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            sample = tables.read(data, roles, on_missing="impute")
        assert len(said) == (count > 0)
        assert sample.features["country"].isna().sum() == count


def test_a_class_with_a_probability_is_one_whatever_its_name(tmp_path: Path) -> None:
    frame, target = wordy(80, 0).drop(columns="country"), wordy(40, 1).drop(columns=["y", "country"])
    paths = write(tmp_path, s=frame, t=target)
    assert lrqr("fit", paths["s"], paths["t"], *LABELS, *SPLIT, "-o", tmp_path / "model").code == 0
    assert "in_None" in predicted(tmp_path, rows="t")
    options = ("--outcome", "y", "--features", "a", "--base", "logistic", *SPLIT)
    ran = lrqr("fit", paths["s"], paths["t"], *options, "-o", tmp_path / "other")
    assert ran.code == 1
    assert "'None' in 'y'" in ran.err
    assert "--on-missing drop" not in ran.err
    options = (*options, "--missing-values", "")
    assert lrqr("fit", paths["s"], paths["t"], *options, "-o", tmp_path / "other").code == 0
    assert "in_None" in predicted(tmp_path, rows="t", model="other")


def test_numbers_may_stand_for_missing(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1, -999, 3], "z": [1.5, 2.5, -999.0]})
    frame.to_csv(tmp_path / "s.csv", index=False)
    frame.to_parquet(tmp_path / "s.parquet")
    for data in (frame, tmp_path / "s.csv", tmp_path / "s.parquet"):
        with pytest.raises(DataError, match=r"(?s)'x': 1 of 3 values are missing \(row 2\).*'z': 1 of 3"):
            tables.read(data, Roles(missing_values=("-999",)))


@pytest.mark.parametrize(("decimals", "accepted"), [(2, True), (3, True), (4, True), (None, False)])
def test_rounded_probabilities_are_divided_by_their_sum(decimals: int | None, accepted: bool) -> None:
    frame = classes(60)
    names = ["p_red", "p_green", "p_blue"]
    frame[names] = frame[names] * 1.004 if decimals is None else frame[names].round(decimals)
    roles = Roles(outcome="y", prediction="p_*", probability=True)
    if accepted:
        with pytest.warns(LrqrWarning, match="sum to 1 only up to rounding"):
            sample = tables.read(frame, roles, need=ALL)
        np.testing.assert_allclose(sample.prediction.sum(axis=1), 1.0, atol=1e-6)
    else:
        with pytest.raises(DataError, match=r"60 of 60 rows do not sum to 1: 1\.004"):
            tables.read(frame, roles, need=ALL)
    with pytest.raises(DataError, match="these are percents: divide them by 100"):
        tables.read(frame.assign(**{name: 100 * frame[name] for name in names}), roles, need=ALL)


@pytest.mark.parametrize(
    ("column", "labels", "pair"),
    [("p", [0, 1], ("0", "1")), ("p", ["TRUE", "FALSE"], ("FALSE", "TRUE")), ("p", [1.0, 0.0], ("0", "1")),
     ("p_ill", ["ill", "well"], ("well", "ill")), ("p_1", [False, True], ("False", "True")),
     ("p", [0, 0], ("0", "1"))],
)  # fmt: skip
def test_one_probability_is_that_of_the_second_class(
    tmp_path: Path, column: str, labels: Any, pair: Any
) -> None:
    rng = np.random.default_rng(0)
    p = rng.random(80).round(4)
    frame = pd.DataFrame({"x": rng.normal(size=80), column: p, "y": np.tile(labels, 40)})
    paths = write(tmp_path, s=frame, t=frame.drop(columns="y"))
    options = ("--outcome", "y", "--probability", "p_*" if "_" in column else "p", *SPLIT)
    ran = lrqr("fit", paths["s"], paths["t"], *options, "-o", tmp_path / "model")
    assert ran.code == 0, ran.err
    out = predicted(tmp_path, rows="t")
    likely = np.flatnonzero(p > 0.99)
    assert out[f"in_{pair[1]}"][likely].all()
    assert set(out.columns) >= {f"in_{name}" for name in pair}
    if len(set(labels)) == 2:
        judged = lrqr("evaluate", tmp_path / "model", paths["s"], "--format", "json").json
        assert judged["n"] == 80


def test_one_probability_for_other_labels_names_the_remedy(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": np.arange(40.0) % 7, "p": 0.5, "y": ["ill", "well"] * 20})
    for labels, words in (
        (["ill", "well"], "which of them is it for"),
        (["a", "b", "c", "d"], "one column per class"),
    ):
        paths = write(tmp_path, s=frame.assign(y=np.resize(labels, 40)), t=frame.drop(columns="y"))
        ran = lrqr(
            "fit", paths["s"], paths["t"], "--outcome", "y", "--probability", "p", "-o", tmp_path / "m"
        )
        assert (ran.code, words in ran.err) == (2, True)


@pytest.mark.parametrize("labels", [["TRUE", "FALSE"], ["true", "false"], [True, False], ["yes", "no"]])
def test_truth_is_known_as_1_and_0(labels: Any) -> None:
    frame = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "p_0": 0.25, "p_1": 0.75, "y": np.resize(labels, 4)})
    sample = tables.read(frame, Roles(outcome="y", prediction="p_*", probability=True), need=ALL)
    assert sample.outcome is not None
    assert sample.outcome.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("keys", [["region"], ["region", "year"]])
def test_folders_of_partitions_are_columns(tmp_path: Path, keys: list[str]) -> None:
    rng = np.random.default_rng(0)
    frame = table(60).assign(region=rng.choice(["U S", "EU"], 60), year=rng.choice([2020, 2021], 60))
    pq.write_to_dataset(
        pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "parts", partition_cols=keys
    )
    sample = tables.read(tmp_path / "parts", Roles(categorical=("region",)))
    expected = frame.sort_values(["a"], ignore_index=True)
    found = sample.features.sort_values(["a"], ignore_index=True)
    assert found["region"].tolist() == expected["region"].tolist()
    assert found["year"].tolist() == expected["year"].tolist()
    one = tables.read(tmp_path / "parts", Roles(features=("region",)))
    assert sorted(one.features["region"]) == sorted(frame["region"])
    (odd := tmp_path / "parts" / "elsewhere").mkdir()
    frame[[name for name in frame if name not in keys]].to_parquet(odd / "part.parquet")
    with pytest.raises(DataError, match=r"the parts have different columns: .*'region'"):
        tables.read(tmp_path / "parts", Roles())


def test_what_its_owner_made_a_category_is_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = table(60).assign(zip=pd.Categorical(rng.choice([10115, 80331], 60)))
    frame.to_parquet(tmp_path / "s.parquet", index=False)
    paths = write(tmp_path, t=frame.drop(columns="y"))
    kinds = {
        row["name"]: row["kind"]
        for row in lrqr("inspect", tmp_path / "s.parquet", "--format", "json").json["columns"]
    }
    assert (kinds["zip"], kinds["a"]) == ("categorical", "numeric")
    assert (
        lrqr("fit", tmp_path / "s.parquet", paths["t"], *NUMBERS, *SPLIT, "-o", tmp_path / "model").code == 0
    )
    names = lrqr("inspect", tmp_path / "model", "--format", "json").json["features"]
    assert names == ["a", "b", "zip=10115", "zip=80331"]
    arrow = pa.table({"x": pa.array([1, 2, 1]).dictionary_encode(), "z": [1, 2, 3]})
    assert TableEncoder().fit(arrow, arrow).names_ == ("x=1", "x=2", "z")


def test_both_files_are_checked_at_fit_as_predict_would(tmp_path: Path) -> None:
    source, target = (
        table(60, seed=1).assign(sd=1.0, w=1.0),
        table(40, seed=2).drop(columns="y").assign(sd=1.0),
    )
    low = target.assign(sd=[1.0] * 38 + [0.0, -1.0])
    bad = source.assign(sd=[1.0, 0.0, *[1.0] * 58])
    paths = write(tmp_path, s=source, t=target, low=low, bad=bad)
    spread = ("--score", "normalized", "--prediction", "yhat,sd")
    options = ("--outcome", "y", *spread, "--exclude", "w", *SPLIT)
    for pair, words in (
        (("bad", "t"), "bad.csv: column 'sd': 1 of 60 values are not positive: 0; "),
        (("s", "low"), "low.csv: column 'sd': 2 of 40 values are not positive: 0; "),
    ):
        ran = lrqr("fit", *(paths[name] for name in pair), *options, "-o", tmp_path / "m")
        assert (ran.code, words in ran.err, "(row" in ran.err) == (1, True, True)
    assert lrqr("fit", paths["s"], paths["t"], *options, "-o", tmp_path / "m").code == 0
    ran = lrqr("predict", tmp_path / "m", paths["low"], "-o", tmp_path / "o.csv")
    assert (ran.code, "low.csv: column 'sd': 2 of 40 values are not positive" in ran.err) == (1, True)
    weights = (*NUMBERS, "--exclude", "sd", "--weight-column", "w", "--method", "weighted")
    ran = lrqr("fit", paths["s"], paths["t"], *weights, "-o", tmp_path / "w")
    assert "t.csv: the target has no column 'w'" in ran.err
    worse = write(tmp_path, t=target.assign(w=-1.0))["t"]
    ran = lrqr("fit", paths["s"], worse, *weights, "-o", tmp_path / "w", "--force")
    assert (ran.code, "40 of 40 values are negative" in ran.err) == (1, True)


@pytest.mark.parametrize("option", [("--outcome", "a"), ("--score", "cqr"), ("-o", "other"), ("--seed", "1")])
def test_an_option_of_one_value_is_given_once(tmp_path: Path, option: tuple[str, str]) -> None:
    paths = write(tmp_path, s=table(40, seed=1), t=table(40, seed=2).drop(columns="y"))
    arguments = (
        "fit",
        paths["s"],
        paths["t"],
        *NUMBERS,
        "--score",
        "absolute",
        "--seed",
        "0",
        "-o",
        tmp_path / "m",
    )
    ran = lrqr(*arguments, *option)
    assert (ran.code, "was given 2 times" in ran.err) == (2, True)
    assert not (tmp_path / "m").exists()
    several = (
        "--exclude",
        "b",
        "--exclude",
        "a",
        *SPLIT,
        "--features",
        "a",
        "--features",
        "b",
        "--force",
        "--force",
    )
    assert "times" not in lrqr(*arguments, *several).err


def test_words_for_missing_values_are_a_keyword_of_compare() -> None:
    from lrqr import compare

    frame = table(80).assign(k=np.resize(["?", "u", "v"], 80))
    runs = compare(
        frame, frame, frame, ["split"], splits=1, outcome="y", prediction="yhat", missing_values=("!",)
    )
    assert len(runs) == 1
    with pytest.raises(DataError, match="'k': 27 of 80 values are missing"):
        compare(
            frame, frame, frame, ["split"], splits=1, outcome="y", prediction="yhat", missing_values=("?",)
        )
    with pytest.raises(UsageError, match="did you mean 'missing_values'"):
        compare(frame, frame, frame, outcome="y", missing_value=("?",))


@pytest.mark.parametrize(("move", "side"), [(100.0, "above"), (-100.0, "below")])
def test_columns_that_rule_out_overlap_are_named(tmp_path: Path, move: float, side: str) -> None:
    source, target = table(100, seed=1), table(80, seed=2).drop(columns="y")
    paths = write(tmp_path, s=source, t=target.assign(b=target["b"] + move))
    for command in (("diagnose",), ("fit", "-o", tmp_path / "model", *SPLIT)):
        ran = lrqr(*command, paths["s"], paths["t"], *NUMBERS)
        assert f"no overlap in 'b', 100 % of the target {side} all source values; --exclude" in ran.err
    without = lrqr("diagnose", paths["s"], paths["t"], *NUMBERS, "--exclude", "b", "--format", "json")
    assert (without.json["verdict"], "no overlap in" in without.err) == ("no shift detected", False)


def months(n: int, *, month: Any, first: float, seed: int) -> pd.DataFrame:
    """Rows with a clock, a month and a feature x, of which only x says something of y."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0.5 * seed, 1.0, size=n)
    chosen = rng.choice(month, size=n)
    instant = first + rng.permutation(n) * 1.0
    return pd.DataFrame({"instant": instant, "mnth": chosen, "x": x, "yhat": x, "y": x + rng.normal(size=n)})


@pytest.mark.parametrize("texts", [False, True])
def test_no_overlap_says_the_verdict_without_the_columns_that_cause_it(tmp_path: Path, texts: bool) -> None:
    """A month never seen lies between seen ones; a label never seen is in no source row."""
    months_of: Any = (["jan", "mar"], ["feb"]) if texts else ([1, 2, 3, 5, 6], [4])
    source = months(400, month=months_of[0], first=0.0, seed=0)
    target = months(300, month=months_of[1], first=5000.0, seed=1)
    paths = write(tmp_path, s=source, t=target.drop(columns="y"))
    said = "Without instant, mnth: shift within reach"
    ran = lrqr("diagnose", paths["s"], paths["t"], "--exclude", "yhat,y", "--format", "json")
    assert ran.json["verdict"] == "no overlap"
    assert said in ran.json["promise"]
    assert said in " ".join(lrqr("fit", paths["s"], paths["t"], *NUMBERS, "-o", tmp_path / "m").err.split())
    left = lrqr("diagnose", paths["s"], paths["t"], "--exclude", "yhat,y,instant,mnth", "--format", "json")
    assert left.json["verdict"] == "shift within reach"
    assert "Without" not in left.json["promise"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        columns = ["instant", "x"] if texts else ["instant", "mnth", "x"]  # Ridge takes numbers
        ConformalRegressor(Ridge()).fit(source[columns], source["y"], X_target=target[columns])
    told = said.replace(", mnth" if texts else "", "").lower()
    assert any(told in str(item.message).lower() for item in caught)


def test_columns_that_are_apart_only_together_are_not_blamed(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.0, 1.0, size=(2, 400))
    source, target = ({"a": values, "b": values + gap} for values, gap in ((a, 0.0), (b, 0.3)))
    paths = write(tmp_path, s=pd.DataFrame(source), t=pd.DataFrame(target))
    ran = lrqr("diagnose", paths["s"], paths["t"], "--format", "json")
    assert ran.json["verdict"] == "no overlap"
    assert "Without" not in ran.json["promise"]


def test_parts_with_many_other_columns_are_told_in_a_line(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    table(20).to_parquet(folder / "a.parquet")
    wide = pd.DataFrame(np.zeros((20, 300)), columns=[f"c{k:03d}" for k in range(300)])
    pd.concat([table(20), wide], axis=1).to_parquet(folder / "b.parquet")
    with pytest.raises(DataError, match=r"differ in 'c000', .*'c004', \.\.\. \(300 in all\)$") as caught:
        tables.read(folder, Roles(), need=())
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_faults_of_both_files_and_of_columns_are_one_error(tmp_path: Path, command: str) -> None:
    """Missing values in source and target, and an identifier among the features: told in one round."""
    source, target = table(60, seed=1), table(50, 0.5, seed=2)
    for frame, letter in ((source, "u"), (target, "v")):
        frame["who"] = [f"{letter}{k}" for k in range(len(frame))]
    source.loc[3, "a"] = np.nan
    target.loc[7, "b"] = np.nan
    paths = write(tmp_path, s=source, t=target.drop(columns="y"), test=table(40, 0.5, seed=3).assign(who="w"))
    files = [paths["s"], paths["t"], *([paths["test"]] if command == "compare" else [])]
    ran = lrqr(command, *files, *NUMBERS, "-o", tmp_path / "out")
    assert ran.code == 1
    for said in (
        "s.csv: column 'a': 1 of 60",
        "t.csv: column 'b': 1 of 50",
        "identifiers, not features: 'who'",
    ):
        assert said in ran.err
    assert ran.err.count("Error:") == 1
