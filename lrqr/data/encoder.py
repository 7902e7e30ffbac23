"""Encode tables of features as matrices: numbers as they are, labels as one 0/1 column per category."""

from __future__ import annotations

import re
import shlex
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from lrqr.arrays import NAMES, SORTED_NAMES, Stored, agree, optional, refuse_large
from lrqr.data import columns as col
from lrqr.data.columns import absent
from lrqr.errors import ArtifactError, DataError, LrqrWarning
from lrqr.plugins import suggest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lrqr.arrays import BoolArray, FloatArray, IntArray

_MANY = 20  # a label in more than this many kinds, on more than half of the rows, is taken for an identifier
_NEARLY_ALL = 0.9  # share of the rows of a column that must look like quantities, or dates
_UNITS = 3
_DATE = re.compile(r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})([T ]+\d{1,2}:\d{2}.*)?")
_QUANTITY = re.compile(
    r"(?P<before>[$€£¥]?)\s*[+-]?\d[\d.,]*(?:[eE][+-]?\d+)?\s*(?P<after>[^\W\d_]{1,4}[/²³\w]{0,4}|[%°$€£¥]\w?|)"
)


class TableEncoder(Stored):
    """Encodes the columns of a table, found by name, as a float64 matrix without a constant column.

    Numbers and booleans pass. A column of texts, or one declared categorical, becomes one indicator per
    category that source or target had at `fit`. A category never seen then is encoded as none of them (all
    zeros) and counted in a warning. Where missing values are filled in, "missing" is something that a row can
    be: a column in which source or target lack values has one more indicator, ``NAME is missing``. Further
    columns of a frame, their order and its index make no difference.

    Attributes
    ----------
    columns_ : tuple of str
        The columns of a frame that are used.
    categories_ : dict of str to tuple of str
        Sorted categories of each categorical column.
    fill_ : dict of str to float or str
        What a missing value becomes: median or most frequent category of the source; empty unless fitted
        with ``on_missing="impute"``.
    missing_ : tuple of str
        Columns with an indicator of missing values.
    names_ : tuple of str
        Names of the d columns of the matrix, such as ``age`` and ``color=red``.
    """

    STATE: ClassVar[dict[str, Any]] = {
        "columns_": NAMES,
        "categories_": dict[str, SORTED_NAMES],
        "fill_": dict[str, float | str],
        "missing_": optional(NAMES),
    }

    columns_: tuple[str, ...]
    categories_: dict[str, tuple[str, ...]]
    fill_: dict[str, float | str]
    missing_: tuple[str, ...] = ()
    names_: tuple[str, ...]
    _whole: frozenset[str] = frozenset()  # columns that are filled in, and lacked nothing at fit

    def fit(
        self,
        frame_source: Any,
        frame_target: Any = None,
        *,
        categorical: Sequence[str] = (),
        on_missing: str = "error",
    ) -> TableEncoder:
        """Learn categories from source and target, and what to fill in from the source.

        Parameters
        ----------
        frame_source : data frame of shape (n, p), or matrix
            All its columns are used.
        frame_target : data frame, or iterable of data frames (batches), optional
            Must have the same columns by name; learned from it are categories, and where values are missing.
        categorical : sequence of str
            Columns whose values are labels even where they look like numbers.
        on_missing : {"error", "drop", "impute"}
            Only ``"impute"`` learns what to fill in.

        Returns
        -------
        TableEncoder
            Itself.

        Raises
        ------
        DataError
            All columns at once that are missing, or numeric in one file and text in the other, or that look
            like identifiers.

        Warns
        -----
        LrqrWarning
            Of columns that are left out since one side has no value.
        """
        columns = col.frame_columns(frame_source)
        _require(categorical, columns, "categorical")
        table = col.table_of(frame_source, columns)
        source = {name: _read(table[name], name, name in categorical) for name in columns}
        labeled = [name for name, values in source.items() if values.dtype == object]
        seen = {name: set(_present(source[name])) for name in labeled}
        pieces: dict[str, list[np.ndarray[Any, Any]]] = {name: [] for name in columns}
        for batch in _frames(frame_target):
            _require(columns, col.frame_columns(batch), "target")
            table = col.table_of(batch, columns)
            for name in columns:
                known = name in categorical or (name in seen and col.is_label(table[name]))
                values = _read(table[name], name, known)
                _same_kind(name, source[name], values)
                pieces[name].append(values)
                if name in seen:
                    seen[name].update(_present(values))
        target = {name: np.concatenate(parts) for name, parts in pieces.items() if parts}
        _refuse_disguised({name: source[name] for name in labeled if name not in categorical})
        if on_missing == "impute":
            columns = _with_values(columns, source, target)
        self.columns_ = columns
        self.categories_ = {name: tuple(sorted(seen[name])) for name in labeled if name in columns}
        self.fill_, self.missing_ = {}, ()
        if on_missing == "impute":
            self.fill_ = {name: _typical(source[name]) for name in columns}
            sides = (source, target)
            self.missing_ = tuple(
                name for name in columns if any(name in side and absent(side[name]).any() for side in sides)
            )
        self._whole = frozenset(self.fill_) - {*self.missing_}
        self.names_ = self._names()
        return self

    @property
    def categorical_(self) -> tuple[str, ...]:
        """Columns that are encoded as indicators; give them as roles to whatever reads further files."""
        return tuple(self.categories_)

    def transform(
        self, frame: Any, *, row: IntArray | None = None, unseen: Counter[tuple[str, str]] | None = None
    ) -> FloatArray:
        """Encode a frame.

        Parameters
        ----------
        frame : data frame of shape (n, p'), or matrix
        row : int array of shape (n,), optional
            Row numbers from 0 to use in messages; positions if not given.
        unseen : Counter, optional
            Takes the counts of unseen (column, category) instead of a warning, to be summed over batches and
            given to `warn_unseen`.

        Returns
        -------
        array of shape (n, d)

        Raises
        ------
        DataError
            All missing columns at once; texts in a numeric column; a missing value that nothing fills.
        """
        rows = np.arange(len(frame)) if row is None else row
        counts: Counter[tuple[str, str]] = Counter()
        read = self.read(frame, rows)
        blocks = [self._encoded(name, values, rows, counts) for name, values in read.items()]
        if unseen is None:
            warn_unseen(counts)
        else:
            unseen.update(counts)
        matrix = np.concatenate(blocks, axis=1) if blocks else np.empty((len(rows), 0))
        return np.ascontiguousarray(matrix)

    def read(self, frame: Any, row: IntArray | None = None) -> dict[str, np.ndarray[Any, Any]]:
        """Read the columns of a frame as `fit` found them to be: numbers (n,) or labels (n,)."""
        _require(self.columns_, col.frame_columns(frame), "feature")
        if not self.categories_ and isinstance(frame, pd.DataFrame) and (frame.dtypes == np.float64).all():
            own = dict(zip(map(str, frame.columns), frame.columns, strict=True))
            return {name: frame[own[name]].to_numpy() for name in self.columns_}  # nothing to convert
        table = col.table_of(frame, self.columns_)
        rows = np.arange(len(frame)) if row is None else row
        return {name: self._read(table[name], name, rows) for name in self.columns_}

    def novel(self, frame: Any) -> BoolArray:
        """Return which rows (n,) hold what `fit` never met: a category, or a gap where none was."""
        found: BoolArray = np.zeros(len(frame), dtype=np.bool_)
        names = [name for name in self.columns_ if name in self.categories_ or name in self._whole]
        table = col.table_of(frame, names)
        for name in names:
            values = self._read(table[name], name, np.arange(len(frame)))
            missing = absent(values)
            if name in self._whole:
                found |= missing
            if name in self.categories_:
                found |= ~missing & ~np.isin(values.astype(str), self.categories_[name])
        return found

    def _complete(self, sizes: dict[str, Any]) -> None:
        unknown = {*self.categories_, *self.fill_} - {*self.columns_}
        if unknown:
            raise ArtifactError(f"columns lacks {min(unknown)!r}, which has categories or fills")
        for name, value in self.fill_.items():
            if isinstance(value, str) != (name in self.categories_):
                raise ArtifactError(f"fill.{name}: {value!r} does not fit the kind of the column")
        if "missing_" in vars(self):  # older models do not know
            self._whole = frozenset(self.fill_) - {*self.missing_}
        unknown = {*self.missing_} - {*self.fill_}
        if unknown:
            raise ArtifactError(f"missing names {min(unknown)!r}, which nothing fills in")
        self.names_ = self._names()
        agree(sizes, "d", len(self.names_), "columns")

    def _names(self) -> tuple[str, ...]:
        names: list[str] = []
        for name in self.columns_:
            labels = self.categories_.get(name)
            names += [name] if labels is None else [f"{name}={label}" for label in labels]
            names += [f"{name} is missing"] if name in self.missing_ else []
        return tuple(names)

    def _read(self, column: Any, name: str, rows: IntArray) -> np.ndarray[Any, Any]:
        """Return labels, or numbers, as `fit` found the column to be."""
        if name in self.categories_:
            return col.labels(column, name)
        found = col.numbers(column, name)
        if found.texts:
            raise DataError(
                f"column {name!r} was numeric at fit but holds the text {found.example!r} in row "
                f"{rows[found.text][0] + 1} (data rows counted from 1; {found.texts} such rows); correct it, "
                f"or fit with --categorical {name}"
            )
        return found.values  # noqa: PD011 - not pandas

    def _encoded(
        self, name: str, values: np.ndarray[Any, Any], rows: IntArray, counts: Counter[tuple[str, str]]
    ) -> FloatArray:
        """Return the columns of the matrix that a column becomes: one, or as many as there are categories.

        One more says which values are missing, if `fit` met missing ones.
        """
        missing = absent(values)
        if missing.any():
            if name not in self.fill_:
                first = rows[missing][:5] + 1
                shown = ", ".join(map(str, first)) + (", ..." if missing.sum() > 5 else "")
                raise DataError(
                    f"column {name!r}: {missing.sum()} of {len(rows)} values are missing or infinite "
                    f"(rows {shown}, data rows counted from 1); fill them in, or fit with --on-missing impute"
                )
            values = np.where(missing, self.fill_[name], values)
        if name in self.categories_:
            categories = pd.Index(self.categories_[name], dtype=object)
            index = categories.get_indexer(pd.Index(values, dtype=object))
            counts.update((name, label) for label in values[index < 0])
            block = np.asarray(index[:, None] == np.arange(len(categories)), dtype=np.float64)
        else:
            refuse_large(values, name)
            block = values[:, None]
        return np.column_stack([block, missing]) if name in self.missing_ else block


