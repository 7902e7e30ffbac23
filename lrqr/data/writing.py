"""Write data frames to files of a kind that the suffix says.

A file appears under its name only when it is complete, and replaces an existing one only with ``force``.
"""

from __future__ import annotations

import glob
import gzip
import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from lrqr.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


Writer = Callable[[Path, "Iterable[pd.DataFrame]"], None]
"""Writes frames one after the other into a new file; all have the same columns."""

STDOUT = Path("-")

WRITERS: dict[str, Writer] = {}


def writer(suffix: str) -> Callable[[Writer], Writer]:
    """Register the `Writer` of files whose names end in ``suffix``."""

    def register(write: Writer) -> Writer:
        WRITERS[suffix] = write
        return write

    return register


def write(
    path: str | os.PathLike[str], frames: pd.DataFrame | Iterable[pd.DataFrame], *, force: bool = False
) -> None:
    """Write a frame, or frames one below the other, without their index; the file appears when all went well.

    A symbolic link is followed: what it points at is written, and the link stays.

    Parameters
    ----------
    path : path
        ``-`` is stdout, as CSV.
    frames : data frame, or iterable of data frames
        An iterable is taken piece by piece, so that no more than a piece need be in memory (NPZ: the whole).
    force : bool
        Replace an existing file.

    Raises
    ------
    UsageError
        If nobody writes its suffix, its directory does not exist, or it exists and ``force`` is not given.
    """
    write_to = check_writable(Path(path), force=force)
    whole = [frames] if isinstance(frames, pd.DataFrame) else frames
    if Path(path) == STDOUT:
        with tempfile.TemporaryDirectory() as folder:
            write_to(Path(folder) / "rows", whole)
            with (Path(folder) / "rows").open("rb") as written:
                shutil.copyfileobj(written, sys.stdout.buffer)
        return
    place = _real(Path(path))
    temporary = temporary_of(place)
    try:
        with named(place, temporary):
            write_to(temporary, whole)
            temporary.replace(place)
    finally:
        temporary.unlink(missing_ok=True)


def write_texts(texts: Mapping[Path, str]) -> None:
    """Write several texts that belong together: all under temporary names first, then one rename each.

    A run that is killed or meets a full disk leaves each file as it was, or new, never half.
    """
    temporary = {path: temporary_of(_real(path)) for path in texts}
    try:
        for path, text in texts.items():
            with named(path, temporary[path]):
                temporary[path].write_text(text, encoding="utf-8", newline="\n")
        for path, written in temporary.items():
            written.replace(_real(path))
    finally:
        for written in temporary.values():
            written.unlink(missing_ok=True)


@contextmanager
def named(path: Path, temporary: Path) -> Iterator[None]:
    """Name ``path`` in errors that name its stand-in or, as those of a full disk, no file at all."""
    try:
        yield
    except OSError as error:
        if error.filename not in {None, str(temporary)}:
            raise
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def temporary_of(path: Path) -> Path:
    """Return a name beside ``path`` that no other process uses; remove what killed runs left there."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        owner = left.name.split(".")[-2]
        if owner.isdigit() and not _runs(int(owner)):
            shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it runs, and is not ours
        return True
    return True


def check_writable(path: Path, *, force: bool) -> Writer:
    """Return the writer for ``path``, or refuse; worth asking before the work whose results go there.

    Raises
    ------
    UsageError
        As `write`.
    """
    if path == STDOUT:
        return WRITERS[".csv"]
    matches = [suffix for suffix in WRITERS if path.name.lower().endswith(suffix)]
    if not matches:
        raise UsageError(
            f"{path}: cannot write files of kind {path.suffix!r}; choose one of {', '.join(WRITERS)}"
        )
    folder = _real(path).parent
    if not folder.is_dir():
        raise UsageError(f"{path}: the directory {folder} does not exist; make it first")
    if path.is_dir() or (path.exists() and not force):
        remedy = "it is a directory" if path.is_dir() else "pass --force (force=True) to replace it"
        raise UsageError(f"{path} exists already; {remedy}, or choose another -o")
    return WRITERS[max(matches, key=len)]


@writer(".csv")
def _write_csv(path: Path, frames: Iterable[pd.DataFrame]) -> None:
    with path.open("wb") as file:
        _write_rows(file, frames)


@writer(".csv.gz")
def _write_csv_gz(path: Path, frames: Iterable[pd.DataFrame]) -> None:
    # Neither name nor time go into the file: same rows, same bytes.
    with path.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
        _write_rows(file, frames)


def _write_rows(file: Any, frames: Iterable[pd.DataFrame]) -> None:
    for number, frame in enumerate(frames):
        if number == 0:
            file.write(_as_csv(frame.iloc[:0], header=True))
        table = _plain_table(frame)
        if table is None:
            file.write(_as_csv(frame, header=False))
        else:
            pacsv.write_csv(table, file, pacsv.WriteOptions(include_header=False, quoting_style="none"))


def _as_csv(frame: pd.DataFrame, *, header: bool) -> bytes:
    return frame.to_csv(None, index=False, header=header, lineterminator="\n").encode()


def _plain_table(frame: pd.DataFrame) -> pa.Table | None:
    """Return rows as Arrow writes them fast, None if a text is to be quoted or a type is left to pandas."""
    if frame.shape[1] < 2 or not frame.columns.is_unique:  # an empty line would be no row
        return None
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError):  # a column of mixed types
        return None
    columns = []
    for column in table.columns:
        kind = column.type
        if pa.types.is_boolean(kind):
            column = pc.if_else(column, "True", "False")  # noqa: PLW2901 - as pandas spells them
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
            if pc.any(pc.match_substring_regex(column, '[",\r\n]')).as_py():
                return None
        elif not (pa.types.is_integer(kind) or pa.types.is_float64(kind)):
            return None
        columns.append(column)
    return pa.table(columns, names=table.column_names)


@writer(".parquet")
def _write_parquet(path: Path, frames: Iterable[pd.DataFrame]) -> None:
    tables = (pa.Table.from_pandas(frame, preserve_index=False) for frame in frames)
    first = next(tables)
    with pq.ParquetWriter(path, first.schema) as sink:
        for table in itertools.chain([first], tables):
            sink.write_table(table.cast(first.schema))


@writer(".npz")
def _write_npz(path: Path, frames: Iterable[pd.DataFrame]) -> None:
    """Write one array per column, for which all rows are gathered first."""
    whole = pd.concat(frames, ignore_index=True)
    with path.open("wb") as file:
        np.savez(file, **{str(name): _values(whole[name]) for name in whole})  # type: ignore[arg-type]


def _values(column: pd.Series[Any]) -> np.ndarray[Any, Any]:
    values = column.to_numpy()
    return values.astype(str) if values.dtype == object else values


def _real(path: Path) -> Path:
    """Return what a symbolic link points at in the end, or the path itself."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path
