"""Write a directory whole or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def backup_of(target: Path) -> Path:
    """Where the previous directory waits between the two renames of `write_directory`."""
    return target.with_name(f".{target.name}.old")


def write_directory(target: Path, files: Mapping[str, bytes]) -> None:
    """Write ``files`` under a temporary name beside ``target``, then rename: a killed run changes nothing.

    A symbolic link is followed: the directory that it points at is replaced, and the link stays.
    """
    target = Path(os.path.realpath(target))
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    backup = backup_of(target)
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir()
        for name, data in files.items():
            with (temporary / name).open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        shutil.rmtree(backup, ignore_errors=True)
        if target.exists():
            target.rename(backup)
        try:
            temporary.rename(target)
        except OSError:
            if backup.exists():
                backup.rename(target)
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    shutil.rmtree(backup, ignore_errors=True)
