"""``lrqr predict``: one row out per row in, in the same order, in batches."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lrqr.calibrate import model as models
from lrqr.calibrate.model import PRECOMPUTED
from lrqr.commands.engine import LOCAL, Place, spread
from lrqr.data import tables
from lrqr.data.encoder import warn_unseen
from lrqr.errors import DataError, LrqrWarning, UsageError
from lrqr.results import Predicted
from lrqr.stats.diagnosis import NO_OVERLAP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from lrqr.calibrate.model import Answer, CalibratedModel
    from lrqr.data.tables import Sample
    from lrqr.plugins import Infinite

_BATCH = 65536


def predict(
    model: Path,
    source: Path,
    output: Path,
    *,
    identifier: str | None = None,
    keep: Sequence[str] = (),
    separator: str | None = None,
    decimal: str | None = None,
    infinite: Infinite = "allow",
    place: Place = LOCAL,
    force: bool = False,
    step: Callable[[str], None] = lambda _: None,
) -> Predicted:
    """Write thresholds, and intervals or sets, for every row of a file.

    Parameters
    ----------
    model, source, output : Path
        A model directory; the rows to score; the file to write, of a kind that its suffix says.
    identifier : str, optional
        Column to carry along; default: that of the model, else the row number from 0.
    keep : sequence of str
        Columns of the input to write too, names or patterns.
    separator, decimal : str, optional
        Marks of a text file, which are recognized if not given.
    infinite : {"allow", "clip", "error"}
    place : Place
        Where batches are scored; they are read and written here.

    Returns
    -------
    Predicted
    """
    if output.exists() and output.samefile(source):
        raise UsageError(f"{output} is the input itself: give the predictions another name")
    tables.check_writable(output, force=force)
    fitted = models.load(model)
    roles = replace(
        fitted.roles, group=None, id=identifier or fitted.roles.id, separator=separator, decimal=decimal
    )
    check_written(fitted, [roles.id] if roles.id else [])
    need = fitted.needed(*(["id"] if roles.id else []))
    unseen: Counter[tuple[str, str]] = Counter()
    count = Counter(rows=0, infinite=0, empty=0, outside=0, abstained=0)

    samples = tables.batches(
        source,
        roles,
        size=_BATCH,
        need=need,
        optional=(),
        on_missing=fitted.on_missing,
        keep_rows=True,
        keep=keep,
    )

    def answers() -> Iterator[pd.DataFrame]:
        for frame, found, new in spread(partial(_scored, fitted, roles.id or "row", infinite), samples):
            count.update(found)
            unseen.update(new)
            yield frame
            step(f"{count['rows']:,} rows")

    with place.ready():
        tables.write(output, answers(), force=force)
    warn_unseen(unseen)
    finite = count["rows"] - count["infinite"]
    bare = fitted.threshold.support_ is None and fitted.details["shift"]["verdict"] == NO_OVERLAP
    if finite and bare:
        what = "sets" if fitted.classes else "intervals"
        warnings.warn(
            f"source and target of the fit have no overlap: {finite} of {count['rows']} {what} are finite "
            "all the same, and carry no promise",
            LrqrWarning,
            stacklevel=2,
        )
    return Predicted(**count)


def _scored(
    model: CalibratedModel, name: str, infinite: Infinite, sample: Sample
) -> tuple[pd.DataFrame, dict[str, int], Counter[tuple[str, str]]]:
    """Score a batch, wherever it is done; return what is written, its counts, and unseen categories."""
    unseen: Counter[tuple[str, str]] = Counter()
    answer = model.answer(sample, infinite="clip" if infinite == "clip" else "allow", unseen=unseen)
    if infinite == "error" and model.threshold.support_ is None:
        _refuse_infinite(answer, sample)
    frame = frame_of(model, sample, answer, name)
    counts = {
        "rows": len(frame),
        "infinite": int(np.isposinf(answer.threshold).sum()),
        "empty": int(_empty(answer).sum()),
        "outside": int(frame["outside_support"].sum()),
        "abstained": int(frame["abstained"].sum()) if "abstained" in frame else 0,
    }
    return frame, counts, unseen


def frame_of(model: CalibratedModel, sample: Sample, answer: Answer, name: str = "row") -> pd.DataFrame:
    """Lay out the answers: the identifier or row number, what is kept, the threshold, the interval or set."""
    check_written(model, list(map(str, sample.kept)), "--keep", name)
    columns: dict[str, Any] = {name: sample.id}
    columns |= {str(kept): sample.kept[kept] for kept in sample.kept}
    columns["threshold"] = answer.threshold
    if answer.region.dtype == np.bool_:
        columns |= {f"in_{name}": answer.region[:, k] for k, name in enumerate(model.classes)}
        columns["size"] = answer.region.sum(axis=1)
    elif model.score != PRECOMPUTED:
        columns |= {"lower": answer.region[:, 0], "upper": answer.region[:, 1]}
    if model.threshold.support_ is not None:
        columns["abstained"] = np.isposinf(answer.threshold)
    columns["outside_support"] = model.outside(sample, answer)
    return pd.DataFrame(columns)


def check_written(model: CalibratedModel, names: Sequence[str], flag: str = "--id", *more: str) -> None:
    """Refuse to carry along a column that has the name of one that is written."""
    sets = [f"in_{label}" for label in model.classes]
    written = {"threshold", "lower", "upper", "size", "outside_support", "abstained", *sets, *more}
    for name in written.intersection(names):
        raise UsageError(
            f"{flag} {name!r}: predict writes a column of that name itself; give the column another"
        )


def _empty(answer: Answer) -> Any:
    if answer.region.dtype == np.bool_:
        return ~answer.region.any(axis=1)
    return answer.region[:, 0] > answer.region[:, 1]


def _refuse_infinite(answer: Answer, sample: Sample) -> None:
    infinite = np.flatnonzero(np.isposinf(answer.threshold))
    if infinite.size:
        raise DataError(
            f"{sample.source}: row {sample.row[infinite[0]] + 1} (data rows counted from 1) has an infinite "
            "threshold: no finite answer keeps the promise there; calibrate on more rows, lower the "
            "coverage, or pass --infinite allow or clip"
        )
