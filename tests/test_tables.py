"""The door for data: every format gives the same sample, and every fault is told in one message."""

from __future__ import annotations

import csv
import gzip
import io
import re
import warnings
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from commands import lrqr
from hypothesis import given, settings
from hypothesis import strategies as st

from lrqr.data import columns, tables
from lrqr.data.formats import READERS
from lrqr.data.roles import SINGLE, SPELLINGS, Roles
from lrqr.data.writing import WRITERS
from lrqr.errors import DataError, LrqrWarning, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EVERYTHING = ("features", "outcome", "prediction", "group", "id", "weight")
ROLES = Roles(outcome="y", prediction=("yhat",), group="g", id="key", weight="w")


def _frame(n: int = 100, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "x1": rng.normal(size=n),
            "color": rng.choice(["red", "blue"], n),
            "count": rng.integers(0, 50, n),
            "member": rng.uniform(size=n) < 0.5,
            "y": rng.normal(size=n),
            "yhat": rng.normal(size=n),
            "g": rng.choice(["a", "b"], n),
            "key": [f"{k:04d}" for k in range(n)],
            "w": rng.exponential(size=n),
        }
    )


def _read(
    path: Path, roles: Roles = ROLES, need: tuple[str, ...] = EVERYTHING, **options: Any
) -> tables.Sample:
    return tables.read(path, tables.resolve(roles, path), need=need, **options)


def _check(sample: tables.Sample, frame: pd.DataFrame) -> None:
    assert list(sample.features) == ["x1", "color", "count", "member"]
    numeric = ["x1", "count", "member"]
    assert (sample.features[numeric].dtypes == np.float64).all()
    np.testing.assert_array_equal(sample.features[numeric], frame[numeric].astype(float))
    assert sample.features["color"].tolist() == frame["color"].tolist()
    assert sample.outcome is not None
    assert sample.outcome.dtype == sample.prediction.dtype == np.float64
    np.testing.assert_array_equal(sample.outcome, frame["y"])
    np.testing.assert_array_equal(sample.prediction, frame[["yhat"]])
    np.testing.assert_array_equal(sample.weight, frame["w"])
    assert sample.group is not None
    assert sample.group.tolist() == frame["g"].tolist()
    assert sample.id.tolist() == frame["key"].tolist()
    assert sample.row.tolist() == list(range(len(frame)))
    assert len(sample) == len(frame)
    assert repr(sample).endswith("4 features, outcome, group, weight)")


@pytest.mark.parametrize("suffix", sorted(WRITERS))
def test_written_and_read_again_it_is_the_same(suffix: str, tmp_path: Path) -> None:
    """The law of formats, over the registry."""
    assert set(WRITERS) <= set(READERS)
    frame, path = _frame(), tmp_path / f"rows{suffix}"
    tables.write(path, frame)
    _check(_read(path), frame)
    tables.write(tmp_path / f"again{suffix}", frame)
    assert (tmp_path / f"again{suffix}").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("suffix", sorted(WRITERS))
@settings(max_examples=25, deadline=None)
@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_floats_survive_to_the_last_bit(suffix: str, values: list[float], tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("floats") / f"rows{suffix}"
    tables.write(path, pd.DataFrame({"x": values, "again": values[::-1]}))
    read = tables.read(path, Roles()).features
    np.testing.assert_array_equal(read, np.column_stack([values, values[::-1]]))


@pytest.mark.parametrize("spoiled", ["plain", "a,b", 'say "so"', "two\nlines", "", " edge "])
def test_csv_says_what_pandas_would(spoiled: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"a,name": ["x", spoiled, "y"], "there": [True, False, True], "x": [0.1, np.nan, np.inf]}
    )
    tables.write(tmp_path / "rows.csv", frame)
    lines = list(csv.reader(io.StringIO((tmp_path / "rows.csv").read_text(), newline="")))
    assert lines == list(csv.reader(io.StringIO(frame.to_csv(index=False), newline="")))


@pytest.mark.parametrize("suffix", sorted(WRITERS))
@pytest.mark.parametrize("size", [1, 30, 1000])
def test_batches_are_the_file_in_pieces(suffix: str, size: int, tmp_path: Path) -> None:
    frame, path = _frame(), tmp_path / f"rows{suffix}"
    tables.write(path, (frame[start : start + 40] for start in range(0, 100, 40)))
    roles = tables.resolve(Roles(outcome="y", prediction=("yhat",), group="g", id="key", weight="w"), path)
    pieces = list(tables.batches(path, roles, size=size, need=EVERYTHING))
    assert max(len(piece) for piece in pieces) <= size
    whole = tables.Sample(
        features=pd.concat([piece.features for piece in pieces], ignore_index=True),
        prediction=np.concatenate([piece.prediction for piece in pieces]),
        outcome=np.concatenate([piece.outcome for piece in pieces]),
        score=None,
        group=np.concatenate([piece.group for piece in pieces]),
        id=np.concatenate([piece.id for piece in pieces]),
        weight=np.concatenate([piece.weight for piece in pieces]),
        row=np.concatenate([piece.row for piece in pieces]),
    )
    _check(whole, frame)


