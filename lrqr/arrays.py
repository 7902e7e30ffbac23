"""Array types, the checks at the door (float64, right shape, finite), and the state of fitted objects."""

from __future__ import annotations

import math
import reprlib
import sys
from contextlib import contextmanager
from dataclasses import asdict, fields, is_dataclass
from functools import cache, lru_cache
from numbers import Integral
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    create_model,
)
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from lrqr.errors import ArtifactError, DataError, UsageError
from lrqr.plugins import suggest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

_ROWS_SHOWN = 5
_FAR = 100.0  # times the distance of the 90 % quantile from the median
_MANY_THREADS = 1e11  # multiplications from which on a second thread brings more than it costs
LARGEST = 1e150  # in size: squares of more overflow
_FINITE = float(np.finfo(np.float64).max)
LARGEST_SEED = 2**32 - 1  # that scikit-learn takes


@contextmanager
def few_threads(work: float = 0.0) -> Iterator[None]:
    """Let BLAS and OpenMP use one thread, whatever the shell says, unless there is ``work`` for more.

    Threads wait for each other by spinning: on small tasks, on a busy machine above all, they cost many times
    what they bring. Several processes (``--jobs``) are the way to use several cores.

    Parameters
    ----------
    work : float
        Multiplications, n d² for the Gram matrix of n rows.
    """
    if work >= _MANY_THREADS:
        yield
    else:
        with _libraries(len(sys.modules)).limit(limits=1):
            yield


@lru_cache(maxsize=1)
def _libraries(_imported: int) -> ThreadpoolController:
    """Return what is loaded of BLAS and OpenMP; looked for again after each import, as that takes 3 ms."""
    return ThreadpoolController()


class NotNumeric(DataError, TypeError):  # noqa: N818 - it is a kind of DataError
    """Values that are not numbers: also a TypeError, which is what scikit-learn promises for them."""


def as_matrix(values: Any, name: str, *, columns: int | None = None, squared: bool = False) -> FloatArray:
    """Return ``values`` as a finite float64 matrix of shape (n, d).

    Parameters
    ----------
    values : array-like or data frame of shape (n, d)
    name : str
        What to call it in messages.
    columns : int, optional
        The required d.
    squared : bool
        Whether the numbers are to be squared, as features are: beyond 1e150 they are refused too.

    Raises
    ------
    DataError
        If it is not numeric, not two-dimensional, has another d, or holds NaN, infinity or numbers too
        large (the message names the first rows).
    """
    array = _as_float(values, name)
    if array.ndim != 2:
        hint = ". Reshape your data: use .reshape(-1, 1) for one feature or .reshape(1, -1) for one row"
        raise DataError(f"{name} must have two dimensions (rows, features), got shape {array.shape}{hint}")
    if columns is not None and array.shape[1] != columns:
        raise DataError(f"{name} has {array.shape[1]} columns, expected {columns}")
    _require_finite(array, name, most=LARGEST if squared else _FINITE)
    return array


def as_vector(
    values: Any, name: str, *, length: int | None = None, allow_infinite: bool = False
) -> FloatArray:
    """Return ``values`` as a float64 vector of shape (n,).

    Raises
    ------
    DataError
        If it is not numeric, not one-dimensional, has another length, or holds NaN (or infinity, unless
        ``allow_infinite``).
    """
    array = _as_float(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"{name} must have one dimension, got shape {array.shape}")
    if length is not None and array.shape[0] != length:
        raise DataError(f"{name} has {array.shape[0]} rows, expected {length}")
    _require_finite(array, name, allow_infinite=allow_infinite)
    return array


def check_seed(seed: Any) -> None:
    """Refuse what is no seed of random numbers: None, or an integer from 0 to 2³² - 1, is one.

    Raises
    ------
    UsageError
    """
    if seed is not None and not (isinstance(seed, Integral) and 0 <= int(seed) <= LARGEST_SEED):
        raise UsageError(
            f"the seed (random_state, --seed) must be an integer from 0 to {LARGEST_SEED}, got {seed!r}"
        )


