"""The user's own tables: three files, or one file that a declared shift splits into source and target.

An experiment names them under ``[[data.tables]]``; the fields are documented in docs/experiments.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lrqr.data import tables
from lrqr.data.encoder import TableEncoder
from lrqr.data.formats import open_table
from lrqr.errors import DataError
from lrqr.plugins import suggest
from lrqr.study.datasets import DataFile, Rows, ShiftData, data_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lrqr.arrays import BoolArray, FloatArray, IntArray

TITLE = "Your own tables, named in an experiment file"
SOURCE = "yours"
LICENSE = "yours"
FILES: tuple[DataFile, ...] = ()
SHIFTS: tuple[str, ...] = ()

KEPT = 0.8
"""Share of each file's rows that a split of three given files draws."""


@dataclass(frozen=True)
class _Parts:
    """Row numbers of the parts of one split, in one stacked sample."""

    train: IntArray
    source: IntArray
    target: IntArray
    test: IntArray
    ratio: FloatArray | None = None


def split(shift: str, *, seed: int, table: Any) -> ShiftData:
    """Draw one random split of the user's table.

    Without predictions in the file, ``train_share`` of the rows (of the source rows, where a column tells
    source and target apart) train the base learner. Half of the target is unlabeled, half is for testing.
    Three given files are what they are: a split draws :data:`KEPT` of the rows of each.

    Parameters
    ----------
    shift : str
        The name of the table, for messages.
    seed : int
    table : lrqr.study.config.Table

    Returns
    -------
    ShiftData
        With the true ratio of the rows if the shift is ``tilt`` or ``soft``.
    """
    rng = np.random.default_rng(seed)
    columns, samples = _read_all(table, shift)
    needs_model = table.score_column is None and samples[0].prediction.shape[1] == 0
    sizes = [len(sample) for sample in samples]
    frame = pd.concat([sample.features for sample in samples], ignore_index=True)
    frame[list(table.log)] = np.log(_numeric(frame, table.log, shift))
    share = table.train_share if needs_model else 0.0
    parts = _three(rng, sizes, share) if len(samples) == 3 else _one(rng, frame, table.shift, share, shift)
    limited = replace(
        parts,
        source=parts.source[: table.source_rows or None],
        target=parts.target[: table.target_rows or None],
        test=parts.test[: table.target_rows or None],
    )
    return _assemble(shift, table, samples, frame[list(columns)], limited)


def files(chosen: Sequence[Any]) -> list[str]:
    """Return the paths that tables name; a relative path is looked up in the data folder."""
    named = [[table.path] if table.path else [table.source, table.target, table.test] for table in chosen]
    return [
        str(data_folder() / path) if not Path(path).is_absolute() else path for row in named for path in row
    ]


def _path(path: str) -> str:
    if not Path(path).exists():
        raise DataError(
            f"there is no table {path} (relative paths start at the experiment file or the data folder)"
        )
    return path


def _read_all(table: Any, name: str) -> tuple[tuple[str, ...], list[tables.Sample]]:
    """Read the files of a table; return the names of the features, and samples with what the shift needs."""
    paths = [_path(path) for path in files([table])]
    resolved = tables.resolve(tables.Roles.of_options(vars(table)), *paths)
    chosen = resolved.features or ()
    shift = [] if table.shift is None else [table.shift.column, *table.shift.tilt, *table.shift.soft]
    extra = [column for column in shift if column is not None and column not in chosen]
    known = open_table(paths[0]).columns
    unknown = [column for column in (*extra, *table.log) if column not in known]
    if unknown:
        raise DataError(f"table {name} has no column {unknown[0]!r}{suggest(unknown[0], known)}")
    classes = resolved.classes or _labels(paths[0], table)
    wanted = replace(resolved, features=(*chosen, *extra), exclude=(), classes=classes)
    label = "outcome" if table.score_column is None else "score"
    given = ("prediction",) if resolved.prediction else ()
    needs = [("features", label, *given)] * len(paths)
    if len(paths) == 3:
        needs[1] = ("features",)  # the target has no outcome, or must not show it
    return chosen, [
        _read(path, wanted, need, table.on_missing) for path, need in zip(paths, needs, strict=True)
    ]


@cache
def _schema(path: str) -> dict[str, str]:
    return {column.name: column.kind for column in tables.schema(path)}


def _labels(path: str, table: Any) -> tuple[str, ...]:
    """Return the classes of an outcome of labels that a base learner is to predict; empty for numbers."""
    text = _schema(path).get(table.outcome) == "categorical"
    if table.score_column or table.prediction or not (text or table.classify):
        return ()
    as_group = tables.Roles(group=table.outcome, features=())
    group = tables.read(path, as_group, need=("group",), on_missing=table.on_missing).group
    return tuple(sorted(set(group.tolist()) - {None})) if group is not None else ()


@cache
def _read(path: str, roles: tables.Roles, need: tuple[str, ...], on_missing: str) -> tables.Sample:
    return tables.read(path, roles, need=need, optional=("prediction",), on_missing=on_missing)


