"""Names that options choose from, and plug-ins found by file name.

``scores/lac.py`` is ``--score lac``; ``methods/dro_isotonic.py`` is ``--method dro-isotonic``.
"""

from __future__ import annotations

import difflib
import importlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from lrqr.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

Base = Literal["ridge", "hist-gradient-boosting", "logistic"]
FeatureMap = Literal["auto", "given", "learned", "constant"]
Infinite = Literal["allow", "clip", "error"]
OnMissing = Literal["error", "drop", "impute"]

BASES: tuple[str, ...] = get_args(Base)
FEATURE_MAPS: tuple[str, ...] = get_args(FeatureMap)
INFINITE: tuple[str, ...] = get_args(Infinite)
ON_MISSING: tuple[str, ...] = get_args(OnMissing)


@cache
def names(package: str) -> tuple[str, ...]:
    """Names of the plug-ins in ``lrqr.<package>``, dashed and sorted, without importing them."""
    folder = Path(__file__).parent.joinpath(*package.split("."))
    shared = getattr(importlib.import_module(f"lrqr.{package}"), "SHARED", ())
    stems = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")} - {*shared}
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
        check_choice(package.rpartition(".")[2].removesuffix("s"), name, known)
    return importlib.import_module(f"lrqr.{package}.{dashed.replace('-', '_')}")


def suggest(word: str, choices: Iterable[str]) -> str:
    """Return ``", did you mean 'x'?"`` for the choice nearest to ``word``, or an empty string."""
    by_folded = {choice.casefold(): choice for choice in choices}
    near = difflib.get_close_matches(word.casefold(), list(by_folded), n=1, cutoff=0.6)
    return f", did you mean {by_folded[near[0]]!r}?" if near else ""


def check_choice(kind: str, value: object, known: Iterable[str]) -> None:
    """Raise UsageError unless ``value`` is one of the ``known`` names; the message lists them."""
    known = tuple(known)
    if value not in known:
        hint = suggest(str(value), known)
        raise UsageError(f"unknown {kind} {value!r}{hint}; choose one of: {', '.join(known)}")