def without_outliers(values: FloatArray) -> FloatArray:
    """Return scores (n,) with those that lie absurdly high lowered: to ``_FAR`` times the 90 % quantile.

    Both count from the median. A threshold that is a quantile does not ask how far above it a score lies;
    sums and means of scores do, and one outcome mistyped by many orders of magnitude would ruin them all.

    Raises
    ------
    DataError
        If scores are still too large to be squared.
    """
    middle, high = np.quantile(values, [0.5, 0.9], method="inverted_cdf")
    return squarable(values if high <= middle else np.minimum(values, middle + _FAR * (high - middle)))


def squarable(scores: FloatArray) -> FloatArray:
    """Return scores (n,), or raise `DataError` if they are too large to be squared."""
    largest = float(np.abs(scores).max())
    if largest > LARGEST:
        raise DataError(
            f"scores reach {largest:.3g} in size, beyond {LARGEST:g} too large to be squared; measure the "
            "outcome in another unit"
        )
    return scores


def refuse_large(values: FloatArray, name: str) -> None:
    """Raise `DataError` if values (n,) of a feature are too large to be squared."""
    largest = float(max(values.max(initial=0.0), -values.min(initial=0.0)))
    if largest > LARGEST:
        raise DataError(
            f"feature {name!r} has values up to {largest:.3g} in size, beyond {LARGEST:g} too large to be "
            "squared; use another unit, or leave the feature out"
        )


def row_dot(X: FloatArray, coef: FloatArray) -> FloatArray:
    """Return ``X @ coef`` (n,) so that no row's value depends, even by one bit, on the rows beside it.

    BLAS may sum in another order for another number of rows; this loop over each row does not.
    """
    product: FloatArray = np.einsum("ij,j->i", X, coef, optimize=False)
    return product


def mean_of(parts: Sequence[FloatArray]) -> FloatArray:
    """Mean of vectors (n,) of the same rows, so that no row's value depends on the rows beside it.

    ``np.mean(parts, axis=0)`` sums in another order for one row than for many.
    """
    total = np.zeros_like(parts[0])
    for part in parts:
        total += part
    mean: FloatArray = total / len(parts)
    return mean


def _as_float(values: Any, name: str) -> FloatArray:
    if hasattr(values, "to_numpy") and not isinstance(values, np.ndarray):
        values = values.to_numpy()
    if hasattr(values, "toarray"):
        raise DataError(f"{name} is a sparse matrix; pass a dense one, for example X.toarray()")
    try:
        array = np.asarray(values)
        if np.iscomplexobj(array):
            raise DataError(f"{name} holds complex numbers. Complex data not supported")
        return np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise NotNumeric(f"{name} is not numeric: {error}") from error


def _require_finite(
    array: FloatArray, name: str, *, allow_infinite: bool = False, most: float = _FINITE
) -> None:
    bad = np.isnan(array) if allow_infinite else ~((array <= most) & (array >= -most))
    if not bad.any():
        return
    rows = np.flatnonzero(bad.any(axis=1) if array.ndim == 2 else bad)
    shown = ", ".join(str(row) for row in rows[:_ROWS_SHOWN])
    more = ", ..." if len(rows) > _ROWS_SHOWN else ""
    kind, remedy = "NaN" if allow_infinite else "NaN or infinity", "drop or impute them first"
    if np.isfinite(array[bad]).all():
        kind, remedy = f"numbers beyond {most:g} in size", "measure that column in another unit"
    raise DataError(
        f"{name} holds {kind} in {len(rows)} of {array.shape[0]} rows (rows {shown}{more}, counted from 0); "
        f"{remedy}"
    )


def distinct_columns(*parts: FloatArray) -> IntArray:
    """Return the columns (sorted indices) that vary over all rows and are no copy of an earlier column.

    A constant or a copy carries nothing; without it a fit is the same as if it had never been there. Where
    nothing varies the first column stays.
    """
    kept: dict[bytes, int] = {}
    for column in range(parts[0].shape[1]):
        values = np.concatenate([part[:, column] for part in parts])
        if len(values) and values.min() < values.max():
            kept.setdefault((values + 0.0).tobytes(), column)
    return np.array(list(kept.values()) or [0], dtype=np.int64)


