"""Data as people have them: gaps, blanks, Unicode forms, categories nobody saw, numbers that name rows."""

from __future__ import annotations

import unicodedata
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from commands import NUMBERS, lrqr, predicted, table, write

from lrqr import ConformalRegressor
from lrqr.data.encoder import TableEncoder
from lrqr.errors import DataError, LrqrWarning

if TYPE_CHECKING:
    from pathlib import Path

SPLIT = ("--method", "split")


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
        assert (ran.code, "Warning" in ran.err) == (0, False)
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
    with pytest.warns(LrqrWarning, match="differ only in case or blanks"):
        model.fit(own, source["y"].to_numpy(), X_target=target[["a", "work"]])


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
