"""Names that options choose from, and plug-ins found by file name or by the entry points of other packages.

``scores/lac.py`` is ``--score lac``; ``methods/dro_isotonic.py`` is ``--method dro-isotonic``. A module that
an installed package names in the group ``lrqr.scores`` or ``lrqr.methods`` of its entry points is one more.
"""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from lrqr.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from importlib.metadata import EntryPoint
    from types import ModuleType

Base = Literal["ridge", "hist-gradient-boosting", "logistic"]
FeatureMap = Literal["auto", "given", "learned", "constant"]
Infinite = Literal["allow", "clip", "error"]
Guarantee = Literal["marginal", "pac"]
OnMissing = Literal["error", "drop", "impute"]
Side = Literal["both", "upper", "lower"]
Engine = Literal["local", "dask"]

BASES: tuple[str, ...] = get_args(Base)
FEATURE_MAPS: tuple[str, ...] = get_args(FeatureMap)
INFINITE: tuple[str, ...] = get_args(Infinite)
GUARANTEES: tuple[str, ...] = get_args(Guarantee)
ON_MISSING: tuple[str, ...] = get_args(OnMissing)
SIDES: tuple[str, ...] = get_args(Side)
ENGINES: tuple[str, ...] = get_args(Engine)


_NEEDED = {"scores": ("TASK", "INPUTS", "LOWEST", "score", "region"), "methods": ("ESTIMATOR",)}
"""What a module of another package must have to be one of ours."""


@cache
def names(package: str) -> tuple[str, ...]:
    """Names of the plug-ins of ``lrqr.<package>``, dashed and sorted, without importing them."""
    return tuple(sorted({*_own(package), *_others(package)}))


def load(package: str, name: str) -> ModuleType:
    """Import the plug-in ``name`` of ``lrqr.<package>``; of two with one name, that of lrqr.

    Raises
    ------
    UsageError
        If there is no such plug-in (the message lists the names and the nearest one), or if that of another
        package cannot be imported or lacks something.
    """
    dashed, kind = name.replace("_", "-"), package.rpartition(".")[2].removesuffix("s")
    if dashed in _own(package):
        return importlib.import_module(f"lrqr.{package}.{dashed.replace('-', '_')}")
    if dashed in _others(package):
        return _foreign(kind, _others(package)[dashed], _NEEDED[package])
    check_choice(kind, name, names(package))
    raise AssertionError(name)  # pragma: no cover - the check has raised


def name_of(package: str, attribute: str, value: object) -> str | None:
    """Return the name of the plug-in whose ``attribute`` is ``value``, or None."""
    return next((name for name in names(package) if getattr(load(package, name), attribute) is value), None)


@cache
def _own(package: str) -> frozenset[str]:
    folder = Path(__file__).parent.joinpath(*package.split("."))
    shared = getattr(importlib.import_module(f"lrqr.{package}"), "SHARED", ())
    stems = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")} - {*shared}
    return frozenset(stem.replace("_", "-") for stem in stems)


@cache
def _others(package: str) -> dict[str, EntryPoint]:
    """Return the entry points of other packages by their names."""
    from importlib.metadata import entry_points  # `lrqr --help` needs neither this nor difflib

    if package not in _NEEDED:
        return {}
    return {point.name.replace("_", "-"): point for point in entry_points(group=f"lrqr.{package}")}


@cache
def _foreign(kind: str, point: EntryPoint, needed: tuple[str, ...]) -> ModuleType:
    """Import a plug-in of another package."""
    whose = f"{kind} {point.name!r} ({point.value}" + (f", of {point.dist.name})" if point.dist else ")")
    try:
        module: ModuleType = point.load()
    except Exception as error:  # whatever a package of somebody else does when it is imported
        raise UsageError(f"{whose} cannot be imported: {error!r}; mend or uninstall that package") from error
    lacking = [name for name in needed if not hasattr(module, name)]
    if lacking:
        raise UsageError(f"{whose} lacks {', '.join(lacking)}; see docs/extending.md")
    return module


def suggest(word: str, choices: Iterable[str]) -> str:
    """Return ``", did you mean 'x'?"`` for the choice nearest to ``word``, or an empty string."""
    import difflib

    by_folded = {choice.casefold(): choice for choice in choices}
    near = difflib.get_close_matches(word.casefold(), list(by_folded), n=1, cutoff=0.6)
    return f", did you mean {by_folded[near[0]]!r}?" if near else ""


def check_choice(kind: str, value: object, known: Iterable[str]) -> None:
    """Raise UsageError unless ``value`` is one of the ``known`` names; the message lists them."""
    known = tuple(known)
    if value not in known:
        hint = suggest(str(value), known)
        raise UsageError(f"unknown {kind} {value!r}{hint}; choose one of: {', '.join(known)}")
