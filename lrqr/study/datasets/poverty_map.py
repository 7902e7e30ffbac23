"""Wealth of African villages and towns from satellite images, in countries that the source does not hold."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from lrqr.study.datasets import DataFile, Rows, ShiftData, check_shift, locate

TITLE = "PovertyMap: asset wealth of survey clusters in 23 countries, with predictions from images"
SOURCE = "Yeh et al. (2020), Nature Communications 11:2583; GitHub sustainlab-group/africa_poverty a595f0d3"
LICENSE = "MIT"
FILES = (
    DataFile(
        "poverty_map.csv.gz", "ba075a675eeb99b8fc8b239b17efa4f5a87126865bdadc1a5d24598efc176cb7", 1312522
    ),
)
SHIFTS = tuple(f"countries-{fold}" for fold in range(1, 7))

PREDICTION = "Resnet-18 MS+NL concat"
_NO_FEATURES = ["lat", "lon", "country", "year", "label", PREDICTION]


@cache
def table() -> pd.DataFrame:
    """Return the survey clusters."""
    return pd.read_csv(locate(FILES[0]))


def split(
    shift: str, *, seed: int, source_rows: int = 2000, target_rows: int = 500, test_rows: int = 2000
) -> ShiftData:
    """Draw one random split: every sixth country, by the alphabet, is the target, the others the source.

    The features are the predictions of eleven other models and whether a cluster is urban. Each cluster was
    predicted by models that have not seen its country.

    Parameters
    ----------
    shift : one of SHIFTS
    seed : int
    source_rows, target_rows, test_rows : int
        How many rows are drawn of each part.

    Returns
    -------
    ShiftData
        With predictions, so no rows for training.
    """
    check_shift(shift, SHIFTS, "poverty-map")
    frame = table()
    countries = np.sort(frame["country"].unique())
    moved = frame["country"].isin(countries[SHIFTS.index(shift) :: len(SHIFTS)]).to_numpy()
    names = [name for name in frame.columns if name not in _NO_FEATURES]
    values = (frame[part].to_numpy(np.float64) for part in (names, "label", [PREDICTION]))
    rng = np.random.default_rng(seed)
    source, theirs = (rng.permutation(np.flatnonzero(rows)) for rows in (~moved, moved))
    parts = source[:source_rows], theirs[:target_rows], theirs[target_rows : target_rows + test_rows]
    return ShiftData.dealt(shift, names, Rows(*values), *parts)
