"""Tables named in an experiment file: three files, or one file that a declared shift splits into two domains.

An experiment lists them under ``[[data.tables]]``; the fields are documented in docs/experiments.md. An entry
may also name a shift of another data set, so that one experiment can run on several.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lrqr import plugins
from lrqr.calibrate.rows import Rows
from lrqr.data import tables
from lrqr.data.encoder import TableEncoder
from lrqr.data.formats import open_table
from lrqr.errors import DataError
from lrqr.plugins import suggest
from lrqr.study.datasets import (
    DataFile,
    ShiftData,
    data_folder,
    drawn,
    locate,
    selected,
    standardized,
    unlabeled_and_test,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from lrqr.arrays import BoolArray, FloatArray, IntArray
    from lrqr.study.config import Shift, Table

TITLE = "Your own tables, named in an experiment file"
SOURCE = "yours"
LICENSE = "yours"
FILES: tuple[DataFile, ...] = ()
SHIFTS: tuple[str, ...] = ()

_WAVES = {"sine": np.sin, "cosine": np.cos}


def split(shift: str, *, seed: int, table: Table) -> ShiftData:
    """Draw one random split of a table.

    Without predictions in the file, ``train_share`` of the rows (of the source rows, where a column tells
    source and target apart), at most ``train_rows``, train the base learner. Half of the target is unlabeled,
    half is for testing. Of three given files a split draws `lrqr.study.datasets.KEPT` of the rows of each.

    Parameters
    ----------
    shift : str
        The name of the table, for messages.
    seed : int
    table : Table

    Returns
    -------
    ShiftData
        With the true ratio of the rows if the shift is ``tilt`` or ``soft``.
    """
    if table.dataset is not None:
        made: ShiftData = plugins.load("study.datasets", table.dataset).split(**table.options, seed=seed)
        return replace(made, name=shift)
    columns, samples = _samples(table)
    frames = [_prepared(sample.features, table) for sample in samples]
    given = table.score_column is not None or samples[0].prediction.shape[1] > 0
    train_share = 0.0 if given else table.train_share
    if table.shift is None:
        names, encode = _encoding(table, frames[0][columns], frames[1][columns])
        rows = (_rows(sample, encode(frame)) for sample, frame in zip(samples, frames, strict=True))
        source, target, test = rows
        whole = ShiftData(shift, names, source, target.unlabeled(), test, classes=samples[0].classes)
        return drawn(shift, seed, whole=whole, train_share=train_share)
    frame = frames[0]
    parts, ratio = _dealt(np.random.default_rng(seed), frame, table, train_share)
    ours = np.concatenate([parts["train"], parts["source"]])
    theirs = np.concatenate([parts["target"], parts["test"]])
    names, encode = _encoding(table, frame.iloc[ours][columns], frame.iloc[theirs][columns])
    features = np.full((len(frame), len(names)), np.nan)
    used = np.unique(np.concatenate([*parts.values()]))
    features[used] = encode(frame.iloc[used])
    return ShiftData.dealt(
        shift,
        names,
        replace(_rows(samples[0], features), ratio=ratio),
        **parts,
        classes=samples[0].classes,
    )


def files(chosen: Sequence[Table]) -> list[Path]:
    """Return the files of tables; a relative path starts at the data folder."""
    paths: list[Path] = []
    for table in chosen:
        named = (table.path, table.source, table.target, table.test)
        paths += [_path(name) for name in named if name is not None]
        if table.dataset is not None:
            paths += [locate(file) for file in plugins.load("study.datasets", table.dataset).FILES]
    return paths


def _path(name: str) -> Path:
    path = Path(name) if Path(name).is_absolute() else data_folder() / name
    if not path.exists():
        raise DataError(
            f"there is no table {path} (relative paths start at the experiment file or the data folder)"
        )
    return path


def _samples(table: Table) -> tuple[list[str], list[tables.Sample]]:
    """Read the files of a table; return the names of its features, and samples with all that it needs."""
    paths = files([table])
    resolved = tables.resolve(tables.Roles.of_options(vars(table)), *paths)
    chosen = list(resolved.features or ())
    wanted = [*_shift_columns(table), *table.log, *table.cycle, *table.divide, *table.divide.values()]
    known = open_table(paths[0]).columns
    unknown = [column for column in wanted if column not in known]
    if unknown:
        raise DataError(f"table {table.name} has no column {unknown[0]!r}{suggest(unknown[0], known)}")
    roles = replace(
        resolved,
        features=tuple(dict.fromkeys((*chosen, *wanted))),
        exclude=(),
        classes=resolved.classes or _labels(paths[0], table),
    )
    label = "outcome" if table.score_column is None else "score"
    needs = [("features", label, *(["prediction"] if resolved.prediction else []))] * len(paths)
    if len(paths) == 3:
        needs[1] = ("features",)  # the target has no outcome, or must not show it
    samples = [_read(path, roles, need, table.on_missing) for path, need in zip(paths, needs, strict=True)]
    return chosen + [f"{column}_{wave}" for column in table.cycle for wave in _WAVES], samples


def _shift_columns(table: Table) -> list[str]:
    shift = table.shift
    return [] if shift is None else [*([shift.column] if shift.column else []), *shift.tilt, *shift.soft]


@cache
def _schema(path: Path) -> dict[str, str]:
    return {column.name: column.kind for column in tables.schema(path)}


def _labels(path: Path, table: Table) -> tuple[str, ...]:
    """Return the classes of an outcome of labels that a base learner is to predict; empty for numbers."""
    text = _schema(path).get(table.outcome or "") == "categorical"
    if table.score_column or table.prediction or not (text or table.classify):
        return ()
    group = _read(path, tables.Roles(group=table.outcome, features=()), ("group",), table.on_missing).group
    return tuple(sorted(set(group.tolist()) - {None})) if group is not None else ()


@cache
def _read(path: Path, roles: tables.Roles, need: tuple[str, ...], on_missing: str) -> tables.Sample:
    return tables.read(path, roles, need=need, optional=("prediction",), on_missing=on_missing)


def _prepared(frame: pd.DataFrame, table: Table) -> pd.DataFrame:
    """Divide columns by others, take logarithms, and put columns that go round on a circle, in this order."""
    frame = frame.copy()
    for column, by in table.divide.items():
        frame[column] = _numeric(frame, [column], table)[:, 0] / _numeric(frame, [by], table)[:, 0]
    frame[table.log] = np.log(_numeric(frame, table.log, table))
    for column, period in table.cycle.items():
        angle = _numeric(frame, [column], table)[:, 0] * (2 * np.pi / period)
        for name, wave in _WAVES.items():
            frame[f"{column}_{name}"] = wave(angle)
    return frame


def _encoding(
    table: Table, ours: pd.DataFrame, theirs: pd.DataFrame
) -> tuple[tuple[str, ...], Callable[[pd.DataFrame], FloatArray]]:
    """Learn categories from both frames and imputed values from ``ours``; return names and the encoding."""
    encoder = TableEncoder().fit(ours, theirs, categorical=table.categorical, on_missing=table.on_missing)
    names = list(encoder.names_)
    if table.drop_first:
        names = [column for column in encoder.columns_ if column not in encoder.categories_]
        names += [f"{column}={v}" for column, values in encoder.categories_.items() for v in values[1:]]
        names += [f"{column} is missing" for column in encoder.missing_]
    kept = [encoder.names_.index(name) for name in names]
    return tuple(names), lambda frame: np.take(encoder.transform(frame), kept, axis=1)


def _rows(sample: tables.Sample, features: FloatArray) -> Rows:
    there = sample.prediction.shape[1] > 0 or sample.score is not None
    outcome = sample.outcome if sample.score is None else sample.score
    return Rows(features, outcome, sample.prediction if there else None)


def _dealt(
    rng: np.random.Generator, frame: pd.DataFrame, table: Table, train_share: float
) -> tuple[dict[str, IntArray], FloatArray | None]:
    """Split one table by its declared shift: row numbers by part, and the ratio where it is known."""
    shift = table.shift
    assert shift is not None  # noqa: S101 - for the type checker
    order = rng.permutation(len(frame))
    ratio = None

    def divided(rows: IntArray) -> list[IntArray]:
        count = round(train_share * len(rows))
        return np.split(rows, [min(count, table.train_rows or count)])

    if shift.tilt:
        ratio = np.exp(_numeric(frame, list(shift.tilt), table) @ np.array(list(shift.tilt.values())))
        kept, *halves = _resampled(rng, order, ratio)
        train, source = divided(kept)
        target, test = (half[: table.target_rows or None] for half in halves)
    else:
        if shift.soft:
            columns = {c: standardized(_numeric(frame, [c], table)[:, 0]) for c in shift.soft}
            total = sum((weight * columns[c] for c, weight in shift.soft.items()), np.zeros(len(frame)))
            log_odds = shift.slope * standardized(total)
            ratio = np.exp(log_odds)
            train, rest = divided(order)
            source, moved = selected(log_odds, rest, rng)
        else:
            is_source, is_target = _membership(frame, shift, table)
            train, source = divided(order[is_source[order]])
            moved = order[is_target[order]]
        target, test = unlabeled_and_test(moved, table.target_rows, table.test_rows)
    parts = {"train": train, "source": source[: table.source_rows or None], "target": target, "test": test}
    return parts, ratio


def _resampled(rng: np.random.Generator, order: IntArray, ratio: FloatArray) -> list[IntArray]:
    """Tibshirani et al. (2019): half of the rows train and calibrate, the other half is resampled.

    They draw a quarter as many rows as the second half has, with replacement and with probability
    proportional to the ratio. Here that half is halved first, and so many rows are drawn from each, so that
    the unlabeled target and the test rows have none in common.
    """
    kept, pool = np.array_split(order, 2)
    count = round(len(pool) / 4)
    halves = np.array_split(pool, 2)
    return [kept, *(rng.choice(half, size=count, p=ratio[half] / ratio[half].sum()) for half in halves)]


def _membership(frame: pd.DataFrame, shift: Shift, table: Table) -> tuple[BoolArray, BoolArray]:
    """Return which rows are of the source and of the target, by the values of the shift's column."""
    if shift.at is not None:
        values = _numeric(frame, [str(shift.column)], table)[:, 0]
        is_source = values <= (np.median(values) if shift.at == "median" else shift.at)
        return is_source, ~is_source
    column = frame[shift.column]
    kind = float if column.dtype == np.float64 else str
    found = []
    for wanted in (shift.source, shift.target):
        found.append(column.isin([kind(value) for value in wanted]).to_numpy())
        if not found[-1].any():
            shown = ", ".join(map(str, column.unique()[:10]))
            raise DataError(f"table {table.name}: {shift.column} is nowhere {wanted}; it holds {shown}")
    if (found[0] & found[1]).any():
        raise DataError(f"table {table.name}: source and target of {shift.column} have values in common")
    return found[0], found[1]


def _numeric(frame: pd.DataFrame, columns: Sequence[str], table: Table) -> FloatArray:
    """Return numeric columns (n, k); DataError for those that do not exist or hold labels."""
    wrong = [c for c in columns if c not in frame or frame[c].dtype != np.float64]
    if wrong:
        hint = suggest(wrong[0], list(map(str, frame.columns)))
        raise DataError(f"table {table.name} has no numeric column {', '.join(map(repr, wrong))}{hint}")
    return frame[list(columns)].to_numpy(np.float64)
