"""Lazy discovery of plug-ins by file name: the file name is the name.

``scores/lac.py`` is ``--score lac``; ``methods/dro_isotonic.py`` is ``--method dro-isotonic``.
"""

from __future__ import annotations

import difflib
import importlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lrqr.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType


@cache
def names(package: str) -> tuple[str, ...]:
    """Names of the plug-ins in ``lrqr.<package>``, dashed and sorted, without importing them."""
    folder = Path(__file__).parent / package
    stems = (path.stem for path in folder.glob("*.py") if not path.stem.startswith("_"))
    return tuple(sorted(stem.replace("_", "-") for stem in stems))


def load(package: str, name: str) -> ModuleType:
    """Import the plug-in ``name`` of ``lrqr.<package>``.

    Raises
    ------
    UsageError
        If there is no such plug-in; the message lists the names and the nearest one.
    """
    known = names(package)
    dashed = name.replace("_", "-")
    if dashed not in known:
        kind = package.removesuffix("s")
        raise UsageError(f"unknown {kind} {name!r}{suggest(name, known)}; choose one of: {', '.join(known)}")
    return importlib.import_module(f"lrqr.{package}.{dashed.replace('-', '_')}")


def suggest(word: str, choices: Iterable[str]) -> str:
    """Return ``", did you mean 'x'?"`` for the choice nearest to ``word``, or an empty string."""
    by_folded = {choice.casefold(): choice for choice in choices}
    near = difflib.get_close_matches(word.casefold(), list(by_folded), n=1, cutoff=0.6)
    return f", did you mean {by_folded[near[0]]!r}?" if near else ""