def matched_columns(source: Any, target: Any) -> tuple[Any, Any, list[str] | None]:
    """Return two data frames (pandas or polars) with the columns of the source, and the names of these.

    Columns are found by name; further ones of the target play no part. What is no data frame is returned as
    it is; without any there are no names.

    Raises
    ------
    DataError
        If the target lacks columns, or a name occurs twice.
    """
    if not _is_frame(source) or not _is_frame(target):
        frame = next((rows for rows in (source, target) if _is_frame(rows)), None)
        return source, target, None if frame is None else [str(name) for name in frame.columns]
    for what, frame in (("X_source", source), ("X_target", target)):
        names = [str(name) for name in frame.columns]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise DataError(f"{what}: column names occur twice: {', '.join(map(repr, twice))}; rename them")
    own = {str(name): name for name in target.columns}
    wanted = [str(name) for name in source.columns]
    lacking = [f"{name!r}{suggest(name, own)}" for name in wanted if name not in own]
    if lacking:
        raise DataError(
            f"X_target lacks {len(lacking)} column(s) of X_source: {', '.join(lacking[:_ROWS_SHOWN])}"
            f"{', ...' if len(lacking) > _ROWS_SHOWN else ''}; give both the same features"
        )
    return source, target[[own[name] for name in wanted]], wanted


def _is_frame(rows: Any) -> bool:
    return hasattr(rows, "columns") and hasattr(rows, "to_numpy")


# ------------------------------------------------------------------------- the state of fitted objects


class Stored:
    """An object that is stored as the fields that its class declares, and checked by them when it is read.

    ``STATE`` says for each attribute what it may hold, as a type that pydantic understands (strictly: no
    number is made of a text); it is inherited. An attribute is stored under its name without a trailing ``_``
    or ``_in_``. With ``GROUPED``, for scikit-learn estimators that are dataclasses, it is stored by its full
    name under ``fitted``, and the fields of the dataclass under ``parameters``. Parameters, and what is
    declared as `optional`, may be lacking in what is read: then they are what the class says.
    """

    STATE: ClassVar[dict[str, Any]] = {}
    GROUPED: ClassVar[bool] = False

    def to_state(self) -> dict[str, Any]:
        """Return what is declared as JSON values, arrays and fitted scikit-learn models."""
        kind: Any = type(self)
        declared = _declared(kind).items()
        names = [name for name, held in declared if not isinstance(held, tuple) or hasattr(self, name)]
        return _arranged(kind, {name: _word(_storable(getattr(self, name))) for name in names})

    @classmethod
    def from_state(cls, state: Any, sizes: dict[str, Any] | None = None) -> Self:
        """Rebuild the object that `to_state` described.

        Parameters
        ----------
        state : dict
        sizes : dict, optional
            Values by symbol that the fields must agree with; takes those found here.

        Raises
        ------
        ArtifactError
            If a field is missing, unknown, or not what the class declares; the message names it.
        """
        kind: Any = cls
        sizes = {} if sizes is None else sizes
        try:
            found = _schema(kind).model_validate(state, context=sizes)
        except ValidationError as error:
            raise ArtifactError(_first_fault(error)) from error
        parts = [getattr(found, group) for group in _GROUPS] if cls.GROUPED else [found]
        values = {key: getattr(part, key) for part in parts for key in part.model_fields_set}
        names = [name for name in _declared(kind) if _key(cls, name) in values]
        made = cls.__new__(cls)
        vars(made).update({name: values[_key(cls, name)] for name in names})
        made._complete(sizes)  # noqa: SLF001 - of this class
        return made

    def _complete(self, sizes: dict[str, Any]) -> None:
        """Check what concerns several fields, and set what follows from them."""


def agree(sizes: dict[str, Any], symbol: str, value: Any, field: str = "") -> None:
    """Note a size (or a name); refuse it if another field has another under the same symbol.

    Raises
    ------
    ArtifactError, or ValueError within the reading of a field (without ``field``)
    """
    if sizes.setdefault(symbol, value) != value:
        wrong = f"must have {symbol} = {sizes[symbol]}, as other fields say, got {value}"
        raise ArtifactError(f"{field}: {wrong}") if field else ValueError(wrong)


# What fields may hold: annotations for ``STATE``, besides plain str, bool, int and float (finite).

