"""Many commands at once."""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from commands import GIVEN, NUMBERS, lrqr


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


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc: memory is not known here")
def test_many_cycles_in_one_process_take_neither_memory_nor_files(shared: Path, tmp_path: Path) -> None:
    """From the 30th cycle on: before, libraries are imported and caches filled."""

    def held() -> tuple[float, int]:
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * resource.getpagesize() / 1e6, len(list(Path("/proc/self/fd").iterdir()))

    source, target, test = (shared / f"{name}.csv" for name in ("source", "target", "test"))
    model, out = tmp_path / "model", tmp_path / "out.csv"
    found = []
    for cycle in range(180):
        if cycle in {30, 179}:
            found.append(held())
        for command in (
            ("fit", source, target, *NUMBERS, *GIVEN, "-o", model, "--force"),
            ("predict", model, test, "-o", out, "--force"),
            ("evaluate", model, test),
        ):
            assert lrqr(*command).code == 0
    (memory, handles), (more, others) = found
    assert others == handles
    assert more - memory < 6.0  # MB: as much as 40 kB kept in each cycle
