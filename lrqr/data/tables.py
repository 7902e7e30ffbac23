"""Read files and data frames as samples: rows whose columns are found by role, checked and converted.

All data come in by `read` (whole) or `batches` (a stream of pieces). Numbers become float64, labels strings.
Everything that is wrong with a file is listed in one error, also where the file is read in batches.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from lrqr.data import columns as col
from lrqr.data import roles as parts
from lrqr.data.formats import COMMA, open_table, reader
from lrqr.data.roles import SINGLE, SPELLINGS, TRUTH, Roles, ends_of
from lrqr.data.writing import check_writable, write
from lrqr.errors import DataError, LrqrWarning, UsageError
from lrqr.plugins import ON_MISSING, check_choice, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from lrqr.arrays import BoolArray, FloatArray, IntArray
    from lrqr.data.formats import Data, Opened

__all__ = [
    "Column",
    "Roles",
    "Sample",
    "batches",
    "check_writable",
    "one_sided",
    "read",
    "reader",
    "resolve",
    "schema",
    "warn_absent_classes",
    "write",
]

UNLABELED_ROWS = 200_000
"""Of a larger table without labels so many rows, drawn at random, are used: docs/scale.md has the price."""

_PIECE = 1 << 16  # rows at a time where only some of a file are wanted
_WHOLE_FILE = 1 << 20  # rows per piece where all of a file is wanted
_SUM_TOLERANCE, _EXACT = 1e-3, 1e-6  # of sums of probabilities: what is accepted; what is left as it is
_ROWS_SHOWN = 5
_MISSING, _INFINITE = "values are missing", "values are infinite"


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
    group, cluster : array of strings of shape (n,) or None
        None for a row that has no group: that is no reason to leave it out. A row without a cluster stands
        alone.
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
    kept : DataFrame
        Columns that are passed through: in the types of the file, which in CSV are texts.
    """

    features: pd.DataFrame
    prediction: FloatArray
    outcome: np.ndarray[Any, Any] | None
    score: FloatArray | None
    group: np.ndarray[Any, Any] | None
    id: np.ndarray[Any, Any]
    weight: FloatArray | None
    row: IntArray
    cluster: np.ndarray[Any, Any] | None = None
    classes: tuple[str, ...] = ()
    dropped: int = 0
    source: str = ""
    kept: pd.DataFrame = field(default_factory=pd.DataFrame)

    def __len__(self) -> int:
        return int(self.row.shape[0])

    def __repr__(self) -> str:
        found = [f"{len(self)} rows", f"{self.features.shape[1]} features"]
        found += [
            name
            for name in ("outcome", "score", "group", "cluster", "weight")
            if getattr(self, name) is not None
        ]
        return f"Sample({self.source!r}: {', '.join(found)})"

    def take(self, rows: IntArray | BoolArray) -> Sample:
        """Return the rows at ``rows``: positions, or a mask of shape (n,)."""
        taken: dict[str, Any] = {
            name: part[rows] for name, part in vars(self).items() if isinstance(part, np.ndarray)
        }
        taken["features"] = self.features.iloc[rows].reset_index(drop=True)
        if not self.kept.columns.empty:
            taken["kept"] = self.kept.iloc[rows].reset_index(drop=True)
        return replace(self, **taken)


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


def resolve(roles: Roles, source: Data, *others: Data, where: Sequence[str] = ()) -> Roles:
    """Find the columns of all roles by the names in the files; no row is read.

    Parameters
    ----------
    roles : Roles
        What the user said, patterns included.
    source : path or data frame
        The labeled source: roles other than features are looked up here.
    *others : paths or data frames
        Target and other files: features that are not named are the columns that all files have.
    where : sequence of str
        What to call each of them in messages, instead of by its path.

    Returns
    -------
    Roles
        Plain names, fit to be stored and used for every further file.
    """
    opened = [open_table(data, roles) for data in (source, *others)]
    filled = roles.with_native(opened[0].roles)
    columns = [file.columns for file in opened]
    natural = [file.natural for file in opened]
    if filled.features is None:  # an NPZ says itself which of its arrays are features
        columns = [columns[0], *natural[1:], natural[0]]
    found = parts.resolve(filled, *columns, where=where or [file.where for file in opened])
    owned = {name for file in opened for name in file.categorical}
    categorical = [name for name in found.features or () if name in owned.union(found.categorical)]
    found = replace(found, categorical=tuple(categorical))
    parts.refuse_disjoint(found, *natural)
    return found


