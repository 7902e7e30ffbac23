"""Rows by role: from the columns of a table to the arrays that the methods need."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lrqr.data import columns as col
from lrqr.plugins import ON_MISSING
from lrqr.errors import DataError, LrqrWarning, UsageError
from lrqr.data.faults import Faults
from lrqr.plugins import suggest

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from lrqr.arrays import BoolArray, FloatArray, IntArray
    from lrqr.data.roles import Roles

_SUM_TOLERANCE = 1e-3


@dataclass(frozen=True, repr=False)
class Sample:
    """Rows of a file or frame, by role.

    Attributes
    ----------
    features : DataFrame of shape (n, d)
        float64 columns, and object columns of labels (None where missing). With ``on_missing="impute"`` there
        may be NaN and None, for the encoder to fill.
    prediction : array of shape (n, k)
        k = 0 where there is none.
    outcome : array of shape (n,) or None
        float64; int64 class indices if there are classes.
    score, weight : array of shape (n,) or None
    group : array of strings of shape (n,) or None
        None for a row that has no group: that is no reason to leave it out.
    id : array of shape (n,)
        The identifier column, or the row number in the file from 0.
    row : int array of shape (n,)
        Row number in the file, from 0.
    classes : tuple of str
        Names of the classes, in the order of the columns of ``prediction``.
    dropped : int
        Rows left out because of missing values.
    source : str
        The file.
    """

    features: pd.DataFrame
    prediction: FloatArray
    outcome: np.ndarray[Any, Any] | None
    score: FloatArray | None
    group: np.ndarray[Any, Any] | None
    id: np.ndarray[Any, Any]
    weight: FloatArray | None
    row: IntArray
    classes: tuple[str, ...] = ()
    dropped: int = 0
    source: str = ""

    def __len__(self) -> int:
        return int(self.row.shape[0])

    def __repr__(self) -> str:
        parts = [f"{len(self)} rows", f"{self.features.shape[1]} features"]
        parts += [name for name in ("outcome", "score", "group", "weight") if getattr(self, name) is not None]
        return f"Sample({self.source!r}: {', '.join(parts)})"


def warn_absent_classes(sample: Sample) -> None:
    """Warn of classes that no row of a labeled sample has: nothing can be learned about them."""
    if sample.outcome is None or not sample.classes:
        return
    seen = np.bincount(np.asarray(sample.outcome, dtype=np.int64), minlength=len(sample.classes))
    absent = [name for name, count in zip(sample.classes, seen, strict=True) if not count]
    if absent:
        shown = ", ".join(map(repr, absent[:10])) + (", ..." if len(absent) > 10 else "")
        warnings.warn(
            f"{sample.source}: {len(absent)} of {len(sample.classes)} classes have no labeled row: {shown}; "
            "their sets rest on the other classes' scores",
            LrqrWarning,
            stacklevel=2,
        )


@dataclass
class Reading:
    """Turns batches of columns into samples and remembers what was wrong with them.

    Parameters
    ----------
    where : str
        The file, or what to call the data.
    roles : Roles
        Resolved; columns that are not in the batches have no role here.
    on_missing : {"error", "drop", "impute"}
    keep_rows : bool
        Whatever would drop a row is an error.
    header_lines : int
        Lines before the first row of a text file.
    """

    where: str
    roles: Roles
    on_missing: str = "error"
    keep_rows: bool = False
    header_lines: int = 0
    total: int = 0
    dropped: int = 0

    def __post_init__(self) -> None:
        if self.on_missing not in ON_MISSING:
            near = suggest(self.on_missing, ON_MISSING)
            raise UsageError(
                f"on_missing must be one of {', '.join(ON_MISSING)}; got {self.on_missing!r}{near}"
            )
        self.faults = Faults(self.where, self.header_lines)
        self.left_out = Faults(self.where, self.header_lines)
        self.filled: Counter[str] = Counter()

    def sample(self, items: Mapping[str, pa.ChunkedArray], n: int) -> Sample:
        """Make a sample of the next ``n`` rows; read on after faults, `finish` will raise them."""
        batch = _Batch(self, items, n, np.zeros(n, dtype=np.bool_))
        roles = self.roles
        features = {name: batch.feature(name) for name in roles.features or ()}
        prediction = [batch.number(name, "prediction") for name in roles.prediction]
        probability = np.column_stack(prediction) if prediction else np.empty((n, 0))
        if roles.probability:
            batch.check_probability(probability)
        outcome = batch.outcome() if roles.outcome else None
        score = batch.number(roles.score_column, "score") if roles.score_column else None
        weight = batch.weight(roles.weight) if roles.weight else None
        group = col.labels(items[roles.group]) if roles.group else None
        row = np.arange(self.total, self.total + n)
        identity = batch.identity(roles.id) if roles.id else row
        self.total += n
        keep = ~batch.drop
        self.dropped += int(batch.drop.sum())

        def kept(values: Any) -> Any:
            return None if values is None else values[keep]

        return Sample(
            features=_frame({name: values[keep] for name, values in features.items()}, int(keep.sum())),
            prediction=probability[keep],
            outcome=kept(outcome),
            score=kept(score),
            group=kept(group),
            id=identity[keep],
            weight=kept(weight),
            row=row[keep],
            classes=roles.classes,
            dropped=int(batch.drop.sum()),
            source=self.where,
        )

    def finish(self) -> None:
        """Raise all faults of all batches in one error; warn of rows that were left out.

        Raises
        ------
        DataError
            Also if there was no row at all.
        """
        if not self.total:
            raise DataError(f"{self.where}: there is a header but no row of data")
        missing = any(kind in {"values are missing", "values are infinite"} for _, kind in self.faults.found)
        advice = ""
        if missing and not self.keep_rows:
            advice = "--on-missing drop leaves these rows out; --on-missing impute fills features in"
        elif missing:
            other = "" if self.on_missing == "impute" else " (fit with --on-missing impute fills features)"
            advice = f"every row must get an answer, so fill these values in first{other}"
        self.faults.raise_if_any(self.total, advice)
        if self.dropped == self.total:
            raise DataError(
                f"{self.where}: every row lacks a value: {'; '.join(self.left_out.summary(self.total))}"
            )
        if self.dropped:
            detail = "; ".join(self.left_out.summary(self.total))
            message = (
                f"{self.where}: left out {self.dropped} of {self.total} rows with missing values: {detail}"
            )
            warnings.warn(message, LrqrWarning, stacklevel=3)
        if self.filled:
            most = ", ".join(f"{name!r} {count}" for name, count in self.filled.most_common(5))
            more = ", ..." if len(self.filled) > 5 else ""
            warnings.warn(
                f"{self.where}: filled in {self.filled.total()} missing feature values: {most}{more}",
                LrqrWarning,
                stacklevel=3,
            )


@dataclass
class _Batch:
    """The rows at hand, their faults on the way to the reading."""

    reading: Reading
    items: Mapping[str, pa.ChunkedArray]
    n: int
    drop: BoolArray
    kinds: dict[str, str] = field(default_factory=dict)

    def fault(self, column: str, kind: str, rows: BoolArray | IntArray, example: str = "") -> None:
        self.reading.faults.add(column, kind, rows, self.reading.total, example)

    def missing(self, column: str, kind: str, rows: BoolArray, *, feature: bool = False) -> None:
        """Treat missing values by the policy."""
        if not rows.any():
            return
        policy = self.reading.on_missing
        if feature and policy == "impute":
            self.reading.filled[column] += int(rows.sum())
            return
        if policy == "error" or self.reading.keep_rows:
            self.fault(column, kind, rows)
        else:
            self.reading.left_out.add(column, kind, rows, self.reading.total)
            self.drop |= rows

    def number(self, name: str, what: str, *, feature: bool = False) -> FloatArray:
        found = col.numbers(self.items[name], name)
        if found.text.size:
            remedy = (
                f"; pass --categorical {name} if they are labels"
                if feature
                else f"; the {what} must be numeric"
            )
            self.fault(
                name,
                "values are texts, not numbers",
                found.text,
                f": {self.at(name, found.text[0])!r}{remedy}",
            )
        values = found.values  # noqa: PD011 - a field, not pandas
        absent = np.isnan(values)
        absent[found.text] = False
        infinite = np.isinf(values)
        self.missing(name, "values are missing", absent, feature=feature)
        self.missing(name, "values are infinite", infinite, feature=feature)
        if feature and self.reading.on_missing == "impute":
            values[infinite] = np.nan
        return values

    def feature(self, name: str) -> np.ndarray[Any, Any]:
        """Numbers, or labels where the column is declared categorical or holds mostly texts."""
        if name not in self.reading.roles.categorical:
            if not col.is_text(self.items[name]):
                return self.number(name, "feature", feature=True)
            found = col.numbers(self.items[name], name)
            if found.numeric or found.mostly_numeric:
                return self.number(name, "feature", feature=True)
        return self.label(name, feature=True)

    def label(self, name: str, *, feature: bool = False) -> np.ndarray[Any, Any]:
        values = col.labels(self.items[name])
        self.missing(name, "values are missing", _absent(values), feature=feature)
        return values

    def identity(self, name: str) -> np.ndarray[Any, Any]:
        values = col.identifiers(self.items[name])
        self.missing(name, "values are missing", _absent(values))
        return values

    def weight(self, name: str) -> FloatArray:
        values = self.number(name, "weight")
        negative = np.flatnonzero(values < 0)
        example = f": {values[negative[0]]:g}; a ratio of densities is not" if negative.size else ""
        self.fault(name, "values are negative", negative, example)
        return values

    def outcome(self) -> np.ndarray[Any, Any]:
        name, classes = str(self.reading.roles.outcome), self.reading.roles.classes
        if not classes:
            return self.number(name, "outcome")
        values = self.label(name)
        index_of: dict[Any, int] = {label: k for k, label in enumerate(classes)}
        index = np.array([index_of.get(value, -1) for value in values], dtype=np.int64)
        unknown = (index < 0) & ~_absent(values)
        if unknown.any():
            first = str(values[np.flatnonzero(unknown)[0]])
            listed = ", ".join(classes[:20]) + (", ..." if len(classes) > 20 else "")
            self.fault(
                name,
                "labels are not among the classes",
                unknown,
                f": {first!r}{suggest(first, classes)}; classes: {listed}",
            )
        return index

    def check_probability(self, probability: FloatArray) -> None:
        columns = ", ".join(self.reading.roles.prediction[:3]) + (", .." if probability.shape[1] > 3 else "")
        whole: BoolArray = np.asarray(np.isfinite(probability).all(axis=1))
        negative: BoolArray = whole & np.asarray((probability < 0).any(axis=1))
        total = np.where(whole[:, None], probability, 0.0).sum(axis=1)
        off = np.flatnonzero(whole & ~negative & np.asarray(np.abs(total - 1) > _SUM_TOLERANCE))
        advice = "; these are no probabilities (logits can be given in an NPZ)"
        self.fault(columns, "rows have negative probabilities", negative, advice)
        example = f": {total[off[0]]:g}" if off.size else ""
        self.fault(columns, "rows do not sum to 1", off, example)

    def at(self, name: str, position: int) -> Any:
        return self.items[name][int(position)].as_py()


def _absent(values: np.ndarray[Any, Any]) -> BoolArray:
    return np.asarray(pd.isna(values), dtype=np.bool_)


def _frame(columns: dict[str, np.ndarray[Any, Any]], n: int) -> pd.DataFrame:
    if columns and all(values.dtype == np.float64 for values in columns.values()):
        return pd.DataFrame(np.column_stack(list(columns.values())), columns=list(columns))
    series = {name: pd.Series(values, dtype=values.dtype) for name, values in columns.items()}
    return pd.DataFrame(series, index=pd.RangeIndex(n))
