"""Arrays and data frames as they are given to the wrappers: shapes, columns, copies, what looks wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from lrqr.arrays import as_matrix
from lrqr.calibrate.rows import coded
from lrqr.data import doubts
from lrqr.data.encoder import TableEncoder
from lrqr.errors import DataError
from lrqr.stats.folds import together
from lrqr.stats.repeats import Repeats

if TYPE_CHECKING:
    from lrqr.arrays import FloatArray, IntArray

_FAR = 30.0  # spreads of the source: no shift within reach is as large


def at_door(X: Any) -> Any:
    """Return frames and sparse matrices as they are, Arrow tables of any library as pandas, else an array."""
    if hasattr(X, "__arrow_c_stream__") and not is_frame(X):
        import pyarrow as pa

        return pa.table(X).to_pandas()
    return X if X is None or is_frame(X) or hasattr(X, "toarray") else np.asarray(X)


def outcomes(y: Any, n: int, where: str = "") -> Any:
    """Return outcomes as an array (n,)."""
    if y is None:
        raise DataError(f"{where}y should be a 1d array, got None: it requires y to be passed")
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    if y.ndim != 1 or len(y) != n:
        raise DataError(f"{where}y must have one value per row of X: shape {y.shape} for {n} rows")
    return y


def untransformed(X: Any, X_target: Any, remedy: str) -> str | None:
    """Return what to say if X came out of a scaler and X_target did not, as at the end of a pipeline."""
    advice = f"X was transformed and X_target was not; preprocessing goes inside: {remedy}"
    if X_target is None or min(len(X), len(X_target)) < 2:
        return None
    if np.shape(X)[1:] != np.shape(X_target)[1:] and not is_frame(X) and is_frame(X_target):
        raise DataError(
            f"X is an array of shape {np.shape(X)}, X_target a data frame of {np.shape(X_target)}; if this "
            f"is the last step of a pipeline, {advice}"
        )
    try:
        own, other = as_matrix(X, "X"), as_matrix(X_target, "X_target")
    except DataError:
        return None  # of which more is said elsewhere
    varies = own.max(axis=0) > own.min(axis=0)
    own, other = own[:, varies], other[:, varies]
    if not varies.any() or not _scaled(own):
        return None
    middle, spread = np.median(other, axis=0), other.std(axis=0)
    apart = (middle < own.min(axis=0)) | (middle > own.max(axis=0))
    far = (np.abs(middle) > _FAR * own.std(axis=0)) | (spread > _FAR * own.std(axis=0))
    if apart.mean() < 0.5 and not far.any():
        return None
    column = int(np.argmax(np.abs(middle)))
    return (
        f"every column of X is scaled, and those of X_target are not (feature {column}, of those that vary: "
        f"median {np.median(own[:, column]):.3g} and {middle[column]:.3g}). It seems that {advice}"
    )


def _scaled(X: FloatArray) -> bool:
    """Whether a scaler made all columns: standardized them, from 0 to 1, or by median and quartiles."""
    first, middle, third = np.quantile(X, [0.25, 0.5, 0.75], axis=0)
    low, high = X.min(axis=0), X.max(axis=0)
    kinds = ((X.mean(axis=0), X.std(axis=0)), (low, high - low), (middle, third - first))
    return any(bool(np.allclose(a, 0.0, atol=1e-6) and np.allclose(b, 1.0, atol=1e-6)) for a, b in kinds)


def belonging(X: Any, y: Any, X_target: Any, clusters: Any) -> tuple[IntArray | None, list[str]]:
    """Return which rows no split divides, and what to say of rows that occur more than once."""
    if not is_frame(X) and X.dtype == object:
        as_matrix(X, "X")  # what is no number is refused in our words
    if is_frame(X) and X_target is not None:
        frame(X_target)
    features, other = coded(X, X_target)
    outcome = coded(y[:, None])[0][:, 0]
    notes = Repeats.of(features, other, outcome).notes
    return together(features, outcome, other=other, clusters=clusters), notes


def is_frame(X: Any) -> bool:
    """Return whether X has named columns."""
    return hasattr(X, "columns") and hasattr(X, "to_numpy")


def frame(X: Any) -> Any:
    """Return X, which must be a data frame."""
    if not is_frame(X):
        raise DataError("the model was fitted on a data frame: pass a data frame with the same column names")
    return X


def fitted_encoder(X: Any, X_target: Any) -> Any:
    """Match frames by column name and encode their categories; plain arrays are taken as they are."""
    if not is_frame(X):
        return None
    try:
        encoder = TableEncoder().fit(X, X if X_target is None else frame(X_target))
        if X_target is not None:
            doubts.warn(encoder, X, X_target)
    except DataError as error:
        raise without_options(error, "X and X_target") from error
    return encoder


def without_options(error: DataError, name: str) -> DataError:
    """Return what an encoder says, with advice for Python in place of options of the command."""
    fact, _, advice = str(error).rpartition("; ")
    if "--on-missing" in advice:
        return DataError(f"{name}: {fact}; drop or impute these rows")
    if " --" in advice:
        return DataError(f"{name}: {fact}; correct these values, convert them or leave them out")
    return DataError(f"{name}: {error}")
