"""What each column is for: the one declaration of roles, and the search for columns by name or pattern.

A new role is one field of `Roles`. Its spelling makes the flag, the key in configuration files, the words of
messages and, with `Roles.of_options`, the way from flags or an experiment's table to `Roles`. Nothing
heavy is imported here: ``lrqr --help`` reads this file.
"""

from __future__ import annotations

import fnmatch
import math
import re
import unicodedata
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from lrqr.errors import DataError, UsageError
from lrqr.plugins import suggest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SHOWN = 10
_PROBABILITIES = "p_*"  # where Python says that there are probabilities, and not which columns
_SEVERAL = ("prediction", "features", "exclude", "categorical", "classes", "positive", "missing_values")

Bounds: TypeAlias = tuple[float | None, float | None] | None
"""The lowest and the highest possible outcome; None where there is none."""

READING = ("missing_values", "separator", "decimal")
"""Fields of `Roles` that say how files are read."""

MISSING_WORDS = [
    "NA",
    "N/A",
    "n/a",
    "#N/A",
    "#NA",
    "NaN",
    "nan",
    "-NaN",
    "-nan",
    "NULL",
    "null",
    "<NA>",
    "None",
]
"""Texts that say that a value is missing, unless the user says which do."""

TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
"""What the names of two classes say, in small letters."""


def clean(text: str) -> str:
    """Return a name, a category or a class as it is compared: in Unicode's form C, without outer blanks."""
    return unicodedata.normalize("NFC", text.strip())


def as_bounds(value: Any) -> Bounds:
    """Return the lowest and the highest possible value, None where there is no end; None without any.

    Parameters
    ----------
    value : (low, high), or a text such as ``"0,"``
        An end that is None, infinite or an empty text is no end.
    """
    if value is None:
        return None
    parts = value.split(",") if isinstance(value, str) else value
    try:
        low, high = (None if part is None or not str(part).strip() else float(part) for part in parts)
    except (TypeError, ValueError):
        raise UsageError(
            f"bounds must be two numbers LOW,HIGH, of which one may be left out (0, or ,100), got {value!r}"
        ) from None
    ends = ends_of((low, high))
    if not ends[0] < ends[1]:
        raise UsageError(f"bounds: the low end must lie below the high one, got {value!r}")
    if ends == (-math.inf, math.inf):
        raise UsageError(f"bounds must name at least one end (0, or ,100), got {value!r}")
    return (low if math.isfinite(ends[0]) else None), (high if math.isfinite(ends[1]) else None)


def ends_of(bounds: Bounds) -> tuple[float, float]:
    """Return both ends as numbers, infinite where there is none."""
    low, high = bounds or (None, None)
    return (-math.inf if low is None else low), (math.inf if high is None else high)


class Spelling(NamedTuple):
    """How users name a role, and how messages do.

    Attributes
    ----------
    flag : str
        The option; without its dashes it is the key in configuration files.
    noun : str
        What messages call such a column.
    help : str
    multiple : bool
        Whether several columns may have the role.
    metavar : str
    """

    flag: str
    noun: str
    help: str
    multiple: bool = False
    metavar: str = "COLUMN"


def _one(flag: str, noun: str, text: str) -> Any:
    return field(default=None, metadata={"spelling": Spelling(flag, noun, text)})


def _many(flag: str, noun: str, text: str, default: Any = (), metavar: str = "COLUMN") -> Any:
    return field(
        default=default, metadata={"spelling": Spelling(flag, noun, text, multiple=True, metavar=metavar)}
    )


