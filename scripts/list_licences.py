"""Write the licences of what `pip install lrqr` brings along into docs/reliability.md."""

from __future__ import annotations

import re
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"
TABLE = re.compile(r"(?<=<!-- licences -->\n)(?:\|.*\n)*")


def needed(name: str, found: dict[str, str]) -> dict[str, str]:
    """Return the licence of everything that a distribution requires, extras aside, by name."""
    for line in distribution(name).requires or ():
        requirement = Requirement(line)
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if wanted and requirement.name.lower() not in found:
            found[requirement.name.lower()] = licence(requirement.name)
            needed(requirement.name, found)
    return found


def licence(name: str) -> str:
    """Return the licence that a distribution names."""
    metadata = distribution(name).metadata
    classified = [
        line.rsplit(" :: ", 1)[1]
        for line in metadata.get_all("Classifier", [])
        if line.startswith("License :: ") and line.count(" :: ") > 1
    ]
    first = (metadata.get("License") or "").strip().partition("\n")[0]
    return (
        metadata.get("License-Expression") or ", ".join(classified) or first or "not stated in its metadata"
    )


def table() -> str:
    """Return the table as Markdown."""
    rows = [f"| {name} | {text} |\n" for name, text in sorted(needed("lrqr", {}).items())]
    return "| package | licence |\n|---|---|\n" + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(TABLE.sub(table(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
