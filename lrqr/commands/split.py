"""One random split of a data set of the repository, as the files that ``lrqr fit`` and ``evaluate`` read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lrqr import plugins
from lrqr.data.tables import write
from lrqr.study.split import predict_with_base

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pandas as pd

PARTS = ("source", "target", "test")


def write_split(
    name: str, folder: Path, *, shift: str | None, base: str, seed: int, force: bool
) -> list[Path]:
    """Write ``source.csv``, ``target.csv`` and ``test.csv`` of one split.

    Parameters
    ----------
    name : str
        A data set of ``lrqr datasets list``.
    folder : Path
        Made if it is not there.
    shift : str or None
        One of the data set's shifts; None is its first.
    base : str
        The base learner that fills the column ``prediction`` where the data bring none; it is fitted on
        rows that are in none of the three files.
    seed : int
    force : bool
        Replace files that are there.

    Returns
    -------
    list of Path
        What was written. The target has no column ``outcome``: there it is to be predicted.
    """
    module = plugins.load("study.datasets", name)
    data = module.split(shift or module.SHIFTS[0], seed=seed)
    if data.source.prediction is None:
        data = predict_with_base(data, base, seed)
    return write_parts(data.frames(), folder, force=force)


def write_parts(frames: Mapping[str, pd.DataFrame], folder: Path, *, force: bool) -> list[Path]:
    """Write the frames of ``PARTS`` as CSV files into a folder, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{part}.csv" for part in PARTS]
    for part, path in zip(PARTS, paths, strict=True):
        write(path, frames[part], force=force)
    return paths
