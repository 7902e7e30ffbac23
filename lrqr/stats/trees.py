"""Sums of small trees as plain arrays: grown by scikit-learn, stored and evaluated without it.

A tree has at most `LEAVES` leaves, numbered from left to right, and its split j stands between leaf j and
leaf j + 1, so that every tree is one row of each array; where it has fewer leaves, all rows go left at the
splits that it lacks. A row that goes right at split j is in none of the leaves ``first[j]`` to j, and its
leaf is the first one that no split rules out. That is QuickScorer (Lucchese et al. 2015), many trees at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import BeforeValidator

from lrqr.arrays import COUNT, FloatArray, IntArray, Stored, agree, array, nested, same
from lrqr.errors import ArtifactError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

LEAVES = 8
"""The most leaves of a tree."""

_SPLITS = LEAVES - 1
_BLOCK = 4_096  # rows at a time: what is compared stays in the processor's cache
_ALL = 2**LEAVES - 1
_FIRST_LEAF = np.array([0] + [(leaves & -leaves).bit_length() - 1 for leaves in range(1, 2**LEAVES)])


@dataclass(frozen=True)
class Trees(Stored):
    """Several models, each a number and the trees that are added to it, for rows without missing values.

    Attributes
    ----------
    n_columns : int
        d, columns of the rows.
    counts : (models,) int array
        Trees of each model; those of the first come first.
    base : (models,) array
        The number of each model.
    feature : (trees, 7) int array
        The column that a split looks at.
    cut : (trees, 7) array
        Rows with larger values go right; infinite where there is no split.
    first : (trees, 7) int array
        The first leaf on the left of a split.
    value : (trees, 8) array
        What each leaf adds.
    """

    STATE: ClassVar[dict[str, Any]] = {
        "n_columns": Annotated[COUNT, same("d")],
        "counts": array("models", of=int, within="[0, inf)"),
        "base": array("models"),
        "feature": array("trees", str(_SPLITS), of=int, within="[0, d)"),
        "cut": array("trees", str(_SPLITS), within="(-inf, inf]"),
        "first": array("trees", str(_SPLITS), of=int, within=f"[0, {_SPLITS})"),
        "value": array("trees", str(LEAVES)),
    }

    n_columns: int
    counts: IntArray
    base: FloatArray
    feature: IntArray
    cut: FloatArray
    first: IntArray
    value: FloatArray

    @classmethod
    def of(cls, models: Sequence[Any]) -> Self:
        """Take fitted scikit-learn models of one output each, of histogram-based gradient boosting."""
        grown = [tree.nodes for model in models for (tree,) in model._predictors]  # noqa: SLF001
        base = [float(model._baseline_prediction.item()) for model in models]  # noqa: SLF001
        feature, cut, first, value = zip(*map(_flat, grown), strict=True)
        return cls(
            int(models[0].n_features_in_),
            np.array([len(model._predictors) for model in models], dtype=np.int64),  # noqa: SLF001
            np.array(base),
            np.array(feature, dtype=np.int64),
            np.array(cut),
            np.array(first, dtype=np.int64),
            np.array(value),
        )

    def predict(self, rows: FloatArray) -> list[FloatArray]:
        """Return what each model says of rows (n, d), bit by bit what scikit-learn says: a list of (n,)."""
        said = np.empty((len(self.counts), len(rows)))
        for start in range(0, len(rows), _BLOCK):
            block = slice(start, start + _BLOCK)
            ranks = self._ranks(rows[block])
            for model, trees in enumerate(self._parts()):
                said[model, block] = self._sum(self.base[model], trees, ranks)
        return list(said)

    def _parts(self) -> Iterator[slice]:
        ends = np.cumsum(self.counts)
        return map(slice, ends - self.counts, ends)

    def _sum(self, base: float, trees: slice, ranks: NDArray[Any]) -> FloatArray:
        """Return the sum (n,) of a model's trees for rows of which ``ranks`` (d, n) are known."""
        leaves = np.full((trees.stop - trees.start, ranks.shape[1]), _ALL, dtype=np.uint8)
        seen, left = np.empty(leaves.shape, dtype=ranks.dtype), np.empty(leaves.shape, dtype=np.bool_)
        kept = left.view(np.uint8)
        for split in range(_SPLITS):
            np.take(ranks, self.feature[trees, split], axis=0, out=seen, mode="clip")
            np.less_equal(seen, self._cuts[trees, split, None], out=left)
            np.negative(kept, out=kept)  # all leaves of a row that goes left
            np.bitwise_or(kept, self._right[trees, split, None], out=kept)
            np.bitwise_and(leaves, kept, out=leaves)
        total, one = np.full(ranks.shape[1], base), np.empty(ranks.shape[1])
        for own, values in zip(leaves, self._values[trees], strict=True):  # in scikit-learn's order
            total += np.take(values, own, out=one, mode="clip")
        return total

    def _ranks(self, rows: FloatArray) -> NDArray[Any]:
        """Return how many cuts of its column each value of rows (n, d) exceeds, (d, n)."""
        ranks = np.empty((self.n_columns, len(rows)), dtype=self._cuts.dtype)
        for column, cuts in enumerate(self._sorted):
            ranks[column] = np.searchsorted(cuts, rows[:, column])
        return ranks

    @cached_property
    def _sorted(self) -> list[FloatArray]:
        """The different cuts of each column."""
        return [np.unique(self.cut[self.feature == column]) for column in range(self.n_columns)]

    @cached_property
    def _cuts(self) -> NDArray[Any]:
        """The place of each cut among those of its column, in the smallest type of integers that holds it."""
        places = np.zeros(self.cut.shape, dtype=np.min_scalar_type(max(map(len, self._sorted), default=0)))
        for column, cuts in enumerate(self._sorted):
            here = self.feature == column
            places[here] = np.searchsorted(cuts, self.cut[here])
        return places

    @cached_property
    def _right(self) -> NDArray[np.uint8]:
        """The leaves, as bits, of a row that goes right."""
        bits: IntArray = _ALL - (2 << np.arange(_SPLITS)) + (1 << self.first)
        return bits.astype(np.uint8)

    @cached_property
    def _values(self) -> FloatArray:
        """What each set of leaves adds, (trees, 256): the value of the first of them."""
        return np.ascontiguousarray(self.value[:, _FIRST_LEAF])

    def _complete(self, sizes: dict[str, Any]) -> None:
        agree(sizes, "trees", int(self.counts.sum()), "counts")
        for split in range(_SPLITS):
            first, earlier = self.first[:, split, None], self.first[:, :split]
            apart = (np.arange(split) < first) | (earlier >= first)
            if (first > split).any() or not apart.all():
                raise ArtifactError(f"first: must describe trees, but split {split} crosses another")