def warn_unseen(unseen: Mapping[tuple[str, str], int]) -> None:
    """Warn of categories that `TableEncoder.fit` never met, one line a column."""
    by_column: dict[str, dict[str, int]] = {}
    for (name, label), count in unseen.items():
        by_column.setdefault(name, {})[label] = count
    for name, counts in by_column.items():
        shown = ", ".join(map(repr, list(counts)[:5])) + (", ..." if len(counts) > 5 else "")
        warnings.warn(
            f"column {name!r}: {sum(counts.values())} rows hold categories never seen at fit ({shown}); they "
            "are encoded as none of the known ones",
            LrqrWarning,
            stacklevel=3,
        )


def _frames(target: Any) -> Iterable[Any]:
    if target is None:
        return ()
    return (target,) if hasattr(target, "__arrow_c_stream__") or isinstance(target, np.ndarray) else target


def _read(column: Any, name: str, as_labels: bool) -> np.ndarray[Any, Any]:
    """Return labels (object) or numbers (float64), as the type of the column or ``as_labels`` says."""
    if as_labels or col.is_category(column):
        return col.labels(column, name)
    found = col.numbers(column, name)
    if found.texts and found.numeric:
        first = found.text.argmax() + 1
        raise DataError(
            f"column {name!r} holds the text {found.example!r} among numbers (row {first} of the data, "
            f"counted from 1; {found.texts} such rows); correct it, or pass --categorical {name}"
        )
    return col.labels(column, name) if col.is_text(column) else found.values  # noqa: PD011 - not pandas


