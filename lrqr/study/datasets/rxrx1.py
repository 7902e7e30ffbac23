"""RxRx1 (WILDS): fluorescence images of cells, one experimental batch held out as the target.

Section 5.3 of arXiv:2502.13030. The data may not be shipped (CC BY-NC-SA 4.0, 7 GB of images):
``scripts/export_rxrx1.py`` writes the file that this module reads.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import softmax

from lrqr.errors import DataError
from lrqr.study.datasets import DataFile, Rows, ShiftData, check_shift, data_folder, leave_one_out

if TYPE_CHECKING:
    from lrqr.arrays import IntArray

TITLE = "RxRx1: 1139 genetic treatments of cells, 14 experimental batches (not shipped)"
SOURCE = "WILDS (Koh et al. 2021), https://wilds.stanford.edu; Recursion, https://www.rxrx.ai/rxrx1"
LICENSE = "CC BY-NC-SA 4.0"
FILES: tuple[DataFile, ...] = ()
SHIFTS = tuple(f"experiment-{index}" for index in range(14))

_KEYS = ("features", "logits", "outcome", "group")


@cache
def table(path: str) -> tuple[Rows, IntArray, tuple[str, ...]]:
    """Return the images (features, class, probabilities), their experiment and the names of the classes."""
    with np.load(path, allow_pickle=False) as arrays:
        missing = [key for key in _KEYS if key not in arrays]
        if missing:
            raise DataError(
                f"{path} lacks {', '.join(missing)}; scripts/export_rxrx1.py writes {', '.join(_KEYS)}"
            )
        features, logits, outcome, group = (arrays[key] for key in _KEYS)
    counts = {key: len(array) for key, array in zip(_KEYS, (features, logits, outcome, group), strict=True)}
    if len(set(counts.values())) > 1:
        raise DataError(f"the arrays of {path} differ in length: {counts}")
    rows = Rows(
        features.astype(np.float64), outcome.astype(np.int64), softmax(logits.astype(np.float64), axis=1)
    )
    classes = tuple(str(index) for index in range(logits.shape[1]))
    return rows, np.unique(group, return_inverse=True)[1], classes


def split(
    shift: str, *, seed: int, path: str = "rxrx1.npz", source_rows: int = 0, target_rows: int = 0
) -> ShiftData:
    """Draw one random split: one experiment is the target, all the others are the source.

    Parameters
    ----------
    shift : "experiment-0" to "experiment-13"
        Experiments are numbered in the order of their ids.
    seed : int
    path : str
        The exported NPZ; a relative path is looked up in the data folder.
    source_rows, target_rows : int
        At most so many calibration rows, and so many rows in each half of the target; 0 takes all.
    """
    check_shift(shift, SHIFTS, "rxrx1")
    file = data_folder() / path
    if not file.is_file():
        raise DataError(f"{file} is missing; RxRx1 may not be shipped: make it with scripts/export_rxrx1.py")
    rows, group, classes = table(str(file))
    held_out = SHIFTS.index(shift)
    if held_out > group.max():
        raise DataError(f"{file} holds {group.max() + 1} experiments, so there is no {shift}")
    parts = leave_one_out(group, held_out, seed=seed, limits=(source_rows, target_rows))
    names = tuple(f"f{index}" for index in range(rows.features.shape[1]))
    return ShiftData.dealt(shift, names, rows, *parts, classes=classes)
