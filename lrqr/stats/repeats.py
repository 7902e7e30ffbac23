"""Rows that occur more than once, in a sample or in two that should have none in common."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lrqr.arrays import FloatArray
from lrqr.stats.folds import alike, copies, copies_by_values


@dataclass(frozen=True)
class Repeats:
    """How many rows are copies.

    Attributes
    ----------
    n_source, n_target : int
        Rows.
    copies_source, copies_target : int
        Rows that are copies of earlier ones of the sample (`lrqr.stats.folds.copies`).
    shared_rows : int
        Target rows that the source has too, where that is no chance.
    """

    n_source: int
    n_target: int
    copies_source: int
    copies_target: int
    shared_rows: int

    @classmethod
    def of(cls, source: FloatArray, target: FloatArray | None, outcome: Any = None) -> "Repeats":
        """Count in source rows (n, d) with their outcomes (n,), if known, and in target rows (m, d)."""
        other = source[:0] if target is None else target
        own = copies(source, outcome, other=target)
        found = copies(other, other=source)
        both = np.concatenate([source, other])
        shared = 0
        if len(np.unique(copies_by_values(both))) < len(both):
            names = alike(both)
            shared = int(np.isin(names[len(source) :], names[: len(source)]).sum())
        first, second = (len(rows) - len(np.unique(rows)) for rows in (own, found))
        return cls(len(source), len(other), first, second, shared)

    @property
    def notes(self) -> list[str]:
        """What to tell a user: a sentence for each kind of copies that there are."""
        counts = {
            "source": (self.n_source, self.copies_source),
            "target": (self.n_target, self.copies_target),
        }
        said = [
            f"{count} of the {n} {name} rows are copies of other rows ({n - count} are distinct): copies "
            "stay on one side of every split and count once in tests; rows that belong together without "
            "being equal take a name (--cluster COLUMN, in Python groups=)"
            for name, (n, count) in counts.items()
            if count
        ]
        if self.shared_rows:
            said.append(
                f"{self.shared_rows} of the {self.n_target} target rows are source rows too: if the target "
                "is another sample, leave them out of one of the two"
            )
        return said

    def to_dict(self) -> dict[str, int]:
        """Return the three counts by name."""
        return {name: count for name, count in asdict(self).items() if not name.startswith("n_")}
