"""Killed at any file-system event, a command leaves the old result whole, or the new one whole."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
from commands import GIVEN, NUMBERS, files, lrqr

EVENTS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.link", "os.symlink"}


TINY = """
title = "tiny"
splits = 2
reference = "split"
[data]
kind = "synthetic"
shifts = ["none"]
options = { d = 2, source_rows = 60, target_rows = 40, test_rows = 40 }
[[methods]]
name = "split"
"""
# of these files the seconds differ, or the finished splits grow while the old results stand
VARIES = {
    "compare": {"run/results.csv", "run/results.json"},
    "reproduce": {
        "tiny/results.csv",
        "tiny/results.json",
        "tiny/splits.jsonl",
        "tiny/summary.csv",
        "tiny/summary.md",
    },
}


class Killer:
    """Kill this process at the k-th event that changes something in a folder."""

    def __init__(self, folder: Path, k: int) -> None:
        self.folder, self.left = str(folder), k

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in EVENTS or not str(arguments[0]).startswith(self.folder):
            return
        if event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR):
            return
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def killed(folder: Path, k: int, *command: Any) -> bool:
    """Run a command in a child that dies at its k-th event; say whether it died."""
    child = os.fork()
    if child == 0:
        sys.addaudithook(Killer(folder, k))
        code = 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                code = lrqr(*command).code
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


def killed_late(folder: Path, k: int, *command: Any) -> bool:
    """Run a command in a child that is killed from outside, at a moment that ``k`` decides."""
    del folder
    child = os.fork()
    if child == 0:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                lrqr(*command)
        finally:
            os._exit(0)
    time.sleep(random.Random(k).uniform(0.0, 0.7))  # noqa: S311 - a moment, no secret
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def content(folder: Path) -> dict[str, bytes]:
    """Return the visible files below a folder."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: data for name, data in found.items() if not any(p[0] == "." for p in Path(name).parts)}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    files(folder, n=60)
    (folder / "tiny.toml").write_text(TINY)
    for name, seed in (("old", 1), ("new", 2)):
        options = (*NUMBERS, *GIVEN, "--seed", seed, "-o", folder / name)
        assert lrqr("fit", folder / "source.csv", folder / "target.csv", *options).code == 0
    return folder


def commands(inputs: Path, out: Path, name: str, which: str) -> tuple[Any, ...]:
    """Return a command that writes into ``out``; "old" and "new" write different things."""
    source, target, test = (inputs / f"{part}.csv" for part in ("source", "target", "test"))
    seed = {"old": 1, "new": 2}[which]
    if name == "fit":
        return ("fit", source, target, *NUMBERS, *GIVEN, "--seed", seed, "-o", out / "model", "--force")
    if name == "predict":
        rows = {"old": source, "new": test}[which]
        return ("predict", inputs / "old", rows, "-o", out / "p.csv", "--force")
    if name == "evaluate":
        rows = {"old": source, "new": test}[which]
        return ("evaluate", inputs / "old", rows, "--report", out / "r.html", "--force")
    if name == "reproduce":
        splits = {"old": 1, "new": 2}[which]
        return ("reproduce", inputs / "tiny.toml", "--splits", splits, "-o", out)
    data = (source, target, test, *NUMBERS, "--method", "split", "--splits", "2")
    return ("compare", *data, "--seed", seed, "-o", out / "run", "--force")


def check(inputs: Path, folder: Path, name: str, most: int, kill: Any = killed) -> int:
    """Kill a command at event 1, 2, .. until it gets through or was killed ``most`` times."""
    states = {}
    for which in ("old", "new"):
        out = folder / which
        out.mkdir()
        ran = lrqr(*commands(inputs, out, name, which))
        assert ran.code == 0, ran.err
        states[which] = content(out)
    varies = VARIES.get(name, set())
    out = folder / "out"
    count = 0
    while count < most:
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(folder / "old", out)
        died = kill(out, count + 1, *commands(inputs, out, name, "new"))
        found = content(out)
        if name == "fit":  # the directory as a whole; where it moved aside it is still found
            ran = lrqr("inspect", out / "model", "--format", "json")
            assert ran.code == 0, ran.err
        assert set(found) <= set(states["old"]) | set(states["new"])
        for file in found.keys() - varies:
            assert found[file] in {states["old"].get(file), states["new"].get(file)}, (count, file)
        if name == "reproduce":
            check_run(out / "tiny", found, states)
        if not died:
            break
        count += 1
        again = lrqr(*commands(inputs, out, name, "new"))
        assert again.code == 0, again.err
        after = content(out)
        assert after.keys() == states["new"].keys()
        assert all(after[file] == states["new"][file] for file in after.keys() - varies), count
        hidden = [path.name for path in out.rglob(".*")]
        assert not hidden, (count, hidden)
    return count


def check_run(place: Path, found: dict[str, bytes], states: dict[str, dict[str, bytes]]) -> None:
    """Every result of a run of an experiment tells of the same number of splits."""
    assert found.keys() == states["old"].keys()
    rows = len((place / "results.csv").read_text().splitlines()) - 1
    which = {1: "old", 2: "new"}[rows]
    assert json.loads((place / "results.json").read_text())["splits"] == rows
    for file in ("figure.svg", "figure.png", "checks.csv"):
        assert found[f"tiny/{file}"] == states[which][f"tiny/{file}"], file
    finished = (place / "splits.jsonl").read_text().count("\n")
    assert rows <= finished <= 2


def test_without_a_swap_of_names_the_next_run_finds_the_previous_result(
    inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system cannot swap two directories, a kill between two renames leaves one of them hidden."""
    monkeypatch.setattr("lrqr.calibrate.directory._exchange", lambda *_: False)
    ran = lrqr(*commands(inputs, tmp_path, "reproduce", "old"))
    assert ran.code == 0, ran.err
    old = content(tmp_path)
    (tmp_path / "tiny").rename(tmp_path / ".tiny.old")
    again = lrqr(*commands(inputs, tmp_path, "reproduce", "old"))
    assert again.code == 0, again.err
    assert content(tmp_path) == old  # the seconds too: no split was run again
    assert [path.name for path in tmp_path.iterdir()] == ["tiny"]


NAMES = ["predict", "evaluate", "compare", "fit", "reproduce"]


@pytest.mark.parametrize("name", NAMES)
def test_killed_at_the_first_events(inputs: Path, tmp_path: Path, name: str) -> None:
    assert check(inputs, tmp_path, name, most=2) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_killed_at_every_event(inputs: Path, tmp_path: Path, name: str) -> None:
    assert 2 <= check(inputs, tmp_path, name, most=200) < 200


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_killed_at_any_moment(inputs: Path, tmp_path: Path, name: str) -> None:
    """An event of the system that Python does not tell of is a moment too."""
    assert check(inputs, tmp_path, name, most=32, kill=killed_late) == 32
