"""What looks wrong with features that can be read all the same: said once, by name, with the remedy."""

from __future__ import annotations

import shlex
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from lrqr.data.columns import absent
from lrqr.errors import LrqrWarning

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lrqr.arrays import FloatArray
    from lrqr.data.encoder import TableEncoder

    Columns = Mapping[str, np.ndarray[Any, Any]]

_SHOWN = 5
_FEWEST = 20  # rows from which on distinct, nearly consecutive numbers are no chance
_NEARLY = 1.5  # numbers from first to last, as a multiple of the rows
_MOST = 0.5  # of the target, beyond the source: what the verdict "no overlap" takes
_UNLIKE = 0.05  # difference of the shares of missing values that is worth a line


def warn(encoder: TableEncoder, frame_source: Any, frame_target: Any) -> None:
    """Warn of what the features of two frames show together.

    Parameters
    ----------
    encoder : TableEncoder
        Fitted on both.
    frame_source, frame_target : data frame
        Rows in the order of their file.
    """
    source, target = encoder.read(frame_source), encoder.read(frame_target)
    for message in (
        *_unseen(source, target),
        *_missing(source, target),
        *_beyond(source, target),
        *_counters(source, target),
    ):
        warnings.warn(message, LrqrWarning, stacklevel=3)


def _unseen(source: Columns, target: Columns) -> Iterator[str]:
    """Yield the categories that only the target has."""
    for name, values in target.items():
        if values.dtype != object or source[name].dtype != object:
            continue
        known = {label for label in source[name].tolist() if label is not None}
        strange = [label for label in values.tolist() if label is not None and label not in known]
        if strange and known:
            labels = sorted(set(strange))
            near = {_folded(label): label for label in known}
            pairs = [f"{label!r} and {near[_folded(label)]!r}" for label in labels if _folded(label) in near]
            remedy = f"; {_few(pairs)} differ only in case or blanks: write them alike" if pairs else ""
            yield (
                f"column {name!r}: {len(strange)} of {len(values)} target rows hold categories that no "
                f"source row has ({_few(list(map(repr, labels)))}){remedy}"
            )


def _folded(label: str) -> str:
    return "".join(label.casefold().split())


def _missing(source: Columns, target: Columns) -> Iterator[str]:
    """Yield in one line which features lack values more often on one side."""
    shares = {name: (_share(source[name]), _share(values)) for name, values in target.items()}
    unlike = {name: pair for name, pair in shares.items() if abs(pair[1] - pair[0]) >= _UNLIKE}
    order = sorted(unlike, key=lambda name: -abs(unlike[name][1] - unlike[name][0]))
    if order:
        percent = {name: [f"{100 * share:.3g} %" for share in unlike[name]] for name in order}
        listed = [
            f"{name!r} {own} in the source, {other} in the target" for name, (own, other) in percent.items()
        ]
        yield f"missing: {_few(listed, '; ')}"


def _share(values: np.ndarray[Any, Any]) -> float:
    return float(absent(values).mean()) if len(values) else 0.0


def _beyond(source: Columns, target: Columns) -> Iterator[str]:
    """Yield in one line the numbers most of which lie beyond all of the source: they rule out overlap."""
    found = []
    for name, values in target.items():
        own = source[name]
        if own.dtype == values.dtype == np.float64 and not (absent(own).all() or absent(values).all()):
            for where, share in (
                ("above", np.mean(values > np.nanmax(own))),
                ("below", np.mean(values < np.nanmin(own))),
            ):
                if share >= _MOST:
                    found.append(f"{name!r}, {100 * share:.3g} % of the target {where} all source values")
    if found:
        yield f"no overlap in {_few(found, '; ')}; --exclude leaves out columns that only say when or where"


def _counters(source: Columns, target: Columns) -> Iterator[str]:
    """Yield the columns that seem to number the rows, or to say when they were made."""
    found: dict[str, list[str]] = {"number the rows": [], "say only when a row was made": []}
    for name, values in target.items():
        pair = (source[name], values)
        if all(part.dtype == np.float64 and len(part) >= _FEWEST for part in pair):
            if all(map(_numbers_rows, pair)):
                found["number the rows"].append(name)
            elif all(map(_rises, pair)) and not (
                pair[0].min() <= pair[1].max() and pair[1].min() <= pair[0].max()
            ):
                found["say only when a row was made"].append(name)
    for what, names in found.items():
        if names:
            yield (
                f"{_few(list(map(repr, names)))} seem{'s' if len(names) == 1 else ''} to {what}, which no "
                f"other row shares: --exclude {shlex.quote(','.join(names))}, or --id for one that is to be "
                "carried along"
            )


def _numbers_rows(values: FloatArray) -> bool:
    """Whether these are whole numbers, all different and nearly consecutive."""
    if not np.isfinite(values).all() or (values != np.floor(values)).any():
        return False
    return bool(np.ptp(values) + 1 <= _NEARLY * len(values) and len(np.unique(values)) == len(values))


def _rises(values: FloatArray) -> bool:
    return bool((np.diff(values) > 0).all() or (np.diff(values) < 0).all())


def _few(items: Sequence[str], between: str = ", ") -> str:
    return between.join(items[:_SHOWN]) + (
        f"{between}... ({len(items)} in all)" if len(items) > _SHOWN else ""
    )