def grown(size: str) -> Any:
    """Declare trees, or none, for rows of ``size`` columns; older files hold a list of scikit-learn's."""

    def read(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        try:
            return Trees.of(value).to_state() if value else None
        except Exception as error:  # whatever a changed file makes of them
            raise ValueError(
                f"must be fitted boosted trees of at most {LEAVES} leaves ({error!r})"
            ) from error

    return Annotated[nested(Trees, d=size) | None, BeforeValidator(read)]


def _flat(nodes: NDArray[Any]) -> tuple[list[int], list[float], list[int], list[float]]:
    """Return a tree of scikit-learn's as a row of each of the arrays ``feature, cut, first, value``."""
    names = ("is_leaf", "left", "right", "feature_idx", "num_threshold", "value")
    leaf, left, right, looks_at, threshold, adds = (nodes[name].tolist() for name in names)
    feature, cut, first = [0] * _SPLITS, [np.inf] * _SPLITS, list(range(_SPLITS))
    value = [0.0] * LEAVES

    def walk(node: int, start: int) -> int:
        """Give the leaves below a node numbers from ``start`` on; return the next one."""
        if leaf[node]:
            value[start] = adds[node]
            return start + 1
        middle = walk(left[node], start)
        feature[middle - 1], cut[middle - 1] = looks_at[node], threshold[node]
        first[middle - 1] = start
        return walk(right[node], middle)

    walk(0, 0)
    return feature, cut, first, value
