"""One process, one batch of rows in memory at a time."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

from lrqr.moments import Moments
from lrqr.tables import Sample, batches

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from lrqr.features import TableEncoder
    from lrqr.roles import Roles

T = TypeVar("T")


def map_rows(
    path: str | os.PathLike[str], roles: Roles, function: Callable[[Sample], T], **reading: Any
) -> Iterator[T]:
    """Apply a function to the samples of a file, in its order.

    Parameters
    ----------
    path : path
    roles : Roles
        Resolved.
    function : callable
        From a `Sample` to anything. It must not depend on where batches begin.
    **reading
        Options of `lrqr.tables.batches`, such as ``size`` and ``on_missing``.
    """
    return map(function, batches(path, roles, **reading))


def moments(path: str | os.PathLike[str], roles: Roles, encoder: TableEncoder, **reading: Any) -> Moments:
    """Moments of the encoded features of a file, in O(batch + d²) memory.

    Parameters
    ----------
    path, roles, **reading
        As for `map_rows`.
    encoder : TableEncoder
        Fitted.

    Returns
    -------
    Moments
        Of all rows, equal to those of the whole matrix up to rounding.
    """

    def of(sample: Sample) -> Moments:
        return Moments.of(encoder.transform(sample.features, row=sample.row))

    return reduce(Moments.merge, map_rows(path, roles, of, **reading), Moments.empty(len(encoder.names_)))
