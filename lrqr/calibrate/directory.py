"""Write a directory whole or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from lrqr.data.writing import temporary_of

if TYPE_CHECKING:
    from collections.abc import Mapping


_TRIES = 20


def standing(target: Path) -> Path:
    """Return where the directory is: between two renames of `write_directory`, the previous one's place."""
    backup = _backup_of(target)
    return backup if backup.exists() and not target.exists() else target


def _backup_of(target: Path) -> Path:
    return target.with_name(f".{target.name}.old")


def write_directory(target: Path, files: Mapping[str, bytes], *, replace: bool) -> None:
    """Write ``files`` under a temporary name beside ``target``, then rename: a killed run changes nothing.

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
        temporary.mkdir()
        for name, data in files.items():
            with (temporary / name).open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        _put(temporary, target, replace=replace)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    shutil.rmtree(_backup_of(target), ignore_errors=True)


def _put(temporary: Path, target: Path, *, replace: bool) -> None:
    """Give a directory its name; start anew where another process did so in between."""
    backup = _backup_of(target)
    for tries_left in reversed(range(_TRIES)):
        if target.exists() and not replace:
            raise FileExistsError(target)
        try:
            shutil.rmtree(backup, ignore_errors=True)
            if target.exists():
                target.rename(backup)
            temporary.rename(target)
        except OSError:
            if backup.exists() and not target.exists():
                backup.rename(target)
            if not tries_left or not temporary.exists():
                raise
        else:
            return
