"""A full disk or one that is read only: one message that names the file, and no file that is half written."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from commands import GIVEN, NUMBERS, files, lrqr
from small_disk import MOUNT, UMOUNT
from test_killed import TINY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = ["fit", "predict", "evaluate", "compare", "reproduce"]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    files(folder, n=300)
    options = (*NUMBERS, *GIVEN, "-o", folder / "model")
    assert lrqr("fit", folder / "source.csv", folder / "target.csv", *options).code == 0
    (folder / "tiny.toml").write_text(TINY)
    return folder


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 64 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run([MOUNT, "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run([UMOUNT, place], check=True)


def command(inputs: Path, out: Path, name: str) -> tuple[Any, ...]:
    source, target, test = (inputs / f"{part}.csv" for part in ("source", "target", "test"))
    rows = (*NUMBERS, "--method", "split", "--splits", 2)
    return {
        "fit": ("fit", source, target, *NUMBERS, *GIVEN, "-o", out / "model", "--force"),
        "predict": ("predict", inputs / "model", test, "-o", out / "p.csv", "--force"),
        "evaluate": ("evaluate", inputs / "model", test, "--report", out / "r.html", "--force"),
        "compare": ("compare", source, target, test, *rows, "-o", out / "run", "--force"),
        "reproduce": ("reproduce", inputs / "tiny.toml", "-o", out),
    }[name]


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(folder: Path, reason: str, *arguments: Any) -> None:
    ran = lrqr(*arguments)
    assert ran.code == 1
    errors = [line for line in ran.err.splitlines() if line.startswith("Error")]
    assert len(errors) == 1
    assert str(folder) in errors[0].replace("\n", "")
    assert reason in " ".join(ran.err.split())


@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk_changes_nothing(inputs: Path, disk: Path, name: str) -> None:
    for place in (disk / "model", disk / "run", disk / "tiny"):
        place.mkdir()
    if name == "fit":
        shutil.copytree(inputs / "model", disk / "model", dirs_exist_ok=True)
    (disk / "p.csv").write_text("old")
    left = shutil.disk_usage(disk).free - 4096
    (disk / "ballast").write_bytes(bytes(left))
    before = content(disk)
    refused(disk, "No space left", *command(inputs, disk, name))
    after = content(disk)
    if name == "reproduce":  # what a later run goes on with
        after = {
            key: data for key, data in after.items() if not key.endswith(("splits.jsonl", "experiment.json"))
        }
    assert after == before


@pytest.mark.parametrize("name", NAMES)
def test_a_disk_that_is_read_only_is_named(inputs: Path, disk: Path, name: str) -> None:
    subprocess.run([MOUNT, "-o", "remount,ro", disk], check=True)
    refused(disk, "Read-only file system", *command(inputs, disk, name))
    assert content(disk) == {}
