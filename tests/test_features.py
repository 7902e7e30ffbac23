"""The encoder: by name, never by position; what it learned survives as JSON."""

from __future__ import annotations

import json
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrqr.data.encoder import TableEncoder, warn_unseen
from lrqr.errors import DataError, LrqrWarning


def _frame(n: int = 60, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, n),
            "color": rng.choice(["red", "blue"], n),
            "member": rng.uniform(size=n) < 0.5,
            "height": rng.normal(size=n).astype("float32"),
        }
    )


def test_numbers_pass_and_labels_become_indicators() -> None:
    frame = _frame()
    encoder = TableEncoder().fit(frame, frame)
    assert encoder.names_ == ("age", "color=blue", "color=red", "member", "height")
    assert encoder.categorical_ == ("color",)
    matrix = encoder.transform(frame)
    assert matrix.dtype == np.float64
    assert matrix.flags.c_contiguous
    expected = [
        frame["age"],
        frame["color"] == "blue",
        frame["color"] == "red",
        frame["member"],
        frame["height"],
    ]
    np.testing.assert_array_equal(matrix, np.column_stack(expected).astype(float))


def test_columns_are_found_by_name() -> None:
    """Another order, an extra column, a shuffled index; the rows stay where they are."""
    frame = _frame()
    encoder = TableEncoder().fit(frame, frame)
    moved = frame[["height", "member", "color", "age"]].assign(extra="x")
    moved.index = np.random.default_rng(1).permutation(len(frame))
    np.testing.assert_array_equal(encoder.transform(moved), encoder.transform(frame))


def test_missing_columns_are_named_all_at_once() -> None:
    frame = _frame()
    encoder = TableEncoder().fit(frame)
    renamed = frame.rename(columns={"age": "Age"}).drop(columns="height")
    with pytest.raises(
        DataError, match=r"2 feature columns are missing: 'age', did you mean 'Age'\?, 'height'"
    ):
        encoder.transform(renamed)
    with pytest.raises(DataError, match="1 target columns are missing: 'height'"):
        TableEncoder().fit(frame, frame.drop(columns="height"))
    with pytest.raises(DataError, match="1 categorical columns are missing: 'colour', did you mean 'color'"):
        TableEncoder().fit(frame, categorical=("colour",))
    with pytest.raises(DataError, match="occur twice: 'age'"):
        TableEncoder().fit(pd.concat([frame, frame[["age"]]], axis=1))


def test_categories_come_from_source_and_target() -> None:
    source, target = _frame(), _frame(seed=1)
    target.loc[3, "color"] = "green"
    for targets in (target, [target[:10], target[10:]]):
        assert TableEncoder().fit(source, targets).categories_ == {"color": ("blue", "green", "red")}
    assert TableEncoder().fit(source).categories_ == {"color": ("blue", "red")}


def test_an_unseen_category_is_all_zeros_and_counted() -> None:
    frame = _frame()
    encoder = TableEncoder().fit(frame)
    new = frame.copy()
    new.loc[[4, 7], "color"] = "mauve"
    with pytest.warns(
        LrqrWarning, match=r"column 'color': 2 rows hold categories never seen at fit \('mauve'\)"
    ):
        matrix = encoder.transform(new)
    np.testing.assert_array_equal(matrix[[4, 7], 1:3], 0.0)
    kept = np.delete(np.arange(60), [4, 7])
    np.testing.assert_array_equal(matrix[kept], encoder.transform(frame)[kept])
    counts: Counter[tuple[str, str]] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for start in (0, 5):
            encoder.transform(new[start : start + 5], unseen=counts)
    assert counts == {("color", "mauve"): 2}
    with pytest.warns(LrqrWarning, match="2 rows"):
        warn_unseen(counts)


def test_declared_categories_look_the_same_from_every_file() -> None:
    """1, 1.0 and "1" are one label."""
    as_integer = pd.DataFrame({"zone": [1, 2, 3, 2]})
    encoder = TableEncoder().fit(as_integer, categorical=("zone",))
    assert encoder.names_ == ("zone=1", "zone=2", "zone=3")
    expected = encoder.transform(as_integer)
    for other in (as_integer.astype(float), as_integer.astype(str), as_integer.astype(float).astype(str)):
        np.testing.assert_array_equal(encoder.transform(other), expected)


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "int8", "uint64", "Float64", "Int32", "object", "bool"]
)
def test_every_numeric_type_becomes_float64(dtype: str) -> None:
    frame = pd.DataFrame({"a": pd.Series([0, 1, 1]).astype(dtype), "b": [1.0, 2.0, 3.0]})
    matrix = TableEncoder().fit(frame).transform(frame)
    assert matrix.dtype == np.float64
    np.testing.assert_array_equal(matrix[:, 0], [0.0, 1.0, 1.0])


