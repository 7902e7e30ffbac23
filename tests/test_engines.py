"""Engines: the sums of the batches are the sums of the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from lrqr import registry, tables
from lrqr.errors import DataError
from lrqr.features import TableEncoder
from lrqr.moments import Moments
from lrqr.tables import Roles

if TYPE_CHECKING:
    from pathlib import Path

ENGINES = registry.names("engines")


def _frame(n: int = 500) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"a": 100 + rng.normal(size=n), "b": rng.normal(size=n), "c": rng.choice(list("uvw"), n)}
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("suffix", [".csv.gz", ".parquet", ".npz"])
@pytest.mark.parametrize("size", [7, 10_000])
def test_moments_are_those_of_the_whole_matrix(engine: str, suffix: str, size: int, tmp_path: Path) -> None:
    path, frame = tmp_path / f"rows{suffix}", _frame()
    tables.write(path, frame)
    encoder = TableEncoder().fit(frame)
    roles = Roles(features=("a", "b", "c"), categorical=encoder.categorical_)
    found = registry.load("engines", engine).moments(path, roles, encoder, size=size)
    whole = Moments.of(encoder.transform(frame))
    assert found.count == 500
    np.testing.assert_allclose(found.mean, whole.mean, rtol=1e-12)
    np.testing.assert_allclose(found.scatter, whole.scatter, rtol=0, atol=1e-12 * whole.scatter.max())


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_are_mapped_in_order(engine: str, tmp_path: Path) -> None:
    path, frame = tmp_path / "rows.csv", _frame()
    tables.write(path, frame)
    mapped = registry.load("engines", engine).map_rows(
        path, Roles(), lambda s: s.features["b"].to_numpy(), size=33
    )
    np.testing.assert_array_equal(np.concatenate(list(mapped)), frame["b"])


@pytest.mark.parametrize("engine", ENGINES)
def test_faults_of_the_file_are_raised(engine: str, tmp_path: Path) -> None:
    path, frame = tmp_path / "rows.csv", _frame()
    encoder = TableEncoder().fit(frame)
    frame.loc[[3, 400], "a"] = np.nan
    tables.write(path, frame)
    with pytest.raises(DataError, match=r"'a': 2 of 500 values are missing \(rows 4, 401\)"):
        registry.load("engines", engine).moments(path, Roles(), encoder, size=50)
