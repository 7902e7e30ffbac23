"""Missing and infinite values: refused by row and column, dropped, or imputed, as --on-missing says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from commands import NUMBERS, files, lrqr, predicted, table, write

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.usefixtures("small_map")
@pytest.mark.parametrize("count", [5, 12])
def test_missing_outcomes_stop_or_are_dropped(tmp_path: Path, count: int) -> None:
    frame = table(100, seed=1)
    whole = frame.iloc[count:]
    frame.loc[frame.index[:count], "y"] = np.nan
    paths = write(tmp_path, source=frame, target=frame[["a", "b"]], whole=whole)
    arguments = ("fit", paths["source"], paths["target"], *NUMBERS, "-o", tmp_path / "model")
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
    same = lrqr("fit", paths["whole"], paths["target"], *NUMBERS, "-o", tmp_path / "other")
    assert same.code == 0
    left, right = (predicted(tmp_path, rows="whole", model=name) for name in ("model", "other"))
    pd.testing.assert_frame_equal(left, right)


@pytest.mark.usefixtures("small_map")
def test_missing_features_are_imputed_if_asked(tmp_path: Path) -> None:
    frame = table(100, seed=1)
    frame.loc[3, "a"], frame.loc[4, "b"] = np.nan, np.inf
    paths = write(tmp_path, source=frame, target=frame[["a", "b"]], rows=frame.drop(columns="y"))
    arguments = ("fit", paths["source"], paths["target"], *NUMBERS, "-o", tmp_path / "model")
    # trees do not split on a column of one missing value; given features would have a coefficient for it
    arguments += ("--feature-map", "learned")
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
def test_rows_to_be_answered_are_never_dropped(tmp_path: Path) -> None:
    paths = files(tmp_path)
    assert lrqr("fit", paths["source"], paths["target"], *NUMBERS, "-o", tmp_path / "model").code == 0
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
