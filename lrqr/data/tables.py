"""Files and frames become samples: the only door for data.

A sample holds float64 numbers, labels as strings, and the row numbers of its file. Everything that is wrong
with a file is said in one message, also where the file is read in batches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lrqr.data import columns as col
from lrqr.data import roles as parts
from lrqr.errors import DataError, UsageError
from lrqr.data.formats import open_table, reader
from lrqr.data.roles import Roles
from lrqr.data.samples import Reading, Sample, warn_absent_classes
from lrqr.data.writing import open_writer, write

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    Path = str | os.PathLike[str]

__all__ = [
    "Column",
    "Roles",
    "Sample",
    "batches",
    "frame_sample",
    "one_sided",
    "open_writer",
    "read",
    "reader",
    "resolve",
    "schema",
    "warn_absent_classes",
    "write",
]

_FLAGS = {
    "outcome": "--outcome",
    "score": "--score-column",
    "group": "--group",
    "id": "--id",
    "weight": "--weight-column",
    "prediction": "--prediction or --probability",
}
_WHOLE_FILE = 1 << 20  # rows per piece where all of a file is wanted


@dataclass(frozen=True)
class Column:
    """A column as it would be read: kind is numeric, categorical, or the type that cannot be used."""

    name: str
    kind: str
    rows: int
    missing: int
    infinite: int
    examples: tuple[Any, ...]


def resolve(roles: Roles, source: Path, *others: Path) -> Roles:
    """Find the columns of all roles by the names in the files; no row is read.

    Parameters
    ----------
    roles : Roles
        What the user said, patterns included.
    source : path
        The labeled source: roles other than features are looked up here.
    *others : paths
        Target and other files: features that are not named are the columns that all files have.

    Returns
    -------
    Roles
        Plain names, fit to be stored and used for every further file.
    """
    opened = [open_table(path) for path in (source, *others)]
    filled = roles.with_native(opened[0].roles)
    columns = [file.columns for file in opened]
    natural = [file.roles.get("features", file.columns) for file in opened]
    if filled.features is None:  # an NPZ says itself which of its arrays are features
        columns[1:] = natural[1:]
        columns += [natural[0]] if "features" in opened[0].roles else []
    found = parts.resolve(filled, *columns, where=[str(path) for path in (source, *others)])
    parts.refuse_disjoint(found, *natural)
    return found


def one_sided(roles: Roles, source: Path, target: Path) -> str:
    """Say which columns without a role only one of two files has; see `lrqr.data.roles.one_sided`."""
    opened = [open_table(path) for path in (source, target)]
    return parts.one_sided(roles, *(file.roles.get("features", file.columns) for file in opened))


def read(
    path: Path,
    roles: Roles,
    *,
    need: Sequence[str] = ("features",),
    optional: Sequence[str] = ("id",),
    on_missing: str = "error",
    keep_rows: bool = False,
) -> Sample:
    """Read a whole file.

    Parameters
    ----------
    path : path
        CSV (also .gz), Parquet (a file or a directory of parts) or NPZ.
    roles : Roles
        Best those that `resolve` returned for source and target together.
    need : sequence of str
        Roles without which the file is refused: features, prediction, outcome, score, group, id, weight.
    optional : sequence of str
        Roles that are read where their columns exist. All other columns are not looked at.
    on_missing : {"error", "drop", "impute"}
        Missing means NaN, empty, null or infinite, in a column that is used. ``"drop"`` leaves the row out,
        ``"impute"`` leaves features to the encoder and drops rows that lack anything else; both warn with
        counts.
    keep_rows : bool
        One row out per row in: whatever would drop a row is an error.

    Raises
    ------
    DataError
        One message with everything that is wrong.
    """
    opened = open_table(path)
    plan, wanted = _plan(roles, opened.columns, opened.roles, (need, optional), str(path))
    reading = Reading(str(path), plan, on_missing, keep_rows, opened.header_lines)
    tables = list(opened.batches(wanted, _WHOLE_FILE))
    whole = (
        pa.concat_tables(tables)
        if tables
        else pa.table({name: pa.array([], pa.float64()) for name in wanted})
    )
    return _finished(reading, dict(col.frame_items(whole, wanted)), whole.num_rows)


def frame_sample(
    frame: Any,
    roles: Roles,
    *,
    need: Sequence[str] = ("features",),
    optional: Sequence[str] = ("id",),
    on_missing: str = "error",
    keep_rows: bool = False,
    name: str = "data frame",
) -> Sample:
    """Make a sample of a pandas, polars or Arrow table, or of a matrix with columns f0, f1, ..; see `read`.

    The index of a pandas frame plays no part: rows are counted from 0 in their order.
    """
    plan, wanted = _plan(roles, col.frame_columns(frame), {}, (need, optional), name)
    reading = Reading(name, plan, on_missing, keep_rows)
    return _finished(reading, dict(col.frame_items(frame, wanted)), len(frame))


def batches(
    path: Path,
    roles: Roles,
    *,
    size: int = 65536,
    need: Sequence[str] = ("features",),
    optional: Sequence[str] = ("id",),
    on_missing: str = "error",
    keep_rows: bool = False,
) -> Iterator[Sample]:
    """Read a file in samples of at most ``size`` rows, in its order and in O(size) memory (NPZ: as a whole).

    Parameters are those of `read`. After a fault the rest of the file is still read, so that the error at
    the end lists all faults, but no further sample is given. Name the categorical features in ``roles``
    (those of a fitted encoder): what a column is must not depend on a batch.
    """
    opened = open_table(path)
    plan, wanted = _plan(roles, opened.columns, opened.roles, (need, optional), str(path))
    reading = Reading(str(path), plan, on_missing, keep_rows, opened.header_lines)
    for table in opened.batches(wanted, size):
        sample = reading.sample(dict(col.frame_items(table, wanted)), table.num_rows)
        if len(sample) and not reading.faults:
            yield sample
    reading.finish()


def schema(path: Path) -> list[Column]:
    """Describe the columns of a file as they would be read, in one pass in O(batch) memory."""
    opened = open_table(path)
    found = {name: _Seen() for name in opened.columns}
    for table in opened.batches(opened.columns, _WHOLE_FILE // 16):
        for name, column in col.frame_items(table, opened.columns):
            found[name].look(column, name)
    return [seen.described(name) for name, seen in found.items()]


@dataclass
class _Seen:
    rows: int = 0
    present: int = 0
    texts: int = 0
    infinite: int = 0
    unusable: str = ""
    examples: tuple[Any, ...] = ()

    def look(self, column: pa.ChunkedArray, name: str) -> None:
        self.rows += len(column)
        try:
            numbers = col.numbers(column, name)
        except DataError:
            self.unusable = str(column.type)
            self.present += len(column) - column.null_count
            return
        self.texts += int(numbers.text.size)
        missing = np.isnan(numbers.values)
        self.infinite += int(np.isinf(numbers.values).sum())
        missing[numbers.text] = False
        self.present += int(np.sum(~missing))
        if len(self.examples) < 3:
            fresh = (column[int(k)].as_py() for k in np.flatnonzero(~missing)[:100])
            self.examples = tuple(dict.fromkeys((*self.examples, *fresh)))[:3]

    def described(self, name: str) -> Column:
        mistakes = 0 < 2 * self.texts < self.present
        kind = "numeric with texts" if mistakes else "categorical" if self.texts else "numeric"
        return Column(
            name, self.unusable or kind, self.rows, self.rows - self.present, self.infinite, self.examples
        )


def _plan(
    roles: Roles,
    columns: Sequence[str],
    native: Mapping[str, tuple[str, ...]],
    asked: tuple[Sequence[str], Sequence[str]],
    where: str,
) -> tuple[Roles, list[str]]:
    """Roles as far as this file has them, and the columns to read."""
    need, optional = asked
    filled = roles.with_native(native)
    usable = frozenset(columns)
    required = []
    for role in ("outcome", "score", "group", "id", "weight"):
        field = "score_column" if role == "score" else role
        name = getattr(filled, field)
        if role in need and name is None:
            raise UsageError(f"{where}: which column is the {role}? Pass {_FLAGS[role]} NAME")
        if role in need:
            required.append(field)
        elif role not in optional or name not in usable:
            filled = replace(filled, **{field: None})  # type: ignore[arg-type]
    if "prediction" in need and not filled.prediction:
        raise UsageError(f"{where}: which columns are predictions? Pass {_FLAGS['prediction']} NAME")
    lacking: list[str] = []
    prediction = parts.expand(filled.prediction, columns, lacking, "prediction")
    if filled.features is None:  # a column whose role is of no interest now is still no feature
        taken = sorted(usable & {*roles.with_native(native).taken, *prediction})
        filled = replace(filled, exclude=(*filled.exclude, *taken))
    if "prediction" not in need and (lacking or "prediction" not in optional):
        filled = replace(filled, prediction=(), probability=False)
    if "features" not in need:
        filled = replace(filled, features=(), exclude=(), categorical=())
    elif filled.features is not None:  # chosen already: a column left out then may not exist here
        left_out = parts.expand(filled.exclude, filled.features, [], "")
        filled = replace(filled, features=tuple(n for n in filled.features if n not in left_out), exclude=())
    natural = [native["features"]] if "features" in native and filled.features is None else []
    filled = parts.resolve(filled, columns, *natural, need=required, where=(where,))
    single = (filled.outcome, filled.score_column, filled.group, filled.id, filled.weight)
    every = (*(filled.features or ()), *filled.prediction, *(name for name in single if name is not None))
    return filled, list(dict.fromkeys(every))


def _finished(reading: Reading, items: Mapping[str, pa.ChunkedArray], n: int) -> Sample:
    sample = reading.sample(items, n)
    reading.finish()
    return sample
