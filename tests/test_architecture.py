"""The house: who may import whom, and what start-up may cost."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commands import files, lrqr

from lrqr.solvers import newton

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "lrqr").rglob("*.py"))


def _linter() -> str:
    return str(Path(sys.executable).parent / "lint-imports")


def test_import_contracts_hold() -> None:
    result = subprocess.run([_linter(), "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_import_contracts_can_fail(tmp_path: Path) -> None:
    """The linter sees a forbidden import: a copy of the tree in which a score imports the command line."""
    shutil.copytree(ROOT / "lrqr", tmp_path / "lrqr")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "lrqr" / "scores" / "broken.py").write_text(
        '"""Broken on purpose."""\nimport lrqr.commands\n'
    )
    result = subprocess.run(
        [_linter(), "--no-cache"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert "lrqr.scores.broken" in result.stdout


def test_the_root_has_few_rooms() -> None:
    rooms = {path.relative_to(ROOT / "lrqr").parts[0] for path in SOURCES}
    assert len(rooms) <= 16


def test_functions_stay_short() -> None:
    """No function has more than 60 lines of code, docstring and comments apart."""
    long = {
        f"{path.relative_to(ROOT)}:{node.name}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and _lines_of_code(node, path) > 60
    }
    assert long == set()


def test_every_room_stands_in_the_document() -> None:
    document = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {path.relative_to(ROOT / "lrqr").parts[0].removesuffix(".py") for path in SOURCES} - {"__init__"}
    assert {room for room in rooms if f"`{room}`" not in document} == set()


def test_cvxpy_is_imported_by_the_reference_solver_only() -> None:
    users = {path.relative_to(ROOT / "lrqr").as_posix() for path in SOURCES if "cvxpy" in _imports(path)}
    assert users == {"solvers/reference.py"}


def test_a_default_fit_reaches_the_solver_in_few_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most eight calls, in at most four packages, from the command's function to the end of the solver."""
    found: list[list[str]] = []

    def watched(*arguments: Any, **options: Any) -> Any:
        frame, modules = sys._getframe(1), [newton.__name__]
        while frame is not None and not frame.f_globals["__name__"].startswith("lrqr.cli"):
            modules.append(frame.f_globals["__name__"])
            frame = frame.f_back
        assert frame is not None
        found.append([name for name in modules if name.startswith("lrqr.")])
        return solve(*arguments, **options)

    solve = newton.solve
    monkeypatch.setattr(newton, "solve", watched)
    paths = files(tmp_path)
    options = ("--outcome", "y", "--prediction", "yhat", "-o", tmp_path / "model")
    assert lrqr("fit", paths["source"], paths["target"], *options).code == 0
    assert found
    assert max(map(len, found)) <= 8
    assert {name.split(".")[1] for modules in found for name in modules} <= {
        "commands",
        "calibrate",
        "methods",
        "solvers",
    }


def test_help_imports_no_heavy_library() -> None:
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from lrqr.cli import cli\n"
        "assert CliRunner().invoke(cli, ['--help']).exit_code == 0\n"
        "print(sorted({'numpy', 'pandas', 'sklearn', 'cvxpy', 'scipy', 'matplotlib'} & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def _lines_of_code(node: ast.FunctionDef, path: Path) -> int:
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    if not body:
        return 0
    lines = path.read_text().splitlines()[body[0].lineno - 1 : node.end_lineno]
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in lines)


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found
