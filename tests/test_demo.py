"""``lrqr demo``: the main job on data inside the wheel, and the one line that says what was won."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from commands import lrqr

from lrqr.commands.demo import OUTCOME, parts
from lrqr.results import Evaluation, Method, Size
from lrqr.show.text import won
from lrqr.stats.diagnosis import diagnose

if TYPE_CHECKING:
    from commands import Ran

ROOT = Path(__file__).parents[1]
NUMBER = re.compile(r"\d+(?:\.\d+)?")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ran]:
    folder = tmp_path_factory.mktemp("demo") / "made"
    return folder, lrqr("demo", "-o", folder)


def test_it_does_the_whole_job(demo: tuple[Path, Ran]) -> None:
    folder, ran = demo
    assert ran.code == 0, ran.err
    assert {path.name for path in folder.iterdir()} == {
        *("source.csv", "target.csv", "test.csv", "model", "intervals.csv"),
        *("report.html", "report.json", "report.csv"),
    }
    for command in ("fit", "predict", "evaluate"):
        assert f"$ lrqr {command} {folder}" in ran.err


def test_its_last_line_is_what_was_measured(demo: tuple[Path, Ran]) -> None:
    folder, ran = demo
    found = json.loads((folder / "report.json").read_text())
    coverage = {row["name"]: row["coverage"] for row in found["methods"]}
    last = ran.out.splitlines()[-1]
    assert last.startswith(f"Promised 90 %, kept on {found['n']} rows")
    for name, value in coverage.items():
        assert f"{name} {100 * value:.0f} %" in last
    (said,) = [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("Promised")]
    assert NUMBER.sub("#", last) == NUMBER.sub("#", said)
    numbers = [list(map(float, NUMBER.findall(line))) for line in (last, said)]
    assert numbers[0] == pytest.approx(numbers[1], abs=3)  # versions of libraries differ a little
    assert coverage["split"] < 0.8
    assert coverage["lrqr"] > 0.88
    assert found["shift"]["verdict"] == "shift within reach"


def test_the_readme_shows_its_intervals(demo: tuple[Path, Ran]) -> None:
    found = pd.read_csv(demo[0] / "intervals.csv")[["row", "prediction", "lower", "upper"]].head(3)
    rows = re.findall(r"^\| (\d) \| (.*) \| (.*) \| (.*) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert np.array(rows, dtype=float) == pytest.approx(found.to_numpy(), rel=0.02)


def test_it_writes_over_nothing_unless_told_to(demo: tuple[Path, Ran]) -> None:
    folder, ran = demo
    again = lrqr("demo", "-o", folder)
    assert again.code == 2
    assert "--force" in again.err
    before = (folder / "intervals.csv").read_bytes()
    forced = lrqr("-q", "demo", "-o", folder, "--force")
    assert (forced.code, forced.err, forced.out) == (0, "", ran.out)
    assert (folder / "intervals.csv").read_bytes() == before


@pytest.mark.parametrize("seed", [0, 1])
def test_unlabeled_and_test_rows_are_drawn_alike(seed: int) -> None:
    frames = parts(seed)
    assert OUTCOME not in frames["target"]
    rows = pd.concat([frame.drop(columns=OUTCOME, errors="ignore") for frame in frames.values()])
    assert not rows.duplicated().any()
    source, target, test = (frame.drop(columns=OUTCOME, errors="ignore") for frame in frames.values())
    assert diagnose(target, test).verdict == "no shift detected"
    assert diagnose(source, target).verdict == "shift within reach"


def test_the_wheel_holds_the_data() -> None:
    files = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    assert files["wheel"]["force-include"]["data/airfoil.csv"] == "lrqr/commands/airfoil.csv"
    assert "data/airfoil.csv" in files["sdist"]["include"]


def test_a_length_counts_only_where_the_promise_was_kept() -> None:
    def row(name: str, coverage: float, high: float, size: float, **more: float) -> Method:
        return Method(name=name, coverage=coverage, low=coverage - 0.05, high=high, size=size, **more)

    methods = [
        row("lrqr", 0.9, 0.94, 2.0, infinite=0.0),
        row("split", 0.7, 0.75, 1.0, infinite=0.0),
        row("weighted", 0.95, 0.98, float("inf"), infinite=0.04, size_clipped=3.0),
    ]
    said = won(Evaluation(n=200, nominal=0.9, size=Size(), methods=methods))
    assert said == (
        "Promised 90 %, kept on 200 rows whose labels no fit had seen: split 70 %, weighted 95 % at 1.5 "
        "times the length (4.0 % infinite), lrqr 90 %."
    )