def test_polars_and_matrices() -> None:
    frame = _frame()
    encoder = TableEncoder().fit(frame)
    np.testing.assert_array_equal(encoder.transform(pl.from_pandas(frame)), encoder.transform(frame))
    polars = TableEncoder().fit(pl.from_pandas(frame))
    assert polars.to_state() == encoder.to_state()
    matrix = np.arange(12, dtype="float32").reshape(4, 3)
    plain = TableEncoder().fit(matrix)
    assert plain.names_ == ("f0", "f1", "f2")
    np.testing.assert_array_equal(plain.transform(matrix), matrix)
    with pytest.raises(DataError, match="two dimensions"):
        plain.transform(matrix[0])
    with pytest.raises(DataError, match="expected a data frame"):
        plain.transform([[1.0, 2.0, 3.0]])


def test_missing_values_stop_by_default() -> None:
    frame = _frame().astype({"age": "Float64"})
    frame.loc[2, "age"] = pd.NA
    encoder = TableEncoder().fit(frame)
    with pytest.raises(
        DataError, match=r"column 'age': 1 of 60 values are missing or infinite \(rows 3, data rows"
    ):
        encoder.transform(frame)
    with pytest.raises(DataError, match=r"rows 103,"):
        encoder.transform(frame, row=np.arange(100, 160))
    frame = _frame()
    frame.loc[5, "color"] = None
    with pytest.raises(DataError, match=r"column 'color': 1 of 60 values are missing"):
        encoder.transform(frame)
    numbers = pd.DataFrame({"a": [1.0, np.inf], "b": [1.0, 2.0]})
    with pytest.raises(DataError, match="column 'a': 1 of 2"):
        TableEncoder().fit(numbers).transform(numbers)


def test_imputation_uses_the_source_alone() -> None:
    source = pd.DataFrame({"a": [1.0, 2.0, 9.0, np.nan], "c": ["u", "v", "v", None]})
    target = pd.DataFrame({"a": [100.0, np.inf], "c": [None, "w"]})
    encoder = TableEncoder().fit(source, target, on_missing="impute")
    assert encoder.fill_ == {"a": 2.0, "c": "v"}
    assert encoder.names_ == ("a", "a is missing", "c=u", "c=v", "c=w", "c is missing")
    np.testing.assert_array_equal(encoder.transform(source)[3], [2.0, 1.0, 0.0, 1.0, 0.0, 1.0])
    np.testing.assert_array_equal(
        encoder.transform(target), [[100.0, 0.0, 0.0, 1.0, 0.0, 1.0], [2.0, 1.0, 0.0, 0.0, 1.0, 0.0]]
    )
    fast = TableEncoder().fit(source[["a"]], on_missing="impute")
    np.testing.assert_array_equal(fast.transform(target[["a"]]), [[100.0, 0.0], [2.0, 1.0]])
    assert np.isinf(target["a"][1])  # the frame of the caller is left alone


def test_text_in_a_numeric_column_is_named() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]})
    bad = pd.DataFrame({"x": ["1", "abc", "3"]})
    pattern = r"column 'x' was numeric at fit but holds the text 'abc' in row 2 .* --categorical x"
    with pytest.raises(DataError, match=pattern):
        TableEncoder().fit(frame).transform(bad)
    with pytest.raises(
        DataError, match=r"column 'x' holds the text 'abc' among numbers \(row 2 of .*--categorical x"
    ):
        TableEncoder().fit(bad)
    words = pd.DataFrame({"x": ["u", "v", "w"]})
    with pytest.raises(
        DataError, match=r"column 'x' holds texts in the target \('u'\) but numbers in the source"
    ):
        TableEncoder().fit(frame, words)
    with pytest.raises(
        DataError, match=r"column 'x' holds texts in the source \('u'\) but numbers in the target"
    ):
        TableEncoder().fit(words, frame)
    assert TableEncoder().fit(bad, frame, categorical=("x",)).categories_ == {"x": ("1", "2", "3", "abc")}