LEVEL = Annotated[float, Field(gt=0.0, lt=1.0)]
SHARE = Annotated[float, Field(ge=0.0, le=1.0)]
POSITIVE = Annotated[float, Field(gt=0.0)]
NONNEGATIVE = Annotated[float, Field(ge=0.0)]
# JSON has lists where Python has tuples
PAIR = Annotated[tuple[NONNEGATIVE, float], Field(strict=False)]
COUNT = Annotated[int, Field(ge=0, lt=2**63)]
SEED = Annotated[int, Field(ge=0, le=LARGEST_SEED)]


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, str) and value in {"inf", "-inf", "nan"} else value


THRESHOLD = Annotated[float, Field(ge=-math.inf, allow_inf_nan=True), BeforeValidator(_number)]
OR_NAN = Annotated[float, Field(allow_inf_nan=True), BeforeValidator(_number)]


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError("must be different names")
    return names


def _sorted(names: tuple[str, ...]) -> tuple[str, ...]:
    if list(names) != sorted(names):
        raise ValueError("must be sorted names")
    return names


NAMES = Annotated[tuple[str, ...], Field(strict=False), AfterValidator(_distinct)]
SORTED_NAMES = Annotated[NAMES, AfterValidator(_sorted)]


def optional(kind: Any) -> Any:
    """Declare a field that may be lacking."""
    return kind, None


def one_of(*choices: str) -> Any:
    """Declare one of these texts."""
    return Literal[choices]


def same(symbol: str) -> AfterValidator:
    """Make a field's value that which a symbol stands for."""

    def check(value: Any, info: Any) -> Any:
        agree(info.context, symbol, value)
        return value

    return AfterValidator(check)


def array(*shape: str, of: type = float, within: str = "(-inf, inf)", rising: bool = False) -> Any:
    """Declare an array whose shape is given by symbols.

    Parameters
    ----------
    *shape : str
        Arrays with the same symbol have the same size; a number is the size itself.
    of : type
        ``float`` (float64), ``int`` (int64), ``bool``, ``str``, or a type of NumPy.
    within : str
        The interval that holds all numbers, such as ``"[0, inf)"``; a bound may be a symbol.
    rising : bool
        Whether each number is larger than the one before.
    """
    dtype = np.dtype(of)

    def read(value: Any, info: Any) -> Any:
        value = np.asarray(value) if isinstance(value, list) else value
        if (
            not isinstance(value, np.ndarray)
            or (value.dtype.kind != "U" if dtype.kind == "U" else value.dtype != dtype)
            or value.ndim != len(shape)
        ):
            raise ValueError(f"must be an array of {dtype.name} of shape ({', '.join(shape)})")
        for symbol, size in zip(shape, value.shape, strict=True):
            agree({symbol: int(symbol)} if symbol.isdigit() else info.context, symbol, size)
        if dtype.kind == "U":
            return value
        low, high = (float(info.context.get(bound, bound)) for bound in within[1:-1].split(", "))
        inside = ((value >= low) if within[0] == "[" else (value > low)) & (
            (value <= high) if within[-1] == "]" else (value < high)
        )
        if not inside.all() or (rising and (np.diff(value) <= 0).any()):
            raise ValueError(f"must hold {'rising ' if rising else ''}numbers within {within}")
        return value

    return Annotated[Any, PlainValidator(read)]


def nested(kind: Any, **links: str) -> Any:
    """Declare another stored object; ``links`` say which of its symbols are which of this object's.

    ``kind`` is its class, or a function that finds this by the symbols known so far.
    """

    def read(value: Any, info: Any) -> Any:
        chosen: Any = kind if isinstance(kind, type) else kind(info.context)
        inner = {own: info.context[outer] for own, outer in links.items() if outer in info.context}
        found = chosen.from_state(value, inner)
        info.context.update({outer: inner[own] for own, outer in links.items() if own in inner})
        return found

    return Annotated[Any, PlainValidator(read)]


def record(kind: type[Any], *, plain: bool = False) -> Any:
    """Declare a dataclass or a pydantic model that is stored as a dict of its fields.

    With ``plain`` it stays that dict, which may then have further keys.
    """

    def read(value: Any) -> Any:
        adapter = TypeAdapter(kind)
        if not plain:
            return adapter.validate_python(value)
        adapter.validate_python(value, strict=True, extra="allow")
        return value

    return Annotated[Any, PlainValidator(read)]


