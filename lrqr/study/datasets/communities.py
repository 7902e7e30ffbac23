"""Communities and Crime: the four race splits of section 5.2 of arXiv:2502.13030."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from lrqr.study.datasets import DataFile, Rows, ShiftData, check_shift, locate, unlabeled_and_test

TITLE = "Communities and Crime: violent crimes per head in 1994 US communities, split by race columns"
SOURCE = "UCI Machine Learning Repository, data set 183, Redmond (2009), doi:10.24432/C53W3X"
LICENSE = "CC BY 4.0"
FILES = (
    DataFile("communities.csv", "19dc3ec40b4c3bf0e32bf560853c374d6bf9a4e7314bcb6407bb574b4447dc69", 1097664),
)
SHIFTS = ("racepctblack", "racePctWhite", "racePctHisp", "racePctAsian")

OUTCOME = "ViolentCrimesPerPop"
_NOT_PREDICTIVE = ["state", "county", "community", "communityname", "fold"]


@cache
def table() -> pd.DataFrame:
    """Return the 100 features and the outcome of the 1994 communities.

    The five columns that UCI calls non-predictive and the 22 LEMAS columns, of which 1675 values each are
    missing, are dropped; the one missing ``OtherPerCap`` is set to the column's median.
    """
    frame = pd.read_csv(locate(FILES[0])).drop(columns=_NOT_PREDICTIVE)
    missing = frame.isna().sum()
    frame = frame.drop(columns=missing.index[missing > 1])
    return frame.fillna(frame.median())


def split(shift: str, *, seed: int) -> ShiftData:
    """Draw one random split.

    Half of the rows are for the base model. Of the other half, rows whose ``shift`` column is at most its
    median in that half are the source, the rest the target (values are rounded to .01, so the source is a
    little larger). Half of the target is unlabeled, half is for testing. The ``shift`` column stays a
    feature.

    Parameters
    ----------
    shift : one of SHIFTS
    seed : int

    Returns
    -------
    ShiftData
        With 997 training rows, about 510 source rows and about 240 rows in each part of the target.
    """
    check_shift(shift, SHIFTS, "communities")
    frame = table()
    names = tuple(name for name in frame.columns if name != OUTCOME)
    rows = Rows(frame[list(names)].to_numpy(np.float64), frame[OUTCOME].to_numpy(np.float64))
    order = np.random.default_rng(seed).permutation(len(rows))
    half = len(rows) // 2
    train, rest = order[:half], order[half:]
    column = rows.features[rest, names.index(shift)]
    is_source = column <= np.median(column)
    target, test = unlabeled_and_test(rest[~is_source])
    return ShiftData.dealt(shift, names, rows, rest[is_source], target, test, train=train)
