"""Tables into files: by suffix, all or nothing, and never over an existing file unless told so."""

from __future__ import annotations

import gzip
import io
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from lrqr.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Writer(Protocol):
    """Takes frames one after the other; all have the same columns."""

    def append(self, frame: pd.DataFrame) -> None:
        """Write the rows of ``frame``."""

    def close(self) -> None:
        """Finish the file."""


WRITERS: dict[str, Callable[[Path], Writer]] = {}


def writer(*suffixes: str) -> Callable[[Callable[[Path], Writer]], Callable[[Path], Writer]]:
    """Register what makes a `Writer` for files whose names end in one of ``suffixes``."""

    def register(make: Callable[[Path], Writer]) -> Callable[[Path], Writer]:
        WRITERS.update(dict.fromkeys(suffixes, make))
        return make

    return register


@contextmanager
def open_writer(path: str | os.PathLike[str], *, force: bool = False) -> Iterator[Writer]:
    """Write a file batch by batch; it appears under its name only when all went well.

    A symbolic link is followed: what it points at is written, and the link stays.

    Raises
    ------
    UsageError
        If nobody writes its suffix, its directory does not exist, or it exists and ``force`` is not given.
    """
    make = check_writable(Path(path), force=force)
    place = _real(Path(path))
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.", suffix=".part")
    os.close(handle)
    temporary = Path(name)
    try:
        sink = make(temporary)
        try:
            yield sink
        finally:
            sink.close()
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(place)
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: Path, *, force: bool) -> Callable[[Path], Writer]:
    """Return the maker of the writer for ``path``, before any work is done for it.

    Raises
    ------
    UsageError
        As `open_writer`.
    """
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


def write(path: str | os.PathLike[str], frame: pd.DataFrame, *, force: bool = False) -> None:
    """Write a whole frame, without its index; see `open_writer`."""
    with open_writer(path, force=force) as sink:
        sink.append(frame)


@writer(".csv")
class _Csv:
    def __init__(self, path: Path) -> None:
        self._stream: Any = path.open("wb")
        self._header = True

    def append(self, frame: pd.DataFrame) -> None:
        text = frame.to_csv(None, index=False, header=self._header, lineterminator="\n")
        self._stream.write(text.encode())
        self._header = False

    def close(self) -> None:
        self._stream.close()


@writer(".csv.gz")
class _CsvGz(_Csv):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._raw = self._stream
        # Neither name nor time go into the file: same rows, same bytes.
        self._stream = gzip.GzipFile(filename="", mode="wb", fileobj=self._raw, mtime=0)

    def close(self) -> None:
        super().close()
        self._raw.close()


@writer(".parquet")
class _Parquet:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._sink: Any = None

    def append(self, frame: pd.DataFrame) -> None:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        if self._sink is None:
            self._sink = pq.ParquetWriter(self._path, table.schema)
        self._sink.write_table(table.cast(self._sink.schema))

    def close(self) -> None:
        if self._sink is not None:
            self._sink.close()


@writer(".npz")
class _Npz:
    """One array per column. Gathers the rows, for the archive is written array by array."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._frames: list[pd.DataFrame] = []

    def append(self, frame: pd.DataFrame) -> None:
        self._frames.append(frame)

    def close(self) -> None:
        whole = pd.concat(self._frames, ignore_index=True) if self._frames else pd.DataFrame()
        arrays = {str(name): _array(whole[name]) for name in whole}
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        self._path.write_bytes(buffer.getvalue())


def _array(column: pd.Series[Any]) -> np.ndarray[Any, Any]:
    values = column.to_numpy()
    return values.astype(str) if values.dtype == object else values


def _real(path: Path) -> Path:
    """Return what a symbolic link points at in the end, or the path itself."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