def by_level(kind: Any) -> Any:
    """Declare a dict by level, a share; it is stored as a list of states that hold their ``level``."""

    def read(rows: Any) -> Any:
        if rows == {}:
            return rows
        if not isinstance(rows, list) or not all(
            isinstance(row, dict) and isinstance(row.get("level"), float) for row in rows
        ):
            raise ValueError("must be a list of objects that have a level")
        return {row["level"]: {key: row[key] for key in row if key != "level"} for row in rows}

    return Annotated[dict[LEVEL, kind], BeforeValidator(read)]


def many(kind: Any, *, least: int = 0) -> Any:
    """Declare a list."""
    return Annotated[list[kind], Field(min_length=least)]


def by_name(kind: Any) -> Any:
    """Declare a dict by name."""
    return dict[str, kind]


def predictor(*kinds: str, size: str) -> Any:
    """Declare a fitted scikit-learn model of one of these classes, for rows of ``size`` columns."""

    def read(value: Any, info: Any) -> Any:
        if type(value).__name__ not in kinds:
            raise ValueError(f"must be a fitted {' or '.join(kinds)}")
        agree(info.context, size, getattr(value, "n_features_in_", None))
        return value

    return Annotated[Any, PlainValidator(read)]


_GROUPS = ("parameters", "fitted")
_STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())


@cache
def _declared(cls: Any) -> dict[str, Any]:
    """Return what a class and its bases declare, by attribute; tuples where it may be lacking."""
    own = fields(cls) if cls.GROUPED else ()
    declared: dict[str, Any] = {field.name: optional(field.type) for field in own}
    for base in reversed(cls.__mro__):
        declared |= vars(base).get("STATE", {})
    return declared


@cache
def _schema(cls: Any) -> type[BaseModel]:
    kinds = {name: kind if isinstance(kind, tuple) else (kind, ...) for name, kind in _declared(cls).items()}
    layout = _arranged(cls, kinds)
    if cls.GROUPED:
        parts = {group: create_model(group, __config__=_STRICT, **part) for group, part in layout.items()}
        layout = {group: (part, ...) for group, part in parts.items()}
    return create_model(cls.__name__, __config__=_STRICT, **layout)


def _arranged(cls: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    if not cls.GROUPED:
        return {_key(cls, name): value for name, value in values.items()}
    parameters = {name: value for name, value in values.items() if not name.endswith("_")}
    fitted = {name: value for name, value in values.items() if name.endswith("_")}
    return dict(zip(_GROUPS, (parameters, fitted), strict=True))


def _key(cls: Any, name: str) -> str:
    return name if cls.GROUPED else name.removesuffix("_").removesuffix("_in")


def _storable(value: Any) -> Any:
    """Return a field as JSON values, arrays and fitted scikit-learn models."""
    if isinstance(value, Stored):
        return value.to_state()
    if is_dataclass(value) and not isinstance(value, type):
        return _storable(asdict(value))
    if isinstance(value, np.ndarray):
        return value.tolist() if value.dtype == object else value
    if isinstance(value, np.generic):
        return _storable(value.item())
    if isinstance(value, dict):
        items = [(key, _storable(item)) for key, item in value.items()]
        return [{"level": key} | item for key, item in items] if value and _by_level(value) else dict(items)
    return list(map(_storable, value)) if isinstance(value, list | tuple) else value


def _word(value: Any) -> Any:
    """Return an infinite number as a word, since JSON knows none."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _by_level(value: dict[Any, Any]) -> bool:
    return all(isinstance(key, float) for key in value)


def _first_fault(error: ValidationError) -> str:
    """Say which field is wrong, what it holds, and what it must hold."""
    fault = error.errors(include_url=False)[0]
    place = ".".join(map(str, fault["loc"])) or "the state"
    cause, value = fault.get("ctx", {}).get("error"), fault["input"]
    if isinstance(cause, ArtifactError):
        return f"{place}.{cause}"
    if isinstance(cause, ValidationError):
        return f"{place}.{_first_fault(cause)}"
    if fault["type"] in {"missing", "extra_forbidden"}:
        return f"{place} is {'missing' if fault['type'] == 'missing' else 'not known to this version'}"
    held = f"an array of {value.dtype}, shape {value.shape}" if isinstance(value, np.ndarray) else None
    return f"{place}: {cause or fault['msg']}, got {held or reprlib.repr(value)}"