def _same_kind(name: str, source: np.ndarray[Any, Any], target: np.ndarray[Any, Any]) -> None:
    if source.dtype == target.dtype:
        return
    texts, numbers = ("source", "target") if source.dtype == object else ("target", "source")
    found = _present(source if texts == "source" else target)
    if found:  # a column without any value is of either kind
        raise DataError(
            f"column {name!r} holds texts in the {texts} ({found[0]!r}) but numbers in the {numbers}; "
            f"correct it, or pass --categorical {name}"
        )


def _present(values: np.ndarray[Any, Any]) -> list[str]:
    return [value for value in values.tolist() if value is not None] if values.dtype == object else []


def _with_values(
    columns: Sequence[str],
    source: Mapping[str, np.ndarray[Any, Any]],
    target: Mapping[str, np.ndarray[Any, Any]],
) -> tuple[str, ...]:
    """Return the columns that have a value in both samples; say which are left out."""
    empty = {
        name: side
        for side, sample in (("target", target), ("source", source))
        for name, values in sample.items()
        if len(values) and absent(values).all()
    }
    if empty:
        listed = ", ".join(f"{name!r} in the {side}" for name, side in empty.items())
        warnings.warn(
            f"no row has a value: {listed}; nothing can be compared there, so {_left_out(len(empty))}",
            LrqrWarning,
            stacklevel=3,
        )
    left = tuple(name for name in columns if name not in empty)
    if not left and empty:
        raise DataError(
            f"no feature has values in source and target: {', '.join(map(repr, empty))} are empty"
        )
    return left