def test_dates_are_refused() -> None:
    frame = pd.DataFrame({"when": pd.to_datetime(["2020-01-01", "2021-01-01"])})
    with pytest.raises(DataError, match="column 'when' holds values of type timestamp"):
        TableEncoder().fit(frame)


def test_identifiers_are_no_features() -> None:
    frame = _frame().assign(name=[f"person {k}" for k in range(60)])
    with pytest.raises(DataError, match=r"'name' \(60 different texts in 60 rows\); pass --exclude"):
        TableEncoder().fit(frame)
    assert len(TableEncoder().fit(frame, categorical=("name",)).categories_["name"]) == 60


def test_constant_columns_are_allowed() -> None:
    frame = pd.DataFrame({"a": [1.0, 1.0], "c": ["u", "u"]})
    np.testing.assert_array_equal(TableEncoder().fit(frame).transform(frame), [[1.0, 1.0], [1.0, 1.0]])


@pytest.mark.parametrize("rows", [0, 1])
def test_first_axis_is_kept(rows: int) -> None:
    frame = _frame()
    encoder = TableEncoder().fit(frame)
    assert encoder.transform(frame[:rows]).shape == (rows, 5)
    assert TableEncoder().fit(frame[["age"]].astype(float)).transform(frame[["age"]][:rows]).shape == (
        rows,
        1,
    )


@settings(max_examples=50, deadline=None)
@given(
    labels=st.lists(
        st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip), min_size=1, max_size=8
    ),
    numbers=st.lists(st.floats(-1e150, 1e150), min_size=1, max_size=8),
)
def test_state_is_json_and_restores_the_encoder(labels: list[str], numbers: list[float]) -> None:
    n = min(len(labels), len(numbers))
    frame = pd.DataFrame({"c": labels[:n], "x": numbers[:n]})
    encoder = TableEncoder().fit(frame, categorical=("c",), on_missing="impute")
    restored = TableEncoder.from_state(json.loads(json.dumps(encoder.to_state())))
    assert restored.names_ == encoder.names_
    assert restored.to_state() == encoder.to_state()
    np.testing.assert_array_equal(restored.transform(frame), encoder.transform(frame))
    assert encoder.transform(frame)[:, :-1].sum() == n


def test_rows_encoded_one_by_one_are_the_same() -> None:
    frame = _frame()
    encoder = TableEncoder().fit(frame)
    together = encoder.transform(frame)
    alone = np.concatenate([encoder.transform(frame[k : k + 1]) for k in range(60)])
    np.testing.assert_array_equal(alone, together)


@pytest.mark.parametrize(
    ("texts", "looks"),
    [
        ([f"{k}.5 km" for k in range(60)], "numbers with a unit ('0.5 km')"),
        ([f"${k},000.50" for k in range(60)], "numbers with a unit ('$0,000.50')"),
        ([f"{k}%" for k in range(60)], "numbers with a unit ('0%')"),
        ([f"{k},5" for k in range(60)], "numbers with a comma ('0,5')"),
        ([f"2024-{1 + k // 28:02d}-{1 + k % 28:02d}" for k in range(60)], "dates ('2024-01-01')"),
        ([f"2024-01-{1 + k % 28:02d}T10:00:00Z" for k in range(60)], "dates ('2024-01-01T10:00:00Z')"),
        (["broken"] * 5 + [f"{k} kg" for k in range(55)], "numbers with a unit ('0 kg')"),
    ],
)
def test_quantities_and_dates_as_texts_are_no_categories(texts: list[str], looks: str) -> None:
    frame = _frame().assign(odd=texts)
    with pytest.raises(DataError) as caught:
        TableEncoder().fit(frame)
    comma = " (if the comma stands before decimals, pass --decimal ,)" if "comma" in looks else ""
    said = f"'odd' looks like {looks}: convert it{comma}, or --exclude odd or --categorical odd"
    assert str(caught.value) == said
    assert "odd" in TableEncoder().fit(frame, categorical=("odd",)).categories_


@pytest.mark.parametrize(
    "texts",
    [
        [f"{1 + k % 20} km" for k in range(60)],  # few kinds: categories
        [f"{k % 25}{'abcde'[k % 5]}" for k in range(60)],  # house numbers
        [f"zone {k % 25}" for k in range(60)],
        ["none"] * 10 + [f"{k % 22} kg" for k in range(50)],
    ],
)
def test_texts_that_may_be_categories_are_taken(texts: list[str]) -> None:
    assert "odd" in TableEncoder().fit(_frame().assign(odd=texts)).categories_
