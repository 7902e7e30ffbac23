"""``lrqr reproduce``: experiments by name or by file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lrqr.study import reproduce

if TYPE_CHECKING:
    from pathlib import Path


def catalog() -> list[dict[str, Any]]:
    """Return what each experiment of the repository would run."""
    return reproduce.catalog()


def plan(name: str, splits: int | None) -> dict[str, Any]:
    """Return what a run of one experiment would do, after checking its file."""
    return reproduce.dry_run(name, splits)


def run(name: str, folder: Path, *, splits: int | None, jobs: int, progress: bool) -> reproduce.Outcome:
    """Run one experiment and write its tables and figure below ``folder``."""
    return reproduce.reproduce(name, folder, splits=splits, jobs=jobs, progress=progress)


def failures(outcome: reproduce.Outcome) -> list[str]:
    """Return the recorded claims that do not hold."""
    checks = outcome.checks.to_dict("records")
    return [
        f"{row['claim']} is {row['found']:.4g}, not {row['expected']}" for row in checks if not row["holds"]
    ]
