"""Write a directory whole or not at all."""

from __future__ import annotations

import ctypes
import os
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lrqr.data.writing import named, temporary_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def standing(target: Path) -> Path:
    """Return where the directory is: between two renames of `write_directory`, the previous one's place."""
    if target.exists():
        return target
    backup = _backup_of(target)
    return backup if backup.exists() else target


def _backup_of(target: Path) -> Path:
    return target.with_name(f".{target.name}.old")


def restore(target: Path) -> None:
    """Give the previous directory its name again, if a run was killed between two renames."""
    if not target.exists() and _backup_of(target).exists():
        _backup_of(target).rename(target)


def write_directory(target: Path, files: Mapping[str, bytes], *, replace: bool, keep: bool = False) -> None:
    """Write ``files`` under a temporary name beside ``target``, then rename: a killed run changes nothing.

    With ``keep``, whatever else was in the directory stays in it.

    A symbolic link is followed: the directory that it points at is replaced, and the link stays. Of two that
    replace the same directory at once, each is whole, and the one that comes last stays.

    Raises
    ------
    FileExistsError
        If there is a directory and it may not be replaced.
    """
    target = Path(os.path.realpath(target))
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_of(target)
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        if keep and target.exists():
            shutil.copytree(target, temporary, symlinks=True, copy_function=_link)
            for name in files:  # before it is written: it is the same file as the old one
                (temporary / name).unlink(missing_ok=True)
        else:
            with named(target, temporary):
                temporary.mkdir()
        for name, data in files.items():
            with named(target / name, temporary / name), (temporary / name).open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        with _alone(target.parent):
            _put(temporary, target, replace=replace)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _link(source: str, copy: str) -> None:
    """Give a file a second name, or copy it where the file system knows no second names."""
    try:
        os.link(source, copy)
    except OSError:
        shutil.copy2(source, copy)


def _put(temporary: Path, target: Path, *, replace: bool) -> None:
    """Give a directory its name."""
    backup = _backup_of(target)
    if target.exists() and not replace:
        raise FileExistsError(target)
    if target.exists() and _exchange(temporary, target):
        shutil.rmtree(backup, ignore_errors=True)
        return
    if target.exists():
        shutil.rmtree(backup, ignore_errors=True)
        target.rename(backup)
    try:
        temporary.rename(target)
    except OSError:
        if backup.exists():
            backup.rename(target)
        raise
    shutil.rmtree(backup, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Give each of two directories the other's name in one step; False where only Linux could."""
    try:
        call = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return bool(call(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other process gives a directory in this folder its name, where the system can tell."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