def one_sided(roles: Roles, source: Data, target: Data) -> str:
    """Say which columns without a role only one of two files has; see `lrqr.data.roles.one_sided`."""
    return parts.one_sided(roles, *(open_table(data, roles).natural for data in (source, target)))


def read(
    data: Data,
    roles: Roles,
    *,
    need: Sequence[str] = ("features",),
    optional: Sequence[str] = ("id",),
    on_missing: str = "error",
    keep_rows: bool = False,
    most: int | None = None,
    seed: int = 0,
) -> Sample:
    """Read a whole file or frame, or a sample of ``most`` of its rows in memory for so many.

    Parameters
    ----------
    data : path or data frame
        CSV (also .gz), Parquet (a file or a directory of parts) or NPZ; a pandas, polars or Arrow table, or a
        matrix with columns f0, f1, .. The index of a pandas frame plays no part: rows are counted from 0.
    roles : Roles
        Best those that `resolve` returned for source and target together.
    need : sequence of str
        Roles without which the file is refused: features, prediction, outcome, score, group, cluster, id,
        weight.
    optional : sequence of str
        Roles that are read where their columns exist. All other columns are not looked at.
    on_missing : {"error", "drop", "impute"}
        Missing means NaN, empty, null or infinite, in a column that is used. ``"drop"`` leaves the row out,
        ``"impute"`` leaves features to the encoder and drops rows that lack anything else; both warn with
        counts.
    keep_rows : bool
        One row out per row in: whatever would drop a row is an error.
    most : int, optional
        Of a larger file so many rows, drawn at random, in their order; the others are not looked at.
        The sample depends on ``seed`` and on the number of rows, not on the batches in which they come.
    seed : int

    Raises
    ------
    DataError
        One message with everything that is wrong.
    """
    reading = _Reading(open_table(data, roles), roles, need, optional, on_missing, keep_rows)
    if most is None:
        pieces = list(reading.tables(_WHOLE_FILE))
    else:
        pieces, reading.rows, count = _drawn(reading.tables(_PIECE), most, seed)
        if count > most:
            reading.notes.append(f"{most:,} of its {count:,} rows, drawn at random, stand for all of them")
    if not pieces:
        raise DataError(reading.no_row)
    sample = reading.sample(pa.concat_tables(pieces))
    reading.finish()
    return sample


def _drawn(tables: Iterable[pa.Table], most: int, seed: int) -> tuple[list[pa.Table], IntArray, int]:
    """Return ``most`` rows at most, drawn at random, their numbers, and how many rows there were."""
    rng = np.random.default_rng(seed)
    pieces: list[pa.Table] = []
    count = 0
    keys, rows = np.empty(0), np.empty(0, dtype=np.int64)

    def thinned() -> list[pa.Table]:
        nonlocal keys, rows
        chosen = np.sort(np.argpartition(keys, most - 1)[:most])  # those with the smallest keys
        keys, rows = keys[chosen], rows[chosen]
        return [pa.concat_tables(pieces).take(pa.array(chosen))]

    for table in tables:
        pieces.append(table)
        keys = np.append(keys, rng.random(len(table)))
        rows = np.append(rows, np.arange(count, count + len(table)))
        count += len(table)
        if len(rows) > 2 * most:
            pieces = thinned()
    return thinned() if len(rows) > most else pieces, rows, count