def _three(rng: np.random.Generator, sizes: Sequence[int], share: float) -> _Parts:
    """Draw from stacked source, target and test files."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    drawn = [
        start + rng.permutation(size)[: round(KEPT * size)]
        for start, size in zip(starts, sizes, strict=False)
    ]
    count = round(share * len(drawn[0]))
    return _Parts(drawn[0][:count], drawn[0][count:], drawn[1], drawn[2])


def _one(rng: np.random.Generator, frame: pd.DataFrame, shift: Any, share: float, name: str) -> _Parts:
    """Split one table by its declared shift."""
    order = rng.permutation(len(frame))
    if shift.tilt:
        return _tilted(rng, order, np.exp(_sum(frame, shift.tilt, name)), share)
    if shift.soft:
        z = sum(
            (
                weight * _standardized(_sum(frame, {column: 1.0}, name))
                for column, weight in shift.soft.items()
            ),
            start=np.zeros(len(frame)),
        )
        slope = shift.slope * _standardized(z)
        train, rest = np.split(order, [round(share * len(order))])
        shifted = rng.uniform(size=len(rest)) < 1 / (1 + np.exp(-slope[rest]))
        halves = np.array_split(rest[shifted], 2)
        return _Parts(train, rest[~shifted], halves[0], halves[1], np.exp(slope))
    is_source, is_target = _membership(frame, shift, name)
    source = order[is_source[order]]
    train, source = np.split(source, [round(share * len(source))])
    halves = np.array_split(order[is_target[order]], 2)
    return _Parts(train, source, halves[0], halves[1])


def _tilted(rng: np.random.Generator, order: IntArray, ratio: FloatArray, share: float) -> _Parts:
    """Tibshirani et al. (2019): half of the rows train and calibrate, the other half is resampled.

    They draw a quarter as many rows as the second half has, with replacement and with probability
    proportional to the ratio. Here that half is halved first, and so many rows are drawn from each, so that
    the unlabeled target and the test rows have none in common.
    """
    kept, pool = np.array_split(order, 2)
    train, source = np.split(kept, [round(share * len(kept))])
    count = round(len(pool) / 4)
    target, test = (
        rng.choice(half, size=count, p=ratio[half] / ratio[half].sum()) for half in np.array_split(pool, 2)
    )
    return _Parts(train, source, target, test, ratio)


def _membership(frame: pd.DataFrame, shift: Any, name: str) -> tuple[BoolArray, BoolArray]:
    if shift.at is not None:
        values = _numeric(frame, [shift.column], name)[:, 0]
        is_source = values <= (np.median(values) if shift.at == "median" else shift.at)
        return is_source, ~is_source
    column = frame[shift.column]
    found = [np.asarray(column.isin(_alike(wanted, column))) for wanted in (shift.source, shift.target)]
    for wanted, rows in zip((shift.source, shift.target), found, strict=True):
        if not rows.any():
            shown = ", ".join(map(str, column.unique()[:10]))
            raise DataError(f"table {name}: {shift.column} is nowhere {wanted}; it holds {shown}")
    if (found[0] & found[1]).any():
        raise DataError(f"table {name}: source and target of {shift.column} have values in common")
    return found[0], found[1]


def _alike(wanted: Sequence[Any], column: pd.Series[Any]) -> list[Any]:
    """Give the values of the configuration the type of the column (labels are strings)."""
    return (
        [float(value) for value in wanted] if column.dtype == np.float64 else [str(value) for value in wanted]
    )


def _assemble(
    name: str, table: Any, samples: Sequence[tables.Sample], frame: pd.DataFrame, parts: _Parts
) -> ShiftData:
    """Encode the rows in use: categories are those of all parts, imputed values those of the source."""
    ours, theirs = np.concatenate([parts.train, parts.source]), np.concatenate([parts.target, parts.test])
    encoder = TableEncoder().fit(
        frame.iloc[ours], frame.iloc[theirs], categorical=table.categorical, on_missing=table.on_missing
    )
    used = np.unique(np.concatenate([ours, theirs]))
    features = np.full((len(frame), len(encoder.names_)), np.nan)
    features[used] = encoder.transform(frame.iloc[used])
    given = samples[0].prediction.shape[1] > 0 or table.score_column is not None
    outcome = [sample.outcome if sample.score is None else sample.score for sample in samples]
    rows = Rows(
        features,
        _stacked(outcome, [len(sample) for sample in samples]),
        _stacked([sample.prediction for sample in samples], [len(s) for s in samples]) if given else None,
        parts.ratio,
    )
    target = rows.take(parts.target).unlabeled()
    if target.prediction is not None and np.isnan(target.prediction).any():
        target = replace(target, prediction=None)
    return ShiftData(
        name=name,
        feature_names=tuple(encoder.names_),
        source=rows.take(parts.source),
        target=target,
        test=rows.take(parts.test),
        train=None if given else rows.take(parts.train),
        classes=samples[0].classes,
    )


def _stacked(arrays: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Stack what the files have; rows of a file that lacks it (the target's) get NaN or -1, never used."""
    first = next(array for array in arrays if array is not None)
    missing = np.nan if first.dtype == np.float64 else -1
    parts = [
        np.full((size, *first.shape[1:]), missing)
        if array is None or array.shape[1:] != first.shape[1:]
        else array
        for array, size in zip(arrays, sizes, strict=True)
    ]
    return np.concatenate(parts)


def _names(frame: pd.DataFrame) -> list[str]:
    return [str(name) for name in frame.columns]


def _numeric(frame: pd.DataFrame, columns: Sequence[str], name: str) -> FloatArray:
    """Return numeric columns (n, k); DataError for those that do not exist or hold labels."""
    wrong = [c for c in columns if c not in frame or frame[c].dtype != np.float64]
    if wrong:
        hint = suggest(wrong[0], _names(frame))
        raise DataError(f"table {name} has no numeric column {', '.join(map(repr, wrong))}{hint}")
    return frame[list(columns)].to_numpy(np.float64)


def _sum(frame: pd.DataFrame, weights: dict[str, float], name: str) -> FloatArray:
    return np.asarray(_numeric(frame, list(weights), name) @ np.array(list(weights.values())))


def _standardized(values: FloatArray) -> FloatArray:
    spread = values.std()
    return np.asarray((values - values.mean()) / (spread if spread > 0 else 1.0))
