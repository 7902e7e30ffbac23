"""What many tests share: one folder of files and fitted models per session, and a small learned map."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from commands import GIVEN, NUMBERS, files, lrqr
from small_disk import why_not

if TYPE_CHECKING:
    from pathlib import Path


_NO_SMALL_DISK = why_not()
collect_ignore = ["test_full_disk.py"] if _NO_SMALL_DISK else []


def pytest_report_header() -> str:
    """Say so where the tests of a full disk are left out."""
    reason = f"not collected: nothing can be mounted here ({_NO_SMALL_DISK})"
    return f"tests/test_full_disk.py: {reason if _NO_SMALL_DISK else 'on a disk of 64 kB'}"


def _few_models(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("lrqr.calibrate.learned.FOLDS", 2)
    patch.setattr("lrqr.calibrate.learned.REPEATS", 1)


@pytest.fixture
def small_map(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learned features from 4 models instead of 20.

    For laws that hold however well the features were learned: that a model survives the disk, that a row does
    not depend on its batch, that a command goes all the way.
    """
    _few_models(monkeypatch)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write source, target and test rows, and a model of them on the given features; to be read only."""
    folder = tmp_path_factory.mktemp("shared")
    paths = files(folder)
    ran = lrqr("fit", paths["source"], paths["target"], *NUMBERS, *GIVEN, "-o", folder / "model")
    assert ran.code == 0, ran.err
    return folder


@pytest.fixture(scope="session")
def learned(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a model of the shared files on features learned from few models; to be read only."""
    model = tmp_path_factory.mktemp("learned") / "model"
    with pytest.MonkeyPatch.context() as patch:
        _few_models(patch)
        options = (*NUMBERS, "--feature-map", "learned", "-o", model)
        ran = lrqr("fit", shared / "source.csv", shared / "target.csv", *options)
    assert ran.code == 0, ran.err
    return model


@pytest.fixture(scope="module")
def folder(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a copy of the shared folder that the tests of one file may write into."""
    copy = tmp_path_factory.mktemp("files")
    shutil.copytree(shared, copy, dirs_exist_ok=True)
    return copy