def batches(
    data: Data,
    roles: Roles,
    *,
    size: int = 65536,
    need: Sequence[str] = ("features",),
    optional: Sequence[str] = ("id",),
    on_missing: str = "error",
    keep_rows: bool = False,
    keep: Sequence[str] = (),
) -> Iterator[Sample]:
    """Read a file in samples of at most ``size`` rows, in its order and in O(size) memory (NPZ: as a whole).

    Parameters are those of `read`, and ``keep``: columns to pass through, names or patterns. After a
    fault the rest of the file is still read, so that the error at the end lists all faults, but no
    further sample is given. Name the categorical features in ``roles`` (those of a fitted encoder): what
    a column is must not depend on a batch.
    """
    reading = _Reading(open_table(data, roles), roles, need, optional, on_missing, keep_rows, keep)
    for table in reading.tables(size):
        sample = reading.sample(table)
        if len(sample) and not reading.faults:
            yield sample
    reading.finish()


@dataclass
class Column:
    """A column as it would be read.

    Attributes
    ----------
    name : str
    rows, present, texts, infinite : int
        Numbers of rows, of values that are not missing, of texts that are no numbers, of infinite values.
    unusable : str
        The type of a column that can be no feature, such as a date.
    owned : bool
        Whether the owner of the file made it one of categories.
    examples : tuple
        Up to three different values.
    """

    name: str
    rows: int = 0
    present: int = 0
    texts: int = 0
    infinite: int = 0
    unusable: str = ""
    owned: bool = False
    examples: tuple[Any, ...] = ()

    @property
    def missing(self) -> int:
        """The number of missing values."""
        return self.rows - self.present

    @property
    def kind(self) -> str:
        """``numeric``, ``categorical``, ``numeric with texts``, or the type that cannot be used."""
        mistakes = 0 < 2 * self.texts < self.present
        return self.unusable or (
            "numeric with texts" if mistakes else "categorical" if self.texts or self.owned else "numeric"
        )

    def look(self, column: pa.ChunkedArray, words: frozenset[str], decimal: str) -> None:
        """Count in what further rows hold; ``words`` are missing."""
        self.rows += len(column)
        try:
            numbers = col.numbers(column, self.name, words, decimal)
        except DataError:
            self.unusable = str(column.type)
            self.present += len(column) - column.null_count
            return
        there = ~np.isnan(numbers.values) | numbers.text
        self.texts += numbers.texts
        self.infinite += int(np.isinf(numbers.values).sum())
        self.present += int(there.sum())
        if len(self.examples) < 3:
            fresh = (column[int(k)].as_py() for k in np.flatnonzero(there)[:100])
            self.examples = tuple(dict.fromkeys((*self.examples, *fresh)))[:3]


