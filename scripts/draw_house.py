"""Draw the packages of lrqr and who uses whom, from the source: docs/figures/house.svg.

Run by ``make docs``. A test asserts that the committed picture is the one that this script draws.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "lrqr"
PICTURE = ROOT / "docs" / "figures" / "house.svg"

# Everybody may import these; their arrows would hide the others.
COMMON = {"arrays", "errors", "plugins"}
WIDTH, BOX, HEIGHT, GAP, LEFT = 1000, 138, 52, 58, 20


def floors() -> list[list[str]]:
    """Return the layers contract of pyproject.toml: packages and modules per floor, the top floor first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = next(c for c in settings["tool"]["importlinter"]["contracts"] if c.get("exhaustive"))
    return [[name.strip() for name in layer.split(":")] for layer in contract["layers"]]


def room_of(path: Path) -> str:
    """Return the package or module directly below ``lrqr`` that a source file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Return the rooms that a source file imports, at its top or in a function, except for types only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            node.body = []
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    parts = [name.split(".") for name in names]
    return {found[1] for found in parts if found[0] == "lrqr" and len(found) > 1}


def by_name(path: Path) -> set[str]:
    """Return the packages whose files a source file loads by name: ``plugins.load("scores", ...)``."""
    calls = [
        node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)
    ]
    first = {ast.unparse(call.args[0]).strip("'").split(".")[0] for call in calls if _asks(call)}
    return first & {name for floor in floors() for name in floor}


def _asks(call: ast.Call) -> bool:
    return bool(call.args) and ast.unparse(call.func) in {"plugins.load", "plugins.names", "plugins.get"}


def arrows(used: Callable[[Path], set[str]]) -> set[tuple[str, str]]:
    """Return the pairs (room, room that it uses), those of `COMMON` apart."""
    known = {name for floor in floors() for name in floor}
    pairs = {(room_of(path), other) for path in PACKAGE.rglob("*.py") for other in used(path)}
    return {(a, b) for a, b in pairs if a != b and a in known and b in known - COMMON}


def draw() -> str:
    """Return the picture as SVG: one row of boxes per floor, arrows for imports, dashed for plug-ins."""
    rows = floors()
    place: dict[str, tuple[float, float]] = {}
    for level, rooms in enumerate(rows):
        free = (WIDTH - 2 * LEFT - BOX * len(rooms)) / (len(rooms) + 1)
        for k, room in enumerate(rooms):
            place[room] = (LEFT + free + k * (BOX + free), 20 + level * (HEIGHT + GAP))
    bottom = 20 + len(rows) * (HEIGHT + GAP) - GAP + 20
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom}" font-family="sans-serif">',
        "<title>The packages of lrqr: each imports only what stands below it or beside it</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"',
        'orient="auto"><path d="M0 0 8 4 0 8z" fill="#678"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{bottom}" fill="#fff"/>',
    ]
    imports = arrows(imported)
    lines += [_arrow(place[a], place[b]) for a, b in sorted(imports)]
    lines += [_arrow(place[a], place[b], dashed=True) for a, b in sorted(arrows(by_name) - imports)]
    for room, (x, y) in sorted(place.items()):
        lines += [
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{BOX}" height="{HEIGHT}" rx="6" {_fill(room)}/>',
            f'<text x="{x + BOX / 2:.0f}" y="{y + 31:.0f}" font-size="17" text-anchor="middle">{room}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


def _fill(room: str) -> str:
    return f'fill="{"#f4f4f4" if room in COMMON else "#e6eef8"}" stroke="#357"'


def _arrow(start: tuple[float, float], end: tuple[float, float], *, dashed: bool = False) -> str:
    """Draw from the bottom of a box to the top of one below it; on one floor, an arc."""
    (x, y), (u, v) = start, end
    if y == v:
        middle = f"Q{(x + u + BOX) / 2:.0f} {y + HEIGHT + 34:.0f} "
        path = f"M{x + BOX / 2:.0f} {y + HEIGHT:.0f}{middle}{u + BOX / 2:.0f} {v + HEIGHT + 2:.0f}"
    else:
        lean = max(-1.0, min(1.0, (u - x) / 500.0)) * BOX * 0.4
        path = f"M{x + BOX / 2 + lean:.0f} {y + HEIGHT:.0f}L{u + BOX / 2 - lean:.0f} {v:.0f}"
    dashes = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<path d="{path}" fill="none" stroke="#678" stroke-opacity=".6"{dashes} marker-end="url(#tip)"/>'


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