def _left_out(count: int) -> str:
    return "this column is left out" if count == 1 else f"these {count} columns are left out"


def _typical(values: np.ndarray[Any, Any]) -> float | str:
    if values.dtype == object:
        counts = Counter(_present(values))
        return min(counts, key=lambda label: (-counts[label], label)) if counts else ""
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if finite.size else 0.0


def _refuse_disguised(labeled: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Refuse texts that are no categories: identifiers, numbers with units, dates."""
    suspects, problems = [], []
    for name, values in labeled.items():
        counts = Counter(_present(values))
        looks = _looks_like(counts)
        if looks:
            comma = " (if the comma stands before decimals, pass --decimal ,)" if "comma" in looks else ""
            typed = shlex.quote(name)
            problems.append(
                f"{name!r} looks like {looks}: convert it{comma}, or --exclude {typed} or "
                f"--categorical {typed}"
            )
        elif len(counts) > max(_MANY, len(values) / 2):
            suspects.append(f"{name!r} ({len(counts)} different texts in {len(values)} rows)")
    if suspects:
        problems.append(
            f"these columns look like identifiers, not features: {', '.join(suspects)}; pass --exclude (or "
            "--id) for them, or --categorical if each text is to be a category"
        )
    if problems:
        raise DataError("\n".join(problems))


def _looks_like(counts: Counter[str]) -> str:
    """Say what the texts of a column seem to be instead of categories; empty if nothing.

    Units are few kinds (``km``, ``kg``): house numbers such as ``12a`` and ``12b`` are no quantities.
    """
    if len(counts) <= _MANY:
        return ""
    enough = _NEARLY_ALL * counts.total()
    dates = [text for text in counts if _DATE.fullmatch(text.strip())]
    if sum(counts[text] for text in dates) > enough:
        return f"dates ({dates[0]!r})"
    found = {text: match for text in counts if (match := _QUANTITY.fullmatch(text.strip()))}
    units = Counter({match["before"] + match["after"] for match in found.values()} - {""})
    if sum(counts[text] for text in found) > enough and len(units) <= _UNITS:
        example = next((text for text, match in found.items() if match["before"] + match["after"]), "")
        commas = next((text for text in found if "," in text), "")
        return f"numbers with a unit ({example!r})" if example else f"numbers with a comma ({commas!r})"
    return ""


def _require(wanted: Sequence[str], present: Sequence[str], what: str) -> None:
    known = frozenset(present)
    lacking = [name for name in wanted if name not in known]
    if lacking:
        listed = ", ".join(f"{name!r}{suggest(name, present)}" for name in lacking[:10])
        more = f" and {len(lacking) - 10} more" if len(lacking) > 10 else ""
        raise DataError(f"{len(lacking)} {what} columns are missing: {listed}{more}")
