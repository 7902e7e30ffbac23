"""Real data with a real shift, one file each.

A file of this package is a data set. It defines

``TITLE``, ``SOURCE``, ``LICENSE``
    One line each, for ``lrqr datasets list`` and ``show``.
``FILES``
    The :class:`DataFile` s that it reads from the ``data/`` folder.
``SHIFTS``
    Names of the shifts that it can make.
``split(shift, *, seed) -> ShiftData``
    One random split: the same seed gives the same rows. Further keyword arguments are options that an
    experiment's ``[data.options]`` may set.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lrqr import plugins
from lrqr.calibrate.rows import Rows
from lrqr.errors import DataError, UsageError

if TYPE_CHECKING:
    import pandas as pd

    from lrqr.arrays import FloatArray, IntArray

__all__ = [
    "DataFile",
    "Rows",
    "ShiftData",
    "catalog",
    "check_shift",
    "data_folder",
    "describe",
    "leave_one_out",
    "locate",
    "softmax",
    "verify",
]

_ENVIRONMENT = "LRQR_DATA"


@dataclass(frozen=True)
class DataFile:
    """A file of the data folder: its name, its sha256 and its size in bytes."""

    name: str
    sha256: str
    size: int


@dataclass(frozen=True)
class ShiftData:
    """One random split of a data set under covariate shift.

    Attributes
    ----------
    name : str
        The shift.
    feature_names : tuple of d str
    source : Rows
        Labeled source rows for calibration.
    target : Rows
        Unlabeled target rows (``outcome`` is None).
    test : Rows
        Labeled target rows, for evaluation only.
    train : Rows or None
        Labeled rows for a base learner, disjoint from all the others; None if predictions are given.
    classes : tuple of str
        Names of the classes; empty for regression.
    """

    name: str
    feature_names: tuple[str, ...]
    source: Rows
    target: Rows
    test: Rows
    train: Rows | None = None
    classes: tuple[str, ...] = ()

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return the parts as data frames: the features, ``prediction`` or ``p_<class>``, ``outcome``."""
        parts = {"train": self.train, "source": self.source, "target": self.target, "test": self.test}
        return {key: self._frame(rows) for key, rows in parts.items() if rows is not None}

    def _frame(self, rows: Rows) -> pd.DataFrame:
        import pandas as pd

        frame = pd.DataFrame(rows.features, columns=list(self.feature_names))
        if rows.prediction is not None:
            names = [f"p_{name}" for name in self.classes] or ["prediction"]
            frame[names] = rows.prediction
        if rows.outcome is not None:
            frame["outcome"] = np.asarray(self.classes)[rows.outcome] if self.classes else rows.outcome
        return frame


def data_folder() -> Path:
    """Return the folder of the data: ``$LRQR_DATA`` or the ``data/`` beside the package.

    Raises
    ------
    DataError
        If there is no such folder (the data are in the repository, not in the installed package).
    """
    given = os.environ.get(_ENVIRONMENT)
    folder = Path(given) if given else Path(__file__).parents[3] / "data"
    if not folder.is_dir():
        where = f"{_ENVIRONMENT} names {folder}, which" if given else f"{folder}"
        raise DataError(
            f"{where} is not a folder, so there are no data sets; the data come with the repository and not "
            f"with the installed package: set {_ENVIRONMENT} to the data folder of a clone"
        )
    return folder


def locate(file: DataFile) -> Path:
    """Return the path of ``file``; DataError if it is not in the data folder."""
    path = data_folder() / file.name
    if not path.is_file():
        raise DataError(
            f"{path} is missing; restore it from the repository, or point {_ENVIRONMENT} elsewhere"
        )
    return path


def check_shift(shift: str, known: tuple[str, ...], dataset: str) -> None:
    """Raise UsageError unless ``shift`` is one of the ``known`` shifts of ``dataset``."""
    if shift not in known:
        hint = plugins.suggest(shift, known)
        raise UsageError(
            f"data set {dataset} has no shift {shift!r}{hint}; choose one of: {', '.join(known)}"
        )


def softmax(logits: FloatArray) -> FloatArray:
    """Return class probabilities of shape (n, K), in float64, from ``logits`` of shape (n, K)."""
    shifted = np.asarray(logits, dtype=np.float64)
    exponents = np.exp(shifted - shifted.max(axis=1, keepdims=True))
    return np.asarray(exponents / exponents.sum(axis=1, keepdims=True))


def leave_one_out(
    rows: Rows, domain: IntArray, held_out: int, *, seed: int, limits: tuple[int, int] = (0, 0)
) -> tuple[Rows, Rows, Rows]:
    """Make one domain the target and all the others the source.

    Parameters
    ----------
    rows : Rows of n labeled rows
    domain : (n,) array of int
    held_out : int
        The target domain. A random half of its rows is unlabeled, the other half is for testing.
    seed : int
    limits : (int, int)
        At most so many source rows and so many rows in each half of the target, drawn at random; 0 is all.

    Returns
    -------
    source, target, test : Rows
    """
    rng = np.random.default_rng(seed)
    source = rng.permutation(np.flatnonzero(domain != held_out))
    halves = np.array_split(rng.permutation(np.flatnonzero(domain == held_out)), 2)
    source_limit, target_limit = (limit or None for limit in limits)
    target, test = (half[:target_limit] for half in halves)
    return rows.take(source[:source_limit]), rows.take(target).unlabeled(), rows.take(test)


def catalog() -> list[dict[str, Any]]:
    """Return one record per data set, in the order of their names: see :func:`describe`."""
    return [describe(name) for name in plugins.names("study.datasets")]


def describe(name: str) -> dict[str, Any]:
    """Return name, title, source, license, shifts and files of one data set."""
    module = plugins.load("study.datasets", name)
    return {
        "name": name,
        "title": module.TITLE,
        "source": module.SOURCE,
        "license": module.LICENSE,
        "shifts": list(module.SHIFTS),
        "files": [{"name": file.name, "sha256": file.sha256, "size": file.size} for file in module.FILES],
    }


def verify(name: str) -> list[str]:
    """Compare the files of a data set with their recorded size and sha256; return what is wrong."""
    problems = []
    for file in plugins.load("study.datasets", name).FILES:
        path = data_folder() / file.name
        if not path.is_file():
            problems.append(f"{file.name}: missing in {path.parent}")
            continue
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if digest != file.sha256:
            problems.append(
                f"{file.name}: sha256 {digest} and {len(content)} bytes, "
                f"recorded {file.sha256} and {file.size} bytes"
            )
    return problems