def schema(data: Data, wanted: Sequence[str] = (), roles: Roles | None = None) -> list[Column]:
    """Describe columns (all, if none are named) as they would be read, in one pass in O(batch) memory."""
    opened = open_table(data, roles)
    words = (roles or Roles()).words
    found = [Column(name, owned=name in opened.categorical) for name in wanted or opened.columns]
    for table in opened.batches([column.name for column in found], _WHOLE_FILE // 16):
        for column in found:
            column.look(table[column.name], words, opened.decimal)
    return found


def _plan(
    opened: Opened, roles: Roles, need: Sequence[str], optional: Sequence[str]
) -> tuple[Roles, list[str]]:
    """Decide what is read from a file.

    Returns
    -------
    Roles, list of str
        Roles with plain names, without those that are neither needed nor (optional and in the file); and the
        columns to read. A column with a role is no feature, also where the role is not read.
    """
    filled = roles.with_native(opened.roles)
    for noun, name in SINGLE.items():
        if noun in need and getattr(filled, name) is None:
            flag = SPELLINGS[name].flag
            raise UsageError(f"{opened.where}: which column is the {noun}? Pass {flag} NAME")
    if "prediction" in need and not filled.prediction:
        raise UsageError(
            f"{opened.where}: which columns are predictions? Pass --prediction or --probability NAME"
        )
    usable = frozenset(opened.columns)
    unread: dict[str, Any] = {
        name: None
        for noun, name in SINGLE.items()
        if noun not in need and (noun not in optional or getattr(filled, name) not in usable)
    }
    lacking: list[str] = []
    prediction = parts.expand(filled.prediction, opened.columns, "prediction", lacking)
    if "prediction" not in need and (lacking or "prediction" not in optional):
        unread |= {"prediction": (), "probability": False}
    natural = []
    if "features" not in need:
        unread |= {"features": (), "exclude": (), "categorical": ()}
    elif filled.features is None:  # a column whose role is of no interest now is still no feature
        unread["exclude"] = (*filled.exclude, *sorted(usable & {*filled.taken, *prediction}))
        natural = [opened.natural]
    else:  # chosen already: a column left out then may not exist here
        left_out = parts.expand(filled.exclude, filled.features)
        unread |= {"features": [name for name in filled.features if name not in left_out], "exclude": ()}
    required = [name for noun, name in SINGLE.items() if noun in need]
    filled = parts.resolve(
        replace(filled, **unread), opened.columns, *natural, need=required, where=(opened.where,)
    )
    single = [getattr(filled, name) for name in SINGLE.values()]
    every = (*(filled.features or ()), *filled.prediction, *(name for name in single if name is not None))
    return filled, list(dict.fromkeys(every))


@dataclass
class _Fault:
    """What is wrong in one way with a column: in how many rows, the first of them (from 1), an example."""

    example: str
    count: int = 0
    rows: list[int] = field(default_factory=list)


_Faults = dict[tuple[str, str], _Fault]


def _described(faults: _Faults, total: int) -> list[str]:
    """Describe faults: one line for each column and kind, with the count and the first rows."""
    lines = []
    for (column, kind), fault in faults.items():
        shown = ", ".join(map(str, fault.rows)) + (", ..." if fault.count > len(fault.rows) else "")
        rows = "rows" if fault.count > 1 else "row"
        lines.append(f"column {column!r}: {fault.count} of {total} {kind}{fault.example} ({rows} {shown})")
    return lines


class _Reading:
    """Turns the tables of one file into samples; faults of all of them are raised together by `finish`.

    Parameters are those of `read`.
    """

    def __init__(
        self,
        opened: Opened,
        roles: Roles,
        need: Sequence[str],
        optional: Sequence[str],
        on_missing: str,
        keep_rows: bool,
        keep: Sequence[str] = (),
    ) -> None:
        check_choice("on_missing", on_missing, ON_MISSING)
        self.opened, self.on_missing, self.keep_rows = opened, on_missing, keep_rows
        self.roles, wanted = _plan(opened, roles, need, optional)
        self.keep = list(parts.expand(keep, opened.columns))
        for name in keep:
            if not parts.expand((name,), opened.columns):
                near = suggest(name, opened.columns)
                raise DataError(f"{opened.where}: --keep {name!r} is no column{near}")
        self.wanted = list(dict.fromkeys([*wanted, *self.keep]))
        self.no_row = f"{opened.where}: there is a header but no row of data"
        self.faults: _Faults = {}
        self.left_out: _Faults = {}
        self.filled: Counter[str] = Counter()
        self.words: dict[str, list[str]] = {}
        self.doubts: dict[str, str] = {}
        self.rounded = 0
        self.total = self.dropped = 0
        self.rows: IntArray | None = None  # numbers of the rows of the file, where they are not all of them
        self.row: IntArray = np.empty(0, dtype=np.int64)
        self.notes: list[str] = []
        self.table = pa.table({})
        self.drop: BoolArray = np.zeros(0, dtype=np.bool_)

    def tables(self, size: int) -> Iterator[pa.Table]:
        """Yield what the file holds, at most ``size`` rows at a time."""
        return self.opened.batches(self.wanted, size)

    def sample(self, table: pa.Table) -> Sample:
        """Return the next rows as a sample, without the rows to drop; faults are noted, not raised."""
        n, roles = table.num_rows, self.roles
        self.table, self.drop = table, np.zeros(n, dtype=np.bool_)
        self.row = row = np.arange(self.total, self.total + n) if self.rows is None else self.rows
        features = {name: self._feature(name) for name in roles.features or ()}
        prediction = [self._number(name, "prediction") for name in roles.prediction]
        found = Sample(
            features=_frame(features, n),
            prediction=np.column_stack(prediction) if prediction else np.empty((n, 0)),
            outcome=self._outcome(roles.outcome) if roles.outcome else None,
            score=self._number(roles.score_column, "score") if roles.score_column else None,
            weight=self._weight(roles.weight) if roles.weight else None,
            group=col.labels(table[roles.group], roles.group, roles.words) if roles.group else None,
            cluster=col.labels(table[roles.cluster], roles.cluster, roles.words) if roles.cluster else None,
            id=self._present(roles.id, col.identifiers(table[roles.id])) if roles.id else row,
            row=row,
            classes=roles.classes,
            dropped=int(self.drop.sum()),
            source=self.opened.where,
            kept=self._kept(table),
        )
        if roles.probability:
            found = replace(found, prediction=self._probability(found.prediction))
        self.total += n
        self.dropped += found.dropped
        return found.take(~self.drop) if found.dropped else found

    def finish(self) -> None:
        """Raise one error with all faults, or warn of rows left out and of features to be filled in.

        Raises
        ------
        DataError
            Also if there was no row at all.
        """
        where = self.opened.where
        if not self.total:
            raise DataError(self.no_row)
        if self.faults:
            raise DataError(self._everything())
        left_out = "; ".join(_described(self.left_out, self.total))
        if self.dropped == self.total:
            raise DataError(f"{where}: every row lacks a value: {left_out}")
        notes = self.notes
        if self.dropped:
            said = f"left out {self.dropped} of {self.total} rows with missing values: {left_out}"
            notes.append(f"{said}{self._words()}")
        if self.filled:
            most = ", ".join(f"{name!r} {count}" for name, count in self.filled.most_common(5))
            more = ", ..." if len(self.filled) > 5 else ""
            notes.append(f"filled in {self.filled.total()} missing feature values: {most}{more}")
        notes += [
            f"column {name!r}: {doubt}; --categorical keeps texts, --decimal , reads 1.234,5"
            for name, doubt in self.doubts.items()
        ]
        if self.rounded:
            notes.append(
                f"the probabilities of {self.rounded} of {self.total} rows sum to 1 only up to rounding; "
                "they were divided by their sum"
            )
        for message in notes:
            warnings.warn(f"{where}: {message}", LrqrWarning, stacklevel=3)

    def _everything(self) -> str:
        """Return the error message: all faults, how rows are counted, what to do about missing values."""
        lines = _described(self.faults, self.total)
        counted = "rows are data rows counted from 1"
        if self.opened.header_lines:
            counted += f"; row 1 is line {self.opened.header_lines + 1} of the file"
        advice = ""
        missing = any(kind in {_MISSING, _INFINITE} for _, kind in self.faults)
        if missing and self.keep_rows:
            other = "" if self.on_missing == "impute" else " (fit with --on-missing impute fills features)"
            advice = f"\nevery row must get an answer, so fill these values in first{other}"
        elif missing and self.roles.outcome in self.words:  # to drop these rows may be to lose a class
            advice = ""
        elif missing:
            advice = "\n--on-missing drop leaves these rows out; --on-missing impute fills features in"
        advice += self._words() if missing else ""
        if len(lines) == 1:
            return f"{self.opened.where}: {lines[0]}; {counted}{advice}"
        listed = "\n".join(f"  {line}" for line in lines)
        return f"{self.opened.where}: {len(lines)} problems ({counted}):\n{listed}{advice}"

    def _words(self) -> str:
        """Say which words were taken for missing values, and what to do if they are not."""
        if not self.words:
            return ""
        some = {name: ", ".join(map(repr, found[:3])) for name, found in self.words.items()}
        listed = "; ".join(f"{found} in {name!r}" for name, found in some.items())
        return (
            f"\nthese words count as missing: {listed}; if they are values, such as a class or a country, "
            'say which words are missing with --missing-values ("" for none)'
        )

    def _note(self, faults: _Faults, column: str, kind: str, rows: BoolArray, example: str = "") -> None:
        """Count in the rows (a mask) that have a fault."""
        if not rows.any():
            return
        fault = faults.setdefault((column, kind), _Fault(example))
        fault.count += int(rows.sum())
        first = self.row[np.flatnonzero(rows)[: _ROWS_SHOWN - len(fault.rows)]] + 1
        fault.rows += first.tolist()

    def _missing(self, column: str, kind: str, rows: BoolArray, *, feature: bool = False) -> None:
        """Note missing values as ``on_missing`` says: a fault, rows to drop, or features to fill in."""
        words = col.words_of(self.table[column], rows) if kind == _MISSING else []
        if words and not (feature and self.on_missing == "impute"):
            self.words[column] = words
        if feature and self.on_missing == "impute":
            self.filled.update({column: int(rows.sum())} if rows.any() else {})
        elif self.on_missing == "error" or self.keep_rows:
            self._note(self.faults, column, kind, rows)
        else:
            self._note(self.left_out, column, kind, rows)
            self.drop |= rows

    def _read(self, name: str) -> col.Numbers:
        return col.numbers(self.table[name], name, self.roles.words, self.opened.decimal)

    def _kept(self, table: pa.Table) -> pd.DataFrame:
        """Return the columns to pass through; the file to write has decimal points, whatever this one has."""
        kept = table.select(self.keep)
        if self.opened.decimal == ",":
            columns = [col.with_decimal_points(column) for column in kept.columns]
            kept = pa.table(dict(zip(kept.column_names, columns, strict=True)))
        frame: pd.DataFrame = kept.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)
        return frame

    def _number(self, name: str, what: str, found: col.Numbers | None = None) -> FloatArray:
        found = self._read(name) if found is None else found
        feature = what == "feature"
        remedy = f"pass --categorical {name} if they are labels" if feature else f"the {what} must be numeric"
        if COMMA.fullmatch(found.example):
            remedy += "; if the comma stands before decimals, pass --decimal ,"
        doubt = "" if self.keep_rows or self.opened.decimal == "," else col.misread(self.table[name])
        if doubt:
            self.doubts[name] = doubt
        example = f": {found.example!r}; {remedy}"
        self._note(self.faults, name, "values are texts, not numbers", found.text, example)
        values, infinite = found.values, np.isinf(found.values)  # noqa: PD011 - a field, not pandas
        self._missing(name, _MISSING, np.isnan(values) & ~found.text, feature=feature)
        self._missing(name, _INFINITE, infinite, feature=feature)
        if feature and self.on_missing == "impute":
            values[infinite] = np.nan
        if name in self.roles.positive:
            low = values <= 0
            example = f": {values[low][0]:g}; give it a floor" if low.any() else ""
            self._note(self.faults, name, "values are not positive", low, example)
        return values

    def _feature(self, name: str) -> np.ndarray[Any, Any]:
        """Numbers, or labels where the column is declared categorical or holds mostly texts."""
        column, words = self.table[name], self.roles.words
        if name not in self.roles.categorical and not col.is_category(column):
            found = self._read(name)
            if found.numeric:
                return self._number(name, "feature", found)
        return self._present(name, col.labels(column, name, words), feature=True)

    def _present(
        self, name: str, values: np.ndarray[Any, Any], *, feature: bool = False
    ) -> np.ndarray[Any, Any]:
        """Return labels or identifiers as they are, and note which are missing."""
        self._missing(name, _MISSING, _absent(values), feature=feature)
        return values

    def _weight(self, name: str) -> FloatArray:
        values = self._number(name, "weight")
        negative = values < 0
        example = f": {values[negative][0]:g}; a ratio of densities is not" if negative.any() else ""
        self._note(self.faults, name, "values are negative", negative, example)
        return values

    def _outcome(self, name: str) -> np.ndarray[Any, Any]:
        classes = self.roles.classes
        if not classes:
            return self._possible(name, self._number(name, "outcome"))
        # the name of a class is one, also where it is a word for missing elsewhere
        values = self._present(name, col.labels(self.table[name], name, self.roles.words.difference(classes)))
        index_of = {label: k for k, label in enumerate(classes)}
        truth = {TRUTH[label.lower()]: k for label, k in index_of.items() if label.lower() in TRUTH}
        for value in {str(value) for value in values} - {*index_of}:  # TRUE where the classes are 0 and 1
            index_of[value] = next((k for said, k in truth.items() if TRUTH.get(value.lower()) is said), -1)
        index = np.array([index_of.get(value, -1) for value in values], dtype=np.int64)
        unknown = (index < 0) & ~_absent(values)
        if unknown.any():
            first = str(values[unknown][0])
            listed = ", ".join(classes[:20]) + (", ..." if len(classes) > 20 else "")
            example = f": {first!r}{suggest(first, classes)}; classes: {listed}"
            self._note(self.faults, name, "labels are not among the classes", unknown, example)
        return index

    def _possible(self, name: str, values: FloatArray) -> FloatArray:
        """Return outcomes, and note which lie beyond the bounds that were given for them."""
        low, high = ends_of(self.roles.bounds)
        beyond: BoolArray = np.asarray((values < low) | (values > high))
        example = f": {values[beyond][0]:g}; correct these values or the bounds" if beyond.any() else ""
        self._note(self.faults, name, f"values lie beyond the bounds {low:g} to {high:g}", beyond, example)
        return values

    def _probability(self, probability: FloatArray) -> FloatArray:
        """Return probabilities (n, K) that sum to 1: of both classes for one column; rounded ones divided."""
        if probability.shape[1] == 1 and len(self.roles.classes) == 2:
            large = probability[:, 0] > 1.0
            shown = f": {probability[large][0, 0]:g}; divide percents by 100" if large.any() else ""
            self._note(self.faults, self.roles.prediction[0], "probabilities are larger than 1", large, shown)
            probability = np.column_stack([1.0 - probability, probability])
        columns = ", ".join(self.roles.prediction[:3]) + (", .." if probability.shape[1] > 3 else "")
        whole: BoolArray = np.asarray(np.isfinite(probability).all(axis=1))
        negative: BoolArray = np.asarray(whole & (probability < 0).any(axis=1))
        total = np.where(whole[:, None], probability, 0.0).sum(axis=1)
        apart = np.abs(total - 1)
        tolerance = max(_SUM_TOLERANCE, probability.shape[1] * _half_unit(probability) + 1e-9)
        off: BoolArray = np.asarray(whole & ~negative & (apart > tolerance))
        rounded: BoolArray = np.asarray(whole & ~negative & ~off & (apart > _EXACT))
        advice = "; these are no probabilities (logits can be given in an NPZ)"
        self._note(self.faults, columns, "rows have negative probabilities", negative, advice)
        example = f": {total[off][0]:g}" if off.any() else ""
        if off.any() and np.abs(np.median(total[whole]) - 100.0) < 1.0:
            example += "; these are percents: divide them by 100"
        self._note(self.faults, columns, "rows do not sum to 1", off, example)
        self.rounded += int(rounded.sum())
        return np.where(rounded[:, None], probability / np.where(rounded, total, 1.0)[:, None], probability)


def _half_unit(values: FloatArray) -> float:
    """Return half a unit of the last decimal in which numbers are written, with 2 to 6; 0 if with more."""
    finite = values[np.isfinite(values)]
    for decimals in range(2, 7):
        scaled = finite * 10.0**decimals
        if (np.abs(scaled - np.round(scaled)) < 1e-6).all():
            return float(0.5 * 10.0**-decimals)
    return 0.0


def _absent(values: np.ndarray[Any, Any]) -> BoolArray:
    return np.asarray(pd.isna(values), dtype=np.bool_)


def _frame(columns: dict[str, np.ndarray[Any, Any]], n: int) -> pd.DataFrame:
    if columns and all(values.dtype == np.float64 for values in columns.values()):
        return pd.DataFrame(np.column_stack(list(columns.values())), columns=list(columns))
    series = {name: pd.Series(values, dtype=values.dtype) for name, values in columns.items()}
    return pd.DataFrame(series, index=pd.RangeIndex(n))