def test_directory_of_parquet_parts(tmp_path: Path) -> None:
    frame, folder = _frame(), tmp_path / "rows"
    (folder / "sub").mkdir(parents=True)
    frame[:60].to_parquet(folder / "part-0.parquet")
    reordered = frame[60:][list(frame)[::-1]]
    reordered.index = np.random.default_rng(0).permutation(40)
    reordered.to_parquet(folder / "sub" / "part-1.parquet")
    (folder / "_metadata.parquet").write_text("not a part")
    _check(_read(folder), frame)
    assert [len(piece) for piece in tables.batches(folder, Roles(exclude="key"), size=50)] == [50, 10, 40]
    frame.drop(columns="x1").to_parquet(folder / "part-2.parquet")
    with pytest.raises(
        DataError, match=r"parts have different columns: part-2.parquet and part-0.parquet differ in 'x1'"
    ):
        _read(folder)
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match=r"a directory without \.parquet files"):
        _read(tmp_path / "none")


class _OfAnotherLibrary:
    """A table of which nothing is known but Arrow's PyCapsule interface."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._table = pa.Table.from_pandas(frame)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def test_frames_in_memory() -> None:
    frame = _frame()
    roles = Roles(outcome="y", prediction=("yhat",), group="g", id="key", weight="w")
    shuffled = frame.set_index(np.random.default_rng(0).permutation(100))
    for given_frame in (frame, shuffled, pl.from_pandas(frame), frame.convert_dtypes()):
        _check(tables.read(given_frame, roles, need=EVERYTHING), frame)
    _check(tables.read(_OfAnotherLibrary(frame), roles, need=EVERYTHING), frame)
    matrix = tables.read(np.eye(3), Roles())
    np.testing.assert_array_equal(matrix.features, np.eye(3))
    decimals = pd.DataFrame({"x": [Decimal("1.5"), Decimal(2)], "half": np.array([1, 2], dtype="float16")})
    np.testing.assert_array_equal(tables.read(decimals, Roles()).features, [[1.5, 1.0], [2.0, 2.0]])
    with pytest.raises(DataError, match="occur twice: 'y'"):
        tables.read(pd.concat([frame, frame[["y"]]], axis=1), roles)


def test_features_are_what_both_files_have(tmp_path: Path) -> None:
    """Order is irrelevant, extra columns are ignored, what has a role is no feature."""
    frame = _frame()
    source, target = tmp_path / "source.csv", tmp_path / "target.parquet"
    tables.write(source, frame.assign(only_here=1))
    tables.write(target, frame[["count", "w", "color", "x1", "g"]].assign(extra="x"))
    assert tables.resolve(ROLES, source, target).features == ("x1", "color", "count")
    assert tables.resolve(Roles(outcome="y", exclude=("c*",)), source, target).features == ("x1", "g", "w")
    chosen = tables.resolve(Roles(outcome="y", features=("c*", "g"), group="g"), source, target)
    assert chosen.features == ("color", "count", "g")
    sample = tables.read(target, tables.resolve(ROLES, source, target))
    assert list(sample.features) == ["x1", "color", "count"]
    np.testing.assert_array_equal(sample.features["x1"], frame["x1"])
    assert sample.outcome is None
    assert sample.prediction.shape == (100, 0)


def test_a_role_that_is_not_asked_for_is_neither_read_nor_a_feature(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    tables.write(path, _frame().assign(y="unknown"))
    sample = tables.read(path, ROLES, need=("features", "prediction"), optional=())
    assert list(sample.features) == ["x1", "color", "count", "member"]
    assert sample.outcome is None
    assert sample.group is None
    assert sample.id.tolist() == list(range(100))


@pytest.mark.parametrize("noun", SINGLE)
def test_every_role_of_one_column_has_a_flag_and_a_place_in_the_sample(noun: str) -> None:
    """The law of roles, over their declaration."""
    name = SINGLE[noun]
    frame = pd.DataFrame({"x": [0.5, 1.5, 2.5], "it": [3, 1, 2]})
    options = dict.fromkeys(SPELLINGS)
    roles = Roles.of_options({**options, name: "it", "no role": 1})
    assert getattr(roles, name) == "it"
    sample = tables.read(frame, roles, need=("features", noun))
    assert list(sample.features) == ["x"]
    assert [str(int(value)) for value in getattr(sample, noun)] == ["3", "1", "2"]
    for wanted, error in ((Roles(), UsageError), (replace(roles, **{name: "itt"}), DataError)):
        with pytest.raises(error) as caught:
            tables.read(frame, wanted, need=(noun,))
        assert (SPELLINGS[name].flag if error is UsageError else f"{noun} column 'itt'") in str(caught.value)


@pytest.mark.parametrize("name", [name for name, spelling in SPELLINGS.items() if spelling.multiple])
def test_roles_of_several_columns_come_from_options_as_they_are(name: str) -> None:
    roles = Roles.of_options(dict.fromkeys(SPELLINGS) | {name: ["a", "b"]})
    probability = name == "probability"
    assert getattr(roles, "prediction" if probability else name) == ("a", "b")
    assert roles.probability is probability


def test_missing_columns_are_named_all_at_once(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    tables.write(path, _frame())
    roles = Roles(outcome="Y", prediction=("y_hat",), features=("x1", "colour"))
    with pytest.raises(DataError) as caught:
        tables.read(path, roles, need=("features", "outcome", "prediction"))
    assert str(caught.value) == (
        f"{path}: outcome column 'Y' does not exist, did you mean 'y'?; "
        "prediction column 'y_hat' does not exist, did you mean 'yhat'?; "
        "feature column 'colour' does not exist, did you mean 'color'?; the columns are: "
        "x1, color, count, member, y, yhat, g, key, w"
    )
    with pytest.raises(DataError, match="excluded column 'cuont' does not exist, did you mean 'count'"):
        tables.resolve(Roles(exclude=("cuont",)), path)
    with pytest.raises(UsageError, match="'y' cannot be a feature"):
        tables.resolve(Roles(outcome="y", features=("y", "x1")), path)
    with pytest.raises(UsageError, match="which column is the outcome"):
        tables.read(path, Roles(), need=("outcome",))
    with pytest.raises(UsageError, match="which columns are predictions"):
        tables.read(path, Roles(), need=("prediction",))


def _spoiled() -> pd.DataFrame:
    frame = _frame()
    frame.loc[[3, 7], "y"] = np.nan
    frame.loc[4, "x1"] = np.inf
    frame.loc[5, "color"] = None
    frame.loc[6, "yhat"] = np.nan
    return frame


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("batched", [False, True])
def test_missing_values_stop_with_everything_in_one_message(
    suffix: str, batched: bool, tmp_path: Path
) -> None:
    """In batches of 5 too, where the first fault is in the first batch."""
    path = tmp_path / f"rows{suffix}"
    tables.write(path, _spoiled())
    roles = tables.resolve(ROLES, path)
    read = partial(tables.batches, size=5) if batched else tables.read
    with pytest.raises(DataError) as caught:
        list(read(path, roles, need=EVERYTHING))
    lines = str(caught.value).splitlines()
    line = "; row 1 is line 2 of the file" if suffix == ".csv" else ""
    assert lines[0] == f"{path}: 4 problems (rows are data rows counted from 1{line}):"
    assert set(lines[1:5]) == {
        "  column 'x1': 1 of 100 values are infinite (row 5)",
        "  column 'color': 1 of 100 values are missing (row 6)",
        "  column 'y': 2 of 100 values are missing (rows 4, 8)",
        "  column 'yhat': 1 of 100 values are missing (row 7)",
    }
    assert "--on-missing drop" in lines[5]


def test_missing_values_in_unused_columns_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    tables.write(path, _spoiled())
    sample = tables.read(path, Roles(outcome="y", features=("count",)))
    assert len(sample) == 100


def test_drop_leaves_rows_out_and_counts(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    tables.write(path, _spoiled())
    with pytest.warns(LrqrWarning, match=r"left out 5 of 100 rows with missing values: .*'y': 2 of 100"):
        sample = _read(path, on_missing="drop")
    assert sample.dropped == 5
    assert set(range(100)) - set(sample.row) == {3, 4, 5, 6, 7}
    assert sample.id[3] == "0008"
    assert len(sample.features) == len(sample.prediction) == len(sample) == 95
    roles = tables.resolve(ROLES, path)
    with pytest.warns(LrqrWarning, match="left out 5 of 100"):
        pieces = list(tables.batches(path, roles, need=EVERYTHING, size=4, on_missing="drop"))
    assert np.concatenate([piece.row for piece in pieces]).tolist() == sample.row.tolist()


def test_impute_leaves_features_to_the_encoder_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    tables.write(path, _spoiled())
    with (
        pytest.warns(LrqrWarning, match="left out 3 of 100"),
        pytest.warns(LrqrWarning, match="filled in 2 missing feature values"),
    ):
        sample = _read(path, on_missing="impute")
    assert np.isnan(sample.features["x1"]).tolist() == (sample.row == 4).tolist()
    assert sample.features["color"].isna().tolist() == (sample.row == 5).tolist()
    assert np.isfinite(sample.prediction).all()


def test_where_every_row_must_get_an_answer_nothing_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    tables.write(path, _spoiled())
    roles = tables.resolve(ROLES, path)
    with pytest.raises(DataError, match=r"'yhat': 1 of 100 values are missing \(row 7\).*\n?every row must"):
        tables.read(path, roles, need=("features", "prediction"), on_missing="impute", keep_rows=True)
    with pytest.raises(DataError, match="3 problems"):
        tables.read(path, roles, need=("features", "prediction"), on_missing="drop", keep_rows=True)
    with pytest.warns(LrqrWarning, match="filled in 2 missing feature values: 'x1' 1, 'color' 1"):
        filled = tables.read(path, roles, on_missing="impute", keep_rows=True)
    assert len(filled) == 100


@pytest.mark.parametrize("missing", [5, 12])
@pytest.mark.parametrize("dtype", ["float64", "Float64"])
def test_missing_outcomes_are_never_large_scores(missing: int, dtype: str) -> None:
    """5 and 12 of 100, as NaN and as <NA>."""
    frame = _frame()
    frame["y"] = frame["y"].astype(dtype)
    frame.loc[: missing - 1, "y"] = pd.NA if dtype == "Float64" else np.nan
    with pytest.raises(DataError, match=rf"'y': {missing} of 100 values are missing \(rows 1, 2, 3, 4, 5"):
        tables.read(frame, ROLES, need=EVERYTHING)
    with pytest.warns(LrqrWarning, match=f"left out {missing} of 100"):
        sample = tables.read(frame, ROLES, need=EVERYTHING, on_missing="drop")
    assert len(sample) == 100 - missing


def test_nothing_left_is_an_error() -> None:
    frame = _frame().assign(y=np.nan)
    with pytest.raises(DataError, match="every row lacks a value"):
        tables.read(frame, ROLES, need=EVERYTHING, on_missing="drop")
    with pytest.raises(UsageError, match="did you mean 'drop'"):
        tables.read(frame, ROLES, on_missing="dorp")


@pytest.mark.parametrize("empty", ["", " ", "NA", "nan", "NULL", "None", "<NA>", "#N/A"])
def test_empty_cells_of_csv(empty: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"x,c\n1,u\n{empty},v\n3,{empty}\n")
    with pytest.raises(DataError) as caught:
        tables.read(path, Roles())
    assert "column 'x': 1 of 3 values are missing (row 2)" in str(caught.value)
    assert "column 'c': 1 of 3 values are missing (row 3)" in str(caught.value)


def test_text_among_numbers_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("x,y,z\n" + "1,2,3\n" * 5 + "abc,2,3\n1,high,3\n")
    with pytest.raises(DataError) as caught:
        tables.read(path, Roles(outcome="y"), need=("features", "outcome"))
    message = str(caught.value)
    assert "column 'x': 1 of 7 values are texts, not numbers: 'abc'; pass --categorical x" in message
    assert (
        "column 'y': 1 of 7 values are texts, not numbers: 'high'; the outcome must be numeric (row 7)"
        in message
    )
    sample = tables.read(path, Roles(features=("x",), categorical=("x",)))
    assert sample.features["x"].tolist() == ["1"] * 5 + ["abc", "1"]


def test_booleans_written_as_text_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("x,z\nTrue, 1\nfalse,2 \n")
    np.testing.assert_array_equal(tables.read(path, Roles()).features, [[1.0, 1.0], [0.0, 2.0]])


def test_identifiers_keep_their_zeros_and_their_type(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("x,id\n1,007\n2,1.0\n")
    assert tables.read(path, Roles(id="id")).id.tolist() == ["007", "1.0"]
    sample = tables.read(pd.DataFrame({"x": [1.0], "id": [7]}), Roles(id="id"))
    assert sample.id.dtype.kind == "i"


CLASSES = Roles(outcome="label", prediction=("p_*",), probability=True)


def _classified() -> pd.DataFrame:
    probability = np.random.default_rng(0).dirichlet(np.ones(3), size=20)
    frame = pd.DataFrame(probability, columns=["p_b", "p_a", "p_c"])
    return frame.assign(label=["a", "b"] * 10, x=1.0)


def test_labels_become_indices_by_name(tmp_path: Path) -> None:
    """Columns in the order b, a, c."""
    path = tmp_path / "rows.csv"
    tables.write(path, _classified())
    roles = tables.resolve(CLASSES, path)
    assert roles.classes == ("b", "a", "c")
    assert roles.prediction == ("p_b", "p_a", "p_c")
    sample = tables.read(path, roles, need=("features", "outcome", "prediction"))
    assert sample.outcome is not None
    assert sample.outcome.tolist() == [1, 0] * 10
    assert sample.outcome.dtype == np.int64
    assert list(sample.features) == ["x"]
    with pytest.warns(LrqrWarning, match="1 of 3 classes have no labeled row: 'c'"):
        tables.warn_absent_classes(sample)
    moved = _classified()[["label", "p_c", "x", "p_a", "p_b"]]
    again = tables.read(moved, roles, need=("features", "outcome", "prediction"))
    np.testing.assert_array_equal(again.prediction, sample.prediction)


def test_numeric_labels_match_their_columns() -> None:
    frame = pd.DataFrame({"p_0": [0.5, 0.2], "p_1": [0.5, 0.8], "label": [1.0, 0.0]})
    roles = Roles(outcome="label", prediction=("p_*",), probability=True)
    sample = tables.read(frame, roles, need=("outcome", "prediction"))
    assert sample.outcome is not None
    assert sample.outcome.tolist() == [1, 0]


def test_a_label_that_is_no_class_is_named() -> None:
    frame = _classified()
    frame["label"] = frame["label"].replace("a", "apple").where(frame.index != 3, "zzz")
    frame.columns = ["p_banana", "p_apple", "p_cherry", "label", "x"]
    frame.loc[[1, 5], "label"] = ["aple", "banana"]
    frame.loc[frame["label"] == "b", "label"] = "banana"
    with pytest.raises(DataError) as caught:
        tables.read(frame, CLASSES, need=("outcome", "prediction"))
    assert str(caught.value) == (
        "data frame: column 'label': 2 of 20 labels are not among the classes: 'aple', "
        "did you mean 'apple'?; classes: banana, apple, cherry (rows 2, 4); rows are data rows counted from 1"
    )


def test_probabilities_are_checked() -> None:
    frame = _classified()
    frame.loc[2, ["p_a", "p_b", "p_c"]] = [0.5, 0.1, 0.1]
    frame.loc[4, ["p_a", "p_b", "p_c"]] = [-0.1, 0.5, 0.6]
    frame.loc[6, ["p_a", "p_b", "p_c"]] = [0.5, 0.4995, 0.0]
    with pytest.raises(DataError) as caught:
        tables.read(frame, CLASSES, need=("outcome", "prediction"))
    assert "1 of 20 rows have negative probabilities; these are no probabilities" in str(caught.value)
    assert "1 of 20 rows do not sum to 1: 0.7 (row 3)" in str(caught.value)


def test_weights_must_be_finite_and_not_negative() -> None:
    """-1, NaN and inf in one error."""
    frame = _frame()
    frame.loc[[1, 2, 3], "w"] = [-1.0, np.nan, np.inf]
    with pytest.raises(DataError) as caught:
        tables.read(frame, ROLES, need=EVERYTHING)
    message = str(caught.value)
    assert "column 'w': 1 of 100 values are negative: -1" in message
    assert "column 'w': 1 of 100 values are missing (row 3)" in message
    assert "column 'w': 1 of 100 values are infinite (row 4)" in message


def test_npz_roles_are_the_names_of_its_arrays(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, logits = rng.normal(size=(30, 5)).astype("float16"), rng.normal(size=(30, 3)) * 500
    labels = rng.integers(0, 3, 30)
    path = tmp_path / "rows.npz"
    np.savez(path, features=X, logits=logits, outcome=labels, group=np.array(["u", "v"] * 15), extra=labels)
    roles = tables.resolve(Roles(), path)
    assert roles.features == ("f0", "f1", "f2", "f3", "f4")
    assert roles.classes == ("0", "1", "2")
    sample = tables.read(path, roles, need=("features", "outcome", "prediction", "group"))
    np.testing.assert_array_equal(sample.features, X.astype(float))
    np.testing.assert_array_equal(sample.outcome, labels)
    np.testing.assert_allclose(sample.prediction.sum(axis=1), 1.0)
    np.testing.assert_array_equal(sample.prediction.argmax(axis=1), logits.argmax(axis=1))
    np.savez(tmp_path / "target.npz", features=X[:7], feature_names=["f0", "f1", "f2", "f3", "other"])
    both = tables.resolve(Roles(), path, tmp_path / "target.npz")
    assert both.features == ("f0", "f1", "f2", "f3")
    assert tables.read(tmp_path / "target.npz", both).features.shape == (7, 4)


def test_npz_of_a_regression_and_of_scores(tmp_path: Path) -> None:
    path = tmp_path / "rows.npz"
    np.savez(
        path, features=np.arange(4.0), outcome=np.ones(4), prediction=np.ones((4, 2)), score=np.arange(4)
    )
    roles = tables.resolve(Roles(), path)
    sample = tables.read(path, roles, need=("features", "outcome", "prediction", "score"))
    assert sample.prediction.shape == (4, 2)
    assert sample.features.shape == (4, 1)
    np.testing.assert_array_equal(sample.score, [0.0, 1.0, 2.0, 3.0])
    named = tables.resolve(Roles(outcome="score"), path)
    assert named.outcome == "score"


def test_broken_npz_files(tmp_path: Path) -> None:
    path = tmp_path / "rows.npz"
    cases: list[tuple[dict[str, Any], str]] = [
        (
            {"features": np.array([1, "x", None], dtype=object)},
            "arrays of Python objects, which are never loaded",
        ),
        (
            {"features": np.ones((3, 2)), "outcome": np.ones(2)},
            "same number of rows .*: features 3, outcome 2",
        ),
        ({"features": np.ones((3, 2, 2))}, r"one or two dimensions: features \(3, 2, 2\)"),
        ({"logits": np.ones((3, 2)), "probabilities": np.ones((3, 2))}, "both probabilities and logits"),
        ({"prediction": np.ones(3), "probabilities": np.ones((3, 2))}, "both prediction and probabilities"),
        ({"features": np.ones((3, 2)), "feature_names": ["a"]}, "feature_names has 1 names for 2 columns"),
        ({"features": np.ones((3, 2)), "feature_names": ["a", "a"]}, "occur twice: 'a'"),
        ({}, "no arrays"),
    ]
    for arrays, pattern in cases:
        np.savez(path, **arrays)
        with pytest.raises(DataError, match=pattern):
            tables.read(path, Roles())
    np.savez(path, features=np.ones((3, 2)))
    whole = path.read_bytes()
    for content in (whole[:100], whole[:-30], b"", b"\x93NUMPY"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"NPZ|damaged"):
            tables.read(path, Roles())


BROKEN: list[tuple[str, bytes, str]] = [
    ("rows.csv", b"", "the file is empty"),
    ("rows.csv", b"\n\n", "the file is empty"),
    ("rows.csv", b"x,y\n", "a header but no row of data"),
    ("rows.csv", b"x,y", "a header but no row of data"),
    (
        "rows.csv",
        b"x,y\n1,2\n3\n4,5,6\n",
        "2 rows do not have the 2 fields of the header: row 2 has 1, row 3 has 3",
    ),
    ("rows.csv", b"x,x,y\n1,2,3\n", "column names occur twice: 'x'"),
    ("rows.csv", b"x,y\n1,caf\xe9\n", "not UTF-8"),
    ("rows.csv", "x,y\n1,2\n".encode("utf-16"), "UTF-8|utf-8"),
    ("rows.csv.gz", b"x,y\n1,2\n", "cannot be read as .csv.gz"),
    ("rows.csv.gz", gzip.compress(b"x,y\n" + b"1,2\n" * 9999, mtime=0)[:-20], "damaged|cannot be read"),
    ("rows.parquet", b"x,y\n1,2\n", "not a Parquet file"),
    ("rows.parquet", b"", "not a Parquet file"),
    ("rows.npz", b"x,y\n1,2\n", "not an NPZ file"),
    ("rows.odt", b"PK", "unknown kind of file '.odt'"),
]


@pytest.mark.parametrize(("name", "content", "pattern"), BROKEN)
def test_broken_files_give_one_clear_error(name: str, content: bytes, pattern: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    for attempt in (lambda: tables.read(path, Roles()), lambda: list(tables.batches(path, Roles()))):
        with pytest.raises(DataError, match=pattern) as caught:
            attempt()
        assert str(caught.value).startswith(str(path))


def test_truncated_parquet(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    tables.write(path, _frame())
    whole = bytearray(path.read_bytes())
    whole[4:200] = bytes(196)
    path.write_bytes(whole)
    with pytest.raises(DataError, match="damaged"):
        tables.read(path, Roles(features=("x1",)))
    with pytest.raises(DataError, match="no such file, did you mean 'rows\\.parquet'"):
        tables.read(tmp_path / "row.parquet", Roles())


def test_csv_as_people_write_it(tmp_path: Path) -> None:
    """A byte order mark, CRLF, quotes with commas and line breaks, blank lines, an unnamed index column."""
    path = tmp_path / "rows.csv"
    path.write_bytes(
        b'\xef\xbb\xbf\r\n,x,"the, label"\r\n0,1.5,"a, b"\r\n\r\n1,-2e3,"c\r\nd"\r\n'
        b'2,+3,plain "quoted"\r\n\r\n'
    )
    sample = tables.read(path, Roles())
    assert list(sample.features) == ["x", "the, label"]
    np.testing.assert_array_equal(sample.features["x"], [1.5, -2000.0, 3.0])
    assert sample.features["the, label"].tolist() == ["a, b", "c\r\nd", 'plain "quoted"']


def test_column_types_do_not_depend_on_the_first_block(tmp_path: Path) -> None:
    """Whole numbers for long, then a fraction, then a text in a column of labels."""
    path = tmp_path / "rows.csv"
    n = 300_000
    frame = pd.DataFrame({"x": np.arange(n), "c": ["7"] * (n - 1) + ["other"], "pad": ["a" * 40] * n})
    frame["x"] = [*frame["x"].astype(str)[:-1], "0.5"]
    tables.write(path, frame)
    assert path.stat().st_size > (1 << 23)
    sample = tables.read(path, Roles(categorical=("c", "pad")))
    assert sample.features["x"].iloc[-1] == 0.5
    assert sample.features["c"].iloc[-1] == "other"
    pieces = list(tables.batches(path, Roles(categorical=("c", "pad"))))
    assert sum(len(piece) for piece in pieces) == n
    assert {piece.features["x"].dtype for piece in pieces} == {np.dtype(float)}


def test_schema_says_what_would_be_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    frame = _spoiled().assign(when=pd.Timestamp("2020-01-01"), odd=["1", "x", *["2"] * 98])
    tables.write(path, frame)
    found = {column.name: column for column in tables.schema(path)}
    assert list(found) == list(frame)
    kinds = {name: column.kind for name, column in found.items()}
    assert kinds["x1"] == kinds["member"] == kinds["count"] == "numeric"
    assert kinds["color"] == "categorical"
    assert kinds["odd"] == "numeric with texts"
    assert kinds["when"].startswith("timestamp")
    assert (found["y"].missing, found["x1"].infinite, found["color"].missing) == (2, 1, 1)
    assert found["y"].rows == 100
    assert set(found["color"].examples) == {"red", "blue"}


def _rows_that_fail() -> Iterator[pd.DataFrame]:
    yield _frame(3)
    raise DataError("a later batch is bad")


def test_writing_is_all_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    tables.write(path, _frame())
    before = path.read_bytes()
    with pytest.raises(UsageError, match="exists already; pass --force"):
        tables.write(path, _frame(3))
    with pytest.raises(DataError):
        tables.write(path, _rows_that_fail(), force=True)
    assert path.read_bytes() == before
    tables.write(path, _frame(3), force=True)
    assert len(path.read_text().splitlines()) == 4
    assert [entry.name for entry in tmp_path.iterdir()] == ["rows.csv"]
    with pytest.raises(UsageError, match="cannot write files of kind '\\.xlsx'"):
        tables.write(tmp_path / "rows.xlsx", _frame())
    with pytest.raises(UsageError, match="does not exist; make it first"):
        tables.write(tmp_path / "no" / "rows.csv", _frame())
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(UsageError, match="it is a directory"):
        tables.write(tmp_path / "d.csv", _frame(), force=True)


def test_what_a_link_points_at_is_written_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    file, link = tmp_path / "there" / "rows.csv", tmp_path / "link.csv"
    link.symlink_to("there/rows.csv")
    tables.write(link, _frame())  # to nothing as yet
    assert len(file.read_text().splitlines()) == 101
    with pytest.raises(UsageError, match="exists already; pass --force"):
        tables.write(link, _frame(3))
    tables.write(link, _frame(3), force=True)
    assert link.is_symlink()
    assert len(file.read_text().splitlines()) == 4
    assert [entry.name for entry in file.parent.iterdir()] == ["rows.csv"]
    lost = tmp_path / "lost.csv"
    lost.symlink_to("nowhere/rows.csv")
    with pytest.raises(UsageError, match=r"lost\.csv: the directory .*nowhere does not exist; make it first"):
        tables.write(lost, _frame())


def test_infinite_bounds_are_written_and_read_as_text_of_numbers(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": [0, 1], "lower": [-np.inf, 1.0], "upper": [np.inf, 2.0]})
    path = tmp_path / "out.csv"
    tables.write(path, frame)
    pd.testing.assert_frame_equal(pd.read_csv(path), frame)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_reading_in_batches_takes_memory_of_a_batch(suffix: str, tmp_path: Path) -> None:
    """Python and Arrow allocations over five times the rows: the peak must not follow."""
    import tracemalloc

    peaks = []
    for n in (1_000_000, 5_000_000):
        path = tmp_path / f"rows{n}{suffix}"
        rng = np.random.default_rng(0)
        drawn = (rng.normal(size=(100_000, 4)).round(3) for _ in range(n // 100_000))
        tables.write(path, (pd.DataFrame(values, columns=list("abcd")) for values in drawn))
        tracemalloc.start()
        peak, rows = 0, 0
        for piece in tables.batches(path, Roles(), size=20_000):
            rows += len(piece)
            peak = max(peak, pa.total_allocated_bytes())
        peaks.append(peak + tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert rows == n
    assert peaks[1] < 1.5 * peaks[0]


def test_no_warning_where_nothing_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    tables.write(path, _frame())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for policy in ("error", "drop", "impute"):
            assert _read(path, on_missing=policy).dropped == 0


def test_one_name_may_stand_for_several() -> None:
    assert Roles(prediction="yhat", exclude=["a", "b"]) == Roles(prediction=("yhat",), exclude=("a", "b"))  # type: ignore[arg-type]


def test_parquet_parts_of_different_widths_are_one_column(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"x": [0.5, 1.5], "k": [1, 2], "b": [True, False], "s": ["u", None], "z": [None, None]}
    )
    frame.astype({"x": "float32", "k": "int8"}).to_parquet(tmp_path / "a.parquet")
    wide = frame.assign(z=[0.25, 4.0]).astype({"k": "float64", "b": "int64", "s": "category"})
    wide.to_parquet(tmp_path / "b.parquet")
    wanted = Roles(features=("x", "k", "b", "z", "s"))
    with pytest.warns(LrqrWarning, match="filled in 4 missing feature values: 'z' 2, 's' 2"):
        found = tables.read(tmp_path, wanted, on_missing="impute").features
    assert found["x"].tolist() == [0.5, 1.5] * 2
    assert found["k"].tolist() == [1.0, 2.0] * 2
    assert found["b"].tolist() == [1.0, 0.0] * 2
    assert found["z"].tolist()[2:] == [0.25, 4.0]
    assert found["s"].tolist()[0::2] == ["u", "u"]


def test_parquet_parts_that_contradict_each_other_are_named(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [0.5, 1.5], "label": ["cat", "dog"]})
    frame.to_parquet(tmp_path / "a.parquet")
    frame.assign(label=[0, 1]).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"^b\.parquet: 'label' is int64, string in a\.parquet"):
        tables.read(tmp_path, Roles(group="label", features=("x",)), need=("features", "group"))
    assert len(tables.read(tmp_path, Roles(features=("x",)))) == 4  # a column that is not used may be odd


def test_a_pattern_that_matches_nothing_names_its_flag(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    tables.write(path, _frame())
    with pytest.raises(DataError, match=r"no column matches --probability 'p_\*'; the columns are: x1"):
        tables.resolve(Roles(outcome="y", prediction="p_*", probability=True), path)
    with pytest.raises(DataError, match=r"no column matches --exclude 'q\*'"):
        tables.resolve(Roles(exclude="q*"), path)


def test_many_missing_features_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    tables.write(path, pd.DataFrame(np.zeros((3, 100)), columns=[f"f{k}" for k in range(100)]))
    wanted = Roles(features=tuple(f"f{k}" for k in range(256)))
    message = r"has 100 of the 256 features needed; missing: f100, f101, f102, \.\.\. \(156\); the columns"
    with pytest.raises(DataError, match=message):
        tables.read(path, wanted)


def test_imputed_cells_are_counted_and_rows_without_a_group_stay() -> None:
    frame = _frame()
    frame.loc[[3, 7], "x1"] = np.nan
    frame.loc[4, "color"] = None
    frame.loc[5, "g"] = None
    wanted = Roles(group="g", features=("x1", "color", "count"))
    with pytest.warns(LrqrWarning, match="filled in 3 missing feature values: 'x1' 2, 'color' 1$"):
        sample = tables.read(frame, wanted, need=("features", "group"), on_missing="impute")
    assert len(sample) == 100
    assert sample.group is not None
    assert [row for row, name in enumerate(sample.group) if name is None] == [5]


@pytest.mark.parametrize(
    ("asked", "file", "message"),
    [
        ({"features": ("a", "b")}, "target", "feature column 'b' does not exist; the columns are: a, c1$"),
        (
            {"features": ("a", "c1")},
            "source",
            "feature column 'c1' does not exist.*: a, b, c2$",
        ),
        ({"features": ("q", "b")}, "source", "feature column 'q' does not exist"),
        ({"features": "b*"}, "target", r"no column matches --features 'b\*'; the columns are: a, c1$"),
        ({"features": ("a", "c*")}, "source", r"no column matches --features 'c\*' in all files"),
        ({"categorical": "b"}, "target", "categorical column 'b' does not exist"),
        (
            {"features": "a", "categorical": "c2"},
            "target",
            "categorical column 'c2' does",
        ),
        ({"features": "a", "exclude": "d"}, "source", "excluded column 'd' does not exist"),
    ],
)
def test_the_file_that_lacks_a_column_is_the_one_that_is_named(
    tmp_path: Path, asked: dict[str, Any], file: str, message: str
) -> None:
    paths = {name: tmp_path / f"{name}.csv" for name in ("source", "target")}
    tables.write(paths["source"], pd.DataFrame({"a": [1.0], "b": [1.0], "c2": [1.0]}))
    tables.write(paths["target"], pd.DataFrame({"a": [1.0], "c1": [1.0]}))
    with pytest.raises(DataError, match=f"^{re.escape(str(paths[file]))}: {message}"):
        tables.resolve(Roles(**asked), *paths.values())


def test_a_column_of_one_file_may_be_excluded_and_a_category_must_be_a_feature(tmp_path: Path) -> None:
    source, target = tmp_path / "source.csv", tmp_path / "target.csv"
    tables.write(source, pd.DataFrame({"a": [1.0], "b": [1.0]}))
    tables.write(target, pd.DataFrame({"a": [1.0], "b": [1.0], "more": [1.0]}))
    assert tables.resolve(Roles(exclude="more"), source, target).features == ("a", "b")
    with pytest.raises(DataError, match="categorical, but not among the features: 'b'"):
        tables.resolve(Roles(features="a", categorical="b"), source, target)


NUMBER_TEXTS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**18), 10**18).map(str),
    st.sampled_from([" 1.5", "2 ", "", "nan", "inf", "-999", "True", "0x10", "1e400", "+3", "x", "1_0"]),
)


@given(st.lists(NUMBER_TEXTS, min_size=1, max_size=8), st.sampled_from([(), ("-999",), ("nan", "x")]))
@settings(max_examples=60)
def test_a_text_is_the_same_number_whatever_stands_beside_it(
    texts: list[str], words: tuple[str, ...]
) -> None:
    def read(*cells: str) -> tuple[list[str], list[bool], int]:
        found = columns.numbers(pa.chunked_array([pa.array(cells, pa.string())]), "x", words)
        return list(map(repr, found.values.tolist())), found.text.tolist(), found.present  # noqa: PD011 - an array

    alone = [read(text) for text in texts]
    values, text, present = read(*texts)
    assert values == [one[0][0] for one in alone]
    assert text == [one[1][0] for one in alone]
    assert present == sum(one[2] for one in alone)
    for cell, value in zip(texts, values, strict=True):
        if cell.strip("-").replace(".", "").isdigit() and cell not in words:
            assert float(value) == float(cell)


def test_a_sample_of_rows_is_fair_and_does_not_depend_on_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pd.DataFrame({"x": np.arange(700.0), "name": [f"n{k}" for k in range(700)]})
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=64)
    frame.to_csv(tmp_path / "t.csv", index=False)
    roles = Roles(features=("x",), id="name")

    def drawn(name: str, seed: int, most: int = 60) -> list[int]:
        with pytest.warns(LrqrWarning, match=f"{most} of its 700 rows, drawn at random"):
            sample = tables.read(tmp_path / name, roles, most=most, seed=seed)
        rows: list[int] = sample.row.tolist()
        assert sample.features["x"].tolist() == rows == sorted(set(rows))
        assert sample.id.tolist() == [f"n{row}" for row in rows]
        return rows

    once = drawn("t.parquet", 3)
    assert drawn("t.csv", 3) == once
    assert drawn("t.parquet", 4) != once
    for piece in (1, 7, 1000):
        monkeypatch.setattr(tables, "_PIECE", piece)
        assert drawn("t.parquet", 3) == once
    monkeypatch.setattr(tables, "_PIECE", 100)
    early = sum(row < 350 for seed in range(100) for row in drawn("t.parquet", seed))
    assert abs(early - 3000) < 4 * 40  # standard deviation of 6,000 draws without replacement: 37
    assert len(tables.read(tmp_path / "t.csv", roles, most=700)) == 700


def test_a_fault_in_a_sample_is_named_by_its_row_in_the_file(tmp_path: Path) -> None:
    values = np.arange(500.0)
    values[100:] = np.nan
    pd.DataFrame({"x": values}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError) as caught:
        tables.read(tmp_path / "t.parquet", Roles(features=("x",)), most=20)
    named = [int(row) for row in re.findall(r"\d+", str(caught.value).partition("rows ")[2])]
    assert all(row > 100 for row in named[:5] if row != 1)


def test_fit_takes_a_sample_of_a_large_target_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "UNLABELED_ROWS", 80)
    rng = np.random.default_rng(0)
    source = pd.DataFrame({"a": rng.normal(size=120)}).assign(yhat=0.0, y=rng.normal(size=120))
    source.to_csv(tmp_path / "s.csv", index=False)
    pd.DataFrame({"a": rng.normal(size=300), "yhat": 0.0}).to_csv(tmp_path / "t.csv", index=False)
    files = tmp_path / "s.csv", tmp_path / "t.csv", tmp_path / "m"
    options = ("--outcome", "y", "--prediction", "yhat", "--method", "split", "-o")
    ran = lrqr("fit", *files[:2], *options, files[2])
    assert ran.code == 0, ran.err
    assert "t.csv: 80 of its 300 rows, drawn at random, stand for all of them" in ran.err
    assert "for 80 target rows" in ran.err
    ran = lrqr("diagnose", *files[:2], "--exclude", "y,yhat", "--format", "json")
    assert (ran.json["n_source"], ran.json["n_target"]) == (80, 80)
