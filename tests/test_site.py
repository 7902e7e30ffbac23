"""The documentation site builds without a broken link, names everything public, and what it shows runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lrqr
from lrqr import errors, plugins

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted(path for path in (ROOT / "docs" / "examples").glob("*.py") if path.stem != "drawing")
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def test_the_reference_names_everything_public() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^::: (\S+)", page, re.MULTILINE))
    names = {f"lrqr.{name}" for name in lrqr.__all__ if not name.startswith("__")}
    scores = {f"lrqr.scores.{name.replace('-', '_')}" for name in plugins.names("scores")}
    assert (names | scores | {errors.__name__}) - shown == set()
    rooms = {name.rpartition(".")[0] for name in shown}
    assert {f"lrqr.methods.{name.replace('-', '_')}" for name in plugins.names("methods")} - rooms == {
        "lrqr.methods.lrqr"  # shown as lrqr.LRQR
    }


def test_every_score_and_method_stands_on_the_page_that_helps_to_choose() -> None:
    page = (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8")
    names = {*plugins.names("scores"), *plugins.names("methods")}
    assert {name for name in names if f"| `{name}` |" not in page} == set()


@pytest.mark.slow
def test_the_site_builds_without_a_broken_link(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    start = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "intervals-light.svg" in start
    # Nothing is fetched from elsewhere when a page opens.
    assert re.findall(r'<(?:script|img|iframe)[^>]+src="https?://', start) == []


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_draw_the_pictures_of_the_gallery(path: Path, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made = sorted(tmp_path.rglob("*.svg"))
    assert [file.name for file in made] == [f"{path.stem}-dark.svg", f"{path.stem}-light.svg"]
    assert all((ROOT / file.relative_to(tmp_path)).exists() for file in made)
    assert f"{path.stem}-light.svg" in (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_from_top_to_bottom(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    resources = {"metadata": {"path": str(ROOT)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
