"""Scores and methods of other packages, found by their entry points."""

from __future__ import annotations

import os
import shutil
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from commands import NUMBERS, fresh, table

from lrqr import plugins
from lrqr.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "docs" / "examples" / "plugin"


def installed(folder: Path, points: dict[str, dict[str, str]]) -> Path:
    """Install the example package as pip would, but with the given entry points."""
    shutil.copytree(EXAMPLE / "lrqr_example", folder / "lrqr_example")
    metadata = folder / "lrqr_example-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: lrqr-example\nVersion: 0.1\n")
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in found.items())
        for group, found in points.items()
    ]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    return folder


@pytest.fixture
def forget() -> Iterator[None]:
    """Let this process look for plug-ins again, before and after the test."""
    caches = (plugins.names, plugins._others, plugins._foreign)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] == "lrqr_example"]:
        del sys.modules[name]


def test_the_command_line_takes_scores_and_methods_of_another_package(tmp_path: Path) -> None:
    points = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]
    place = installed(tmp_path / "site", points)
    source = table(200)
    source.to_csv(tmp_path / "source.csv", index=False)
    table(100, 0.5, 1).drop(columns="y").to_csv(tmp_path / "target.csv", index=False)
    chosen = ["--score", "relative", "--method", "largest", "-o", "model"]
    usage, *others = fresh(
        tmp_path,
        ["fit", "--help"],
        ["fit", "source.csv", "target.csv", *NUMBERS, *chosen],
        ["predict", "model", "target.csv", "-o", "out.csv"],
        ["inspect", "model", "--format", "json"],
        PYTHONPATH=os.pathsep.join([str(place), str(ROOT)]),
        COLUMNS="200",
    )
    assert "|largest|" in usage.out
    assert "|relative|" in usage.out
    assert [ran.code for ran in others] == [0, 0, 0], others
    found, yhat = pd.read_csv(tmp_path / "out.csv"), pd.read_csv(tmp_path / "target.csv")["yhat"]
    unit = np.maximum(np.abs(source["yhat"]), 1.0)
    largest = (np.abs(source["y"] - source["yhat"]) / unit).max()
    assert np.allclose(found["threshold"], largest, rtol=1e-12)
    assert np.allclose(found["upper"] - yhat, largest * np.maximum(np.abs(yhat), 1.0), rtol=1e-9)
    assert '"largest"' in others[-1].out


@pytest.mark.usefixtures("forget")
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            "lrqr_example.nowhere",
            r"score 'mine' \(lrqr_example.nowhere, of lrqr-example\) cannot be imported",
        ),
        ("lrqr_example.largest", r"score 'mine' .* lacks TASK, INPUTS, LOWEST, score, region; see docs/ext"),
    ],
)
def test_a_broken_plugin_is_named_with_its_package(
    value: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(installed(tmp_path / "site", {"lrqr.scores": {"mine": value}})))
    assert "mine" in plugins.names("scores")
    with pytest.raises(UsageError, match=message):
        plugins.load("scores", "mine")


@pytest.mark.usefixtures("forget")
def test_a_name_of_lrqr_stays_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = {"lrqr.scores": {"absolute": "lrqr_example.relative"}}
    monkeypatch.syspath_prepend(str(installed(tmp_path / "site", points)))
    assert plugins.load("scores", "absolute").__name__ == "lrqr.scores.absolute"


def test_the_page_shows_the_example_as_it_is() -> None:
    text = (ROOT / "docs" / "extending.md").read_text()
    for name in ("lrqr_example/relative.py", "lrqr_example/largest.py", "pyproject.toml"):
        assert (EXAMPLE / name).read_text() in text
