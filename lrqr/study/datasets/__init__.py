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
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from lrqr import plugins, results
from lrqr.calibrate.base import training_rows
from lrqr.calibrate.rows import Rows
from lrqr.errors import DataError, UsageError
from lrqr.results import DataSet, DataSets

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    "drawn",
    "leave_one_out",
    "locate",
    "selected",
    "sha256",
    "standardized",
    "unlabeled_and_test",
    "verify",
]

KEPT = 0.8
"""Share of the rows of each of three given tables that a split draws."""

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
    unlabeled : (n3, d) array or None
        Features of further source rows; None: those of ``source``.
    """

    name: str
    feature_names: tuple[str, ...]
    source: Rows
    target: Rows
    test: Rows
    train: Rows | None = None
    classes: tuple[str, ...] = ()
    unlabeled: FloatArray | None = None

    @classmethod
    def dealt(
        cls,
        name: str,
        feature_names: Sequence[str],
        rows: Rows,
        source: IntArray,
        target: IntArray,
        test: IntArray,
        *,
        train: IntArray | None = None,
        classes: Sequence[str] = (),
    ) -> ShiftData:
        """Take the parts from ``rows`` at the given row numbers; the target loses its outcomes.

        Without rows for training there is no such part.
        """
        return cls(
            name=name,
            feature_names=tuple(feature_names),
            source=rows.take(source),
            target=rows.take(target).unlabeled(),
            test=rows.take(test),
            train=None if train is None or not len(train) else rows.take(train),
            classes=tuple(classes),
        )

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


def shipped(name: str, inside: str = "") -> Path:
    """Return what a wheel holds at ``lrqr/<inside>``, or else what the repository has at ``name``."""
    package = Path(__file__).parents[2]
    installed = package / inside
    return installed if inside and installed.exists() else package.parent / name


def data_folder() -> Path:
    """Return the folder of the data: ``$LRQR_DATA`` or the ``data/`` beside the package.

    Raises
    ------
    DataError
        If there is no such folder (the data are in the repository, not in the installed package).
    """
    given = os.environ.get(_ENVIRONMENT)
    folder = Path(given) if given else shipped("data")
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


def drawn(
    shift: str, seed: int, *, whole: ShiftData, share: float = KEPT, train_share: float = 0.0
) -> ShiftData:
    """Draw a part of given source, target and test rows, without replacement.

    Parameters
    ----------
    shift : str
        Name of the result.
    seed : int
    whole : ShiftData
    share : float
        Of the rows of each part; 1 takes them as they are.
    train_share : float
        Of the drawn source rows, for a base learner: the rest calibrates. Every class is divided alike.
    """
    rng = np.random.default_rng(seed)

    def part(rows: Rows) -> Rows:
        return rows.take(rng.permutation(len(rows))[: max(1, round(share * len(rows)))])

    data = replace(whole, name=shift)
    if share < 1.0:
        data = replace(data, source=part(data.source), target=part(data.target), test=part(data.test))
    if not train_share:
        return data
    labels = np.asarray(data.classes)[data.source.outcome].tolist() if data.classes else None
    held = data.source.together(data.target)
    training = training_rows(len(data.source), seed, classes=labels, share=train_share, groups=held)
    return replace(data, train=data.source.take(training), source=data.source.take(~training))


def leave_one_out(
    domain: IntArray, held_out: int, *, seed: int, limits: tuple[int, int] = (0, 0)
) -> tuple[IntArray, IntArray, IntArray]:
    """Make one domain the target and all the others the source.

    Parameters
    ----------
    domain : (n,) array of int
    held_out : int
        The target domain. A random half of its rows is unlabeled, the other half is for testing.
    seed : int
    limits : (int, int)
        At most so many source rows and so many rows in each half of the target, drawn at random; 0 is all.

    Returns
    -------
    source, target, test : arrays of row numbers
    """
    rng = np.random.default_rng(seed)
    source = rng.permutation(np.flatnonzero(domain != held_out))
    target, test = unlabeled_and_test(rng.permutation(np.flatnonzero(domain == held_out)), limits[1])
    return source[: limits[0] or None], target, test


def unlabeled_and_test(rows: IntArray, target_rows: int = 0, test_rows: int = 0) -> list[IntArray]:
    """Divide target rows into those that stay unlabeled and those for testing.

    Parameters
    ----------
    rows : array of row numbers, in random order
    target_rows : int
        At most so many unlabeled rows; 0 is all.
    test_rows : int
        0: the rows are halved, and ``target_rows`` bounds both halves. Otherwise the first half, at most
        ``target_rows`` of it, is unlabeled, and at most ``test_rows`` of those that are left are for testing.
    """
    if not test_rows:
        return [half[: target_rows or None] for half in np.array_split(rows, 2)]
    count = min(target_rows or len(rows), len(rows) // 2)
    return [rows[:count], rows[count : count + test_rows]]


def standardized(values: FloatArray) -> FloatArray:
    """Return ``values`` of shape (n,) with mean 0 and standard deviation 1; all 0 if they are constant."""
    spread = values.std()
    return np.asarray((values - values.mean()) / (spread if spread > 0 else 1.0))


def selected(log_odds: FloatArray, rows: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Assign each row to the target independently, with the given log-odds (n,); return source and target.

    The likelihood ratio is then proportional to the odds.
    """
    chosen = rng.uniform(size=len(rows)) < expit(log_odds[rows])
    return rows[~chosen], rows[chosen]


def catalog() -> DataSets:
    """Return all data sets, in the order of their names."""
    return DataSets(datasets=[describe(name) for name in plugins.names("study.datasets")])


def describe(name: str) -> DataSet:
    """Return name, title, source, license, shifts and files of one data set."""
    module = plugins.load("study.datasets", name)
    return DataSet(
        name=name,
        title=module.TITLE,
        source=module.SOURCE,
        license=module.LICENSE,
        shifts=list(module.SHIFTS),
        files=[results.DataFile.model_validate(asdict(file)) for file in module.FILES],
    )


def verify(name: str) -> list[str]:
    """Compare the files of a data set with their recorded size and sha256; return what is wrong."""
    problems = []
    for file in plugins.load("study.datasets", name).FILES:
        path = data_folder() / file.name
        if not path.is_file():
            problems.append(f"{file.name}: missing in {path.parent}")
            continue
        digest, size = sha256(path), path.stat().st_size
        if digest != file.sha256:
            problems.append(
                f"{file.name}: sha256 {digest} and {size} bytes, recorded {file.sha256} and {file.size} bytes"
            )
    return problems


def sha256(path: Path) -> str:
    """Return the sha256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
