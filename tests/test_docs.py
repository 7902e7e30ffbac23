"""The documentation is true: the command reference is made from the program."""

from __future__ import annotations

import doctest
import importlib
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_command_reference_is_up_to_date() -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "make_cli_docs.py"))["reference"]()
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == made, "run scripts/make_cli_docs.py"


def test_the_picture_of_the_packages_is_up_to_date() -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "draw_house.py"))["draw"]()
    assert (ROOT / "docs" / "figures" / "house.svg").read_text(encoding="utf-8") == made, "run make docs"


@pytest.mark.parametrize(
    "name", [f"lrqr.commands.{module}" for module in ("wrapper", "compare", "diagnose", "evaluate")]
)
def test_examples_of_public_names_run(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0
    assert found.failed == 0
