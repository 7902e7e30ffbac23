"""Many commands at once."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_twenty_evaluate_one_model_at_once(shared: Path, tmp_path: Path) -> None:
    def run(name: str) -> subprocess.Popen[bytes]:
        evaluate = [shared / "model", shared / "test.csv", "--report", tmp_path / name]
        command = [sys.executable, "-m", "lrqr", "evaluate", *map(str, evaluate)]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    for process in [run(f"{number}.html") for number in range(20)]:
        _, err = process.communicate()
        assert process.returncode == 0, err
    found = sorted(tmp_path.iterdir())
    assert len(found) == 60
    for suffix in (".html", ".json", ".csv"):
        assert len({path.read_bytes() for path in found if path.suffix == suffix}) == 1, suffix
