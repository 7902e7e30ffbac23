"""Emissions of a gas turbine from year to year: the outcome drifts, and not only the features."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from lrqr.study.datasets import DataFile, Rows, ShiftData, check_shift, locate

TITLE = "Gas turbine: NOx and CO emissions by the hour, calibrated in 2012 and used in 2013 to 2015"
SOURCE = "UCI Machine Learning Repository, data set 551, Kaya et al. (2019), doi:10.24432/C5WC95"
LICENSE = "CC BY 4.0"
FILES = (
    DataFile(
        "gas_turbine.csv.gz", "4f6b69130ba9cd2dea4effb49e198eca3571af263d01b262ea73da05d85ff7bf", 1090975
    ),
)
SHIFTS = ("nox-2013", "nox-2014", "nox-2015", "co-2013", "co-2014", "co-2015")

FEATURES = ("AT", "AP", "AH", "AFDP", "GTEP", "TIT", "TAT", "TEY", "CDP")
_TRAINED, _CALIBRATED = 2011, 2012


@cache
def table() -> pd.DataFrame:
    """Return the rows of all five years."""
    return pd.read_csv(locate(FILES[0]))


def split(
    shift: str, *, seed: int, source_rows: int = 2000, target_rows: int = 1000, test_rows: int = 3000
) -> ShiftData:
    """Draw one random split: rows of 2011 train the base model, rows of 2012 calibrate.

    Parameters
    ----------
    shift : one of SHIFTS
        The outcome, and the year of the target.
    seed : int
    source_rows, target_rows, test_rows : int
        How many rows of 2012 and of the target's year are drawn.

    Returns
    -------
    ShiftData
    """
    check_shift(shift, SHIFTS, "gas-turbine")
    outcome, year = shift.split("-")
    frame = table()
    rows = Rows(frame[list(FEATURES)].to_numpy(np.float64), frame[outcome.upper()].to_numpy(np.float64))
    rng, years = np.random.default_rng(seed), frame["year"].to_numpy()
    train, source, theirs = (
        rng.permutation(np.flatnonzero(years == one)) for one in (_TRAINED, _CALIBRATED, int(year))
    )
    parts = source[:source_rows], theirs[:target_rows], theirs[target_rows : target_rows + test_rows]
    return ShiftData.dealt(shift, FEATURES, rows, *parts, train=train)