@dataclass(frozen=True)
class Roles:
    """Which columns play which part. Columns are always found by name, never by position.

    Attributes
    ----------
    outcome : str, optional
        The true value or label.
    prediction : tuple of str
        What the user's model said: as many columns as the score's ``INPUTS``, or one per class. Names or
        patterns such as ``p_*``.
    score_column : str, optional
        A score that the user computed.
    group, cluster, id, weight : str, optional
        Group to report by; name of the rows that belong together; row identifier; known likelihood ratio. (A
        role is a column: what methods are given as a number per row is called ``ratio``.)
    features : tuple of str, optional
        Features, names or patterns. None: all columns without another role, minus ``exclude``.
    exclude : tuple of str
        Columns that are no features.
    categorical : tuple of str
        Features whose values are labels even where they look like numbers.
    probability : bool, str or tuple of str
        ``prediction`` are class probabilities, and the outcome is a label. Names or patterns are these
        columns themselves, and True alone means ``p_*``.
    classes : tuple of str
        Names of the classes in the order of ``prediction``; found by `resolve`. Two for one column of
        ``prediction``: it is the probability of the second.
    positive : tuple of str
        Those columns of ``prediction`` that must be positive, such as a spread.
    bounds : (float or None, float or None), optional
        The lowest and the highest outcome that is possible, or a text such as ``"0,"``. Intervals are cut
        there, and an outcome beyond is an error.
    missing_values : tuple of str, optional
        Texts that say that a value is missing, besides empty ones; None: `MISSING_WORDS`.
    separator, decimal : str, optional
        What stands between the columns, and before the decimals, of text files; None: what is recognized.

    Notes
    -----
    Where several names may stand, one name may be given as it is: ``prediction="yhat"``; None is no name.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}  # of roles that are read from a file

    outcome: str | None = _one("--outcome", "outcome", "Column of the outcome.")
    prediction: tuple[str, ...] = _many(
        "--prediction",
        "prediction",
        "Column of your model's prediction. Two for cqr (low, high), normalized (prediction, spread).",
    )
    score_column: str | None = _one("--score-column", "score", "Column of scores that you computed yourself.")
    group: str | None = _one("--group", "group", "Report coverage for each value of this column too.")
    cluster: str | None = _one(
        "--cluster",
        "cluster",
        "Column that names rows which are not independent, such as a patient's: no split divides them.",
    )
    id: str | None = _one("--id", "id", "Column to carry along as the name of a row.")
    weight: str | None = _one(
        "--weight-column",
        "weight",
        "Column of known likelihood ratios, read again by predict and evaluate.",
    )
    features: tuple[str, ...] | None = _many(
        "--features",
        "feature",
        "Columns that the threshold may depend on; patterns and commas work.  "
        "[default: all that source and target have and that play no other part]",
        default=None,
    )
    exclude: tuple[str, ...] = _many("--exclude", "excluded", "Columns that are not features.")
    categorical: tuple[str, ...] = _many(
        "--categorical", "categorical", "Number columns that are categories."
    )
    probability: bool | str | tuple[str, ...] = _many(
        "--probability",
        "prediction",
        "Columns of class probabilities, such as 'p_*': class names are what * stands for.",
        default=False,
        metavar="PATTERN",
    )
    classes: tuple[str, ...] = ()
    positive: tuple[str, ...] = ()
    bounds: Bounds = None
    missing_values: tuple[str, ...] | None = None
    separator: str | None = None
    decimal: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.probability, bool):  # the columns themselves, as the flag takes them
            object.__setattr__(self, "prediction", self.probability)
            object.__setattr__(self, "probability", bool(self.probability))
        for role in _SEVERAL:
            given = getattr(self, role)
            if given is not None or role not in {"features", "missing_values"}:
                several = (given,) if isinstance(given, str) else tuple(given or ())
                object.__setattr__(self, role, tuple(map(clean, several)))
        object.__setattr__(self, "bounds", as_bounds(self.bounds))
        for role in SINGLE.values():
            if getattr(self, role) is not None:
                object.__setattr__(self, role, clean(getattr(self, role)))

    @classmethod
    def of_options(cls, options: Mapping[str, Any]) -> Roles:
        """Make roles of the values of options (or of a table in an experiment file) by the names of roles.

        Parameters
        ----------
        options : mapping of str to str, sequence of str, or None
            Keys that are no roles are not looked at. ``probability`` is the patterns of its columns here.

        Raises
        ------
        UsageError
            If predictions and probabilities are both given.
        """
        given = {name: options[name] for name in (*SPELLINGS, *READING, "bounds") if name in options}
        if given["prediction"] and given["probability"]:
            raise UsageError(
                "--prediction is for regression, --probability for classification: pass one of them"
            )
        given |= {
            "prediction": given["prediction"] or given["probability"],
            "probability": bool(given["probability"]),
            "features": given["features"] or None,
        }
        return cls(**given)

    def with_native(self, native: Mapping[str, tuple[str, ...]]) -> Roles:
        """Fill the roles that are not given with those that the file itself assigns (NPZ)."""
        found: dict[str, Any] = {
            name: native[noun][0]
            for noun, name in SINGLE.items()
            if native.get(noun) and getattr(self, name) is None
        }
        if not self.prediction and "prediction" in native:
            classes = native.get("classes", ())
            found |= {"prediction": native["prediction"], "classes": classes, "probability": bool(classes)}
        elif not self.prediction and self.probability:
            found["prediction"] = (_PROBABILITIES,)
        return replace(self, **found)

    @property
    def words(self) -> frozenset[str]:
        """Texts that say that a value is missing."""
        return frozenset(MISSING_WORDS if self.missing_values is None else self.missing_values)

    @property
    def taken(self) -> frozenset[str]:
        """Columns that have a role other than feature."""
        single = (getattr(self, name) for name in SINGLE.values())
        return frozenset(name for name in (*single, *self.prediction) if name is not None)

    def free(self, columns: Sequence[str]) -> list[str]:
        """Return the columns that have no role and are not excluded."""
        no_feature = self.taken.union(expand(self.exclude, columns))
        return [name for name in columns if name not in no_feature]


SPELLINGS: dict[str, Spelling] = {
    role.name: role.metadata["spelling"] for role in fields(Roles) if role.metadata
}
"""Every role that users name, by the name of its field in `Roles`."""

SINGLE: dict[str, str] = {
    spelling.noun: name for name, spelling in SPELLINGS.items() if not spelling.multiple
}
"""Roles of one column: from what samples and messages call them to the field in `Roles`."""


def resolve(
    roles: Roles,
    columns: Sequence[str],
    *others: Sequence[str],
    need: Sequence[str] = (),
    where: Sequence[str] = ("data",),
) -> Roles:
    """Expand patterns and choose the features.

    Parameters
    ----------
    roles : Roles
    columns : sequence of str
        Columns of the source.
    *others : sequence of str
        Columns of further files (the target): features are columns that all files have, and a feature that
        is named must be in each.
    need : sequence of str
        Fields of ``roles`` with a single column that must exist.
    where : sequence of str
        What to call each file in messages; further ones are called like the last.

    Returns
    -------
    Roles
        With ``prediction``, ``features``, ``categorical`` and ``classes`` as plain names.

    Raises
    ------
    DataError
        If a column does not exist or a pattern matches nothing; all problems of a file at once.
    """
    files = (columns, *others)
    of_files: list[list[str]] = [[] for _ in files]
    problems = of_files[0]
    for name in need:
        expand((getattr(roles, name),), columns, name, problems)
    kind = "probability" if roles.probability else "prediction"
    prediction = expand(roles.prediction, columns, kind, problems)
    classes = roles.classes
    if roles.probability and not classes:
        classes = tuple(_class_name(name, roles.prediction) for name in prediction)
    taken = replace(roles, prediction=prediction).taken
    excluded = set(expand(roles.exclude, list(dict.fromkeys(chain(*files))), "exclude", problems))
    shared = [name for name in columns if all(name in other for other in map(frozenset, others))]
    free = [name for name in shared if name not in taken]
    chosen = free if roles.features is None else _named(roles.features, files, shared, of_files)
    features = tuple(name for name in chosen if name not in excluded)
    used_twice = sorted(set(features) & (taken - {roles.group, roles.weight, roles.id, *prediction}))
    if used_twice:
        raise UsageError(
            f"{', '.join(map(repr, used_twice))} cannot be a feature: it is the outcome or the score"
        )
    for file, found in zip(files, of_files, strict=True):
        expand(roles.categorical, file, "categorical", found)
    no_feature = [name for name in roles.categorical if not expand((name,), features)]
    if no_feature and not any(of_files):
        problems.append(f"categorical, but not among the features: {', '.join(map(repr, no_feature))}")
    for k, found in enumerate(of_files):
        if found:
            more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            listed = "; ".join(found[:_SHOWN])
            name = where[min(k, len(where) - 1)]
            raise DataError(f"{name}: {listed}{more}; the columns are: {_listing(files[k])}")
    categorical = expand(roles.categorical, features)
    return replace(roles, prediction=prediction, features=features, categorical=categorical, classes=classes)


def refuse_disjoint(roles: Roles, columns: Sequence[str], *others: Sequence[str]) -> None:
    """Refuse tables without a common feature column: nothing could be compared.

    Parameters
    ----------
    roles : Roles
        As `resolve` returned them.
    columns : sequence of str
        Columns of the source.
    *others : sequence of str
        Columns of the target and of further tables.

    Raises
    ------
    DataError
    """
    if roles.features or not others:
        return
    shown = [_listing(roles.free(table)) or "none" for table in (columns, *others)]
    names = ("source", "target", *(f"table {k}" for k in range(3, len(shown) + 1)))
    listed = ", ".join(f"{name} has {found}" for name, found in zip(names, shown, strict=True))
    raise DataError(f"source and target share no feature columns: {listed}")


def one_sided(roles: Roles, source: Sequence[str], target: Sequence[str]) -> str:
    """Say which columns without a role only one of two tables has, and so are no features; empty if none."""
    own, other = roles.free(source), roles.free(target)
    only_source = [name for name in own if name not in set(other)]
    only_target = [name for name in other if name not in set(own)]
    sides = [
        f"only in the {side}: {', '.join(f'{n!r}{suggest(n, near)}' for n in names[:_SHOWN])}"
        + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
        for side, names, near in (("source", only_source, only_target), ("target", only_target, ()))
        if names
    ]
    return f"columns that only one file has are not used as features; {'; '.join(sides)}" if sides else ""


def expand(
    patterns: Sequence[str],
    columns: Sequence[str],
    role: str = "features",
    problems: list[str] | None = None,
) -> tuple[str, ...]:
    """Names that the patterns stand for, each once, in the order of patterns and columns.

    A pattern that is itself a column stands for that column. What matches nothing is added to ``problems``,
    in the words of its role.
    """
    found: dict[str, None] = {}
    known = frozenset(columns)
    for pattern in patterns:
        matches = [pattern] if pattern in known else [c for c in columns if fnmatch.fnmatchcase(c, pattern)]
        if not matches and problems is not None:
            problems.append(_unmatched(pattern, columns, SPELLINGS[role], hint=len(problems) < _SHOWN))
        found |= dict.fromkeys(matches)
    return tuple(found)


def _unmatched(pattern: str, columns: Sequence[str], role: Spelling, *, hint: bool) -> str:
    if any(mark in pattern for mark in "*?["):
        return f"no column matches {role.flag} {pattern!r}"
    return f"{role.noun} column {pattern!r} does not exist{suggest(pattern, columns) if hint else ''}"


def _named(
    wanted: Sequence[str], files: Sequence[Sequence[str]], shared: Sequence[str], problems: list[list[str]]
) -> tuple[str, ...]:
    """Return the named features; add to the problems of each file what it lacks, where much, how many."""
    for file, found in zip(files, problems, strict=True):
        lacking: list[str] = []
        expand(wanted, file, "features", lacking)
        if len(lacking) > _SHOWN:
            missing = [name for name in wanted if name not in set(file)]
            there = f"has {len(wanted) - len(missing)} of the {len(wanted)} features needed"
            lacking = [f"{there}; missing: {', '.join(missing[:3])}, ... ({len(missing)})"]
        found.extend(lacking)
    lost: list[str] = []
    chosen = expand(wanted, shared, "features", lost)
    if not any(problems):  # a pattern that stands for other columns in each file
        problems[0] += [f"{message} in all files" for message in lost]
    return chosen


def _class_name(column: str, patterns: Sequence[str]) -> str:
    """Return the part of the column that the ``*`` of its pattern stands for, or the whole name."""
    for pattern in patterns:
        if pattern.count("*") == 1 and pattern != column:
            before, after = map(re.escape, pattern.split("*"))
            match = re.fullmatch(f"{before}(.*){after}", column, flags=re.DOTALL)
            if match:
                return match.group(1)
    return column


def _listing(columns: Sequence[str]) -> str:
    shown = ", ".join(columns[:20])
    return f"{shown}, ... ({len(columns)} in all)" if len(columns) > 20 else shown
