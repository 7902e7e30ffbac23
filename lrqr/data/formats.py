"""Files as streams of Arrow tables: one reader per suffix.

A new format is one function with ``@reader(".x")``, and in `lrqr.data.writing` one with ``@writer(".x")``.
Readers give columns by name and rows in the order of the file, a batch at a time; what columns mean is said
in `lrqr.data.roles`.
"""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import os
import re
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.json as pajson
import pyarrow.parquet as pq
from pyarrow import feather
from scipy.special import softmax

from lrqr.data.columns import category_columns, frame_columns, table_of
from lrqr.data.roles import Roles, clean
from lrqr.errors import DataError, LrqrWarning
from lrqr.plugins import suggest

if TYPE_CHECKING:
    import io
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_SHOWN = 5  # columns of a part that a message names
_BLOCK = 1 << 22  # bytes of a CSV file parsed at a time; Arrow reads up to 32 blocks ahead
_UNREADABLE = (pa.ArrowException, OSError, EOFError, zlib.error, UnicodeError, csv.Error)
_BAD_ARCHIVE = (ValueError, KeyError, SyntaxError, RuntimeError, MemoryError, zipfile.BadZipFile)
_LARGE, _DENSEST = 1 << 30, 100  # bytes unpacked; times the packed size
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_NOT_UTF8 = (
    "the text is not UTF-8; save the file as UTF-8 (Excel: 'CSV UTF-8'; or: iconv -f WINDOWS-1252 -t UTF-8 "
    "OLD > NEW)"
)
_DOORS = (
    "(known: .csv, .tsv, .txt, also .gz; .parquet, .feather, .npz, .jsonl, .xlsx, or a directory of .parquet "
    "parts)"
)
_LOOKED_AT = 50  # lines of a text file by which its marks are recognized
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+),\d+")
_PANDAS = "python -c \"import pandas; pandas.{}.to_csv('data.csv', index=False)\""
_CONVERT = {
    ".xls": "open it in a spreadsheet and save it as .xlsx or .csv",
    ".ods": "open it in a spreadsheet and save it as .csv",
    ".json": "convert it: " + _PANDAS.format("read_json('{}')"),
    ".dta": "convert it: " + _PANDAS.format("read_stata('{}')"),
    ".sas7bdat": "convert it: " + _PANDAS.format("read_sas('{}')"),
    ".sav": "convert it: " + _PANDAS.format("read_spss('{}')"),
    ".pkl": "a pickle may run any code, so it is never loaded; save it with to_parquet",
    ".rds": "convert it in R: write.csv(readRDS('{}'), 'data.csv', row.names = FALSE)",
    ".db": "convert it: sqlite3 -header -csv {} 'select * from TABLE' > data.csv",
    ".zip": "unpack it first: unzip {}",
    ".tar": "unpack it first: tar xf {}",
    ".gz": "unpack it first: gunzip -k {}",
}
_CONVERT |= dict.fromkeys((".sqlite", ".sqlite3"), _CONVERT[".db"]) | {".tgz": _CONVERT[".tar"]}
_MARKS = {  # how files begin, in small letters: what they are, and the ends of their names
    b"pk\x03\x04": ("a zip archive, as Excel files are", (".xlsx", ".npz")),
    b"par1": ("Parquet", (".parquet",)),
    b"arrow1": ("Feather", (".feather", ".arrow")),
    b"\x1f\x8b": ("packed by gzip", (".gz",)),
    b"<!doctype html": ("a web page", ()),
    b"<html": ("a web page", ()),
    b"<?xml": ("XML", ()),
    b"sqlite format 3": ("an SQLite database", (".db",)),
    b"\xd0\xcf\x11\xe0": ("an old Excel or Word file", (".xls",)),
    b"%pdf": ("a PDF", ()),
    b'{"': ("JSON", (".jsonl", ".ndjson", ".json")),
    b"[{": ("JSON", (".json",)),
}


Data = Any
"""The path of a file (a string or PathLike), or a data frame."""


@dataclass(frozen=True)
class Opened:
    """An opened file.

    Attributes
    ----------
    columns : tuple of str
        Names, in the order of the file.
    batches : callable
        ``batches(wanted, size)`` yields tables with the wanted columns and at most ``size`` rows each.
    roles : mapping of str to tuple of str
        Roles that the format itself assigns to columns, as NPZ does by the names of its arrays.
    categorical : tuple of str
        Columns that the owner of the file made ones of categories.
    decimal : str
        What stands before the decimals of numbers that are texts.
    header_lines : int
        Lines before the first row in a text file: data row i (from 1) stands on line ``i + header_lines``.
    where : str
        What to call it in messages: its path, as a rule.
    """

    columns: tuple[str, ...]
    batches: Callable[[Sequence[str], int], Iterator[pa.Table]]
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    categorical: tuple[str, ...] = ()
    decimal: str = "."
    header_lines: int = 0
    where: str = "data frame"

    @property
    def natural(self) -> tuple[str, ...]:
        """Columns that may be features: all, unless the format says itself which are."""
        return self.roles.get("features", self.columns)


Reader = Callable[[Path, Roles], Opened]
"""Opens a file; the roles say how texts are read: ``separator``, ``decimal``."""

READERS: dict[str, Reader] = {}


def reader(*suffixes: str) -> Callable[[Reader], Reader]:
    """Register a function as the reader of files whose names end in one of ``suffixes``."""

    def register(function: Reader) -> Reader:
        READERS.update(dict.fromkeys(suffixes, function))
        return function

    return register


def is_path(data: Data) -> bool:
    """Whether it names a file, rather than being a table."""
    return isinstance(data, str | os.PathLike)


def open_table(data: Data, roles: Roles | None = None) -> Opened:
    """Open a file, or a directory of Parquet parts, by its suffix; or a data frame in memory.

    ``roles`` say how the texts of a CSV file are separated and written.

    Raises
    ------
    DataError
        If there is no such file, nobody reads its suffix, it cannot be read as what it claims to be, or two
        of its columns have the same name.
    """
    if not is_path(data):
        return replace(_opened_frame(data, frame_columns(data)), categorical=category_columns(data))
    place = Path(data)
    if not place.exists():
        siblings = [entry.name for entry in place.parent.iterdir()] if place.parent.is_dir() else []
        raise DataError(f"{place}: no such file{suggest(place.name, siblings)}")
    suffix = ".parquet" if place.is_dir() else suffix_of(place, READERS)
    if not place.is_dir():
        _check_content(place, suffix)
    try:
        opened = READERS[suffix](place, roles or Roles())
    except UnicodeError as error:
        raise DataError(f"{place}: {_NOT_UTF8}") from error
    except _UNREADABLE as error:
        raise DataError(f"{place}: cannot be read as {suffix}: {_first_line(error)}") from error
    names = [clean(name) for name in opened.columns]
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise DataError(f"{place}: column names occur twice: {', '.join(map(repr, twice))}; rename them")
    return replace(_renamed(opened, names), where=str(place))


def _renamed(opened: Opened, names: Sequence[str]) -> Opened:
    """Call the columns by other names."""
    own = dict(zip(names, opened.columns, strict=True))
    if names == list(own.values()):
        return opened

    def batches(wanted: Sequence[str], size: int) -> Iterator[pa.Table]:
        for table in opened.batches([own[name] for name in wanted], size):
            yield table.rename_columns(list(wanted)) if wanted else table

    new = dict(zip(opened.columns, names, strict=True))
    categorical = tuple(new[name] for name in opened.categorical)
    return replace(opened, columns=tuple(names), batches=batches, categorical=categorical)


def _opened_frame(frame: Any, names: Sequence[str]) -> Opened:
    def batches(wanted: Sequence[str], size: int) -> Iterator[pa.Table]:
        yield from _slices(table_of(frame, list(wanted) or names[:1]), size)

    return Opened(tuple(names), batches)


def suffix_of(path: Path, known: Mapping[str, Any]) -> str:
    """Return the longest known suffix that the name of ``path`` ends in."""
    matches = [suffix for suffix in known if path.name.lower().endswith(suffix)]
    if not matches:
        remedy = _CONVERT.get(path.suffix.lower(), "")
        hint = f"; {remedy.format(path)}" if remedy else ""
        raise DataError(f"{path}: unknown kind of file {path.suffix!r} {_DOORS}{hint}")
    return max(matches, key=len)


def _check_content(path: Path, suffix: str) -> None:
    """Refuse a file that is clearly of another kind than its name says."""
    with path.open("rb") as stream:
        start = stream.read(32).lstrip()
    for mark, (what, ends) in _MARKS.items():
        if start.lower().startswith(mark) and not any(end in suffix for end in ends):
            remedy = f"rename it to end in {ends[0]}" if ends else "save the table itself as .csv or .parquet"
            raise DataError(f"{path}: the name says {suffix}, but the content is {what}; {remedy}")


@reader(".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")
def _read_csv(path: Path, roles: Roles) -> Opened:
    separator, decimal, skipped = _dialect(path, roles)
    with _open_text(path) as stream:
        lines = csv.reader(itertools.islice(stream, skipped, None), delimiter=separator)
        filled = (row for row in lines if row)
        header = next(filled, None)
        first_line = lines.line_num + skipped
        row_length = sum(len(cell) + 1 for cell in next(filled, ()))
    if header is None:
        raise DataError(f"{path}: the file is empty; expected a header line with the names of the columns")
    names = [name.strip() for name in header]
    # Columns without a name (an index that pandas wrote) are left out.
    keys = [name or f"\0{position}" for position, name in enumerate(names)]

    def batches(wanted: Sequence[str], size: int) -> Iterator[pa.Table]:
        try:
            if row_length:
                yield from _csv_batches(path, keys, (first_line, row_length, separator), wanted, size)
        except _UNREADABLE as error:
            raise DataError(_why_unreadable(path, header, (skipped, separator), error)) from error

    found = tuple(name for name in names if name)
    return Opened(found, batches, decimal=decimal, header_lines=first_line)


def _dialect(path: Path, roles: Roles) -> tuple[str, str, int]:
    """Return the separator, the decimal mark, and the lines before the header: asked for, or recognized."""
    with _open_text(path) as stream:
        lines = list(itertools.islice(stream, _LOOKED_AT))
    said = re.fullmatch(r"sep=(.)\s*", lines[0]) if lines else None
    skipped = int(said is not None)
    expected = "\t" if ".tsv" in path.name.lower() else ","
    separator = said[1] if said else roles.separator or _separator(lines, expected)
    decimal = roles.decimal or ("." if separator == "," else _decimal(lines[skipped:], separator))
    unasked = (roles.separator is None and separator != expected) or (
        roles.decimal is None and decimal == ","
    )
    if unasked:
        marks = f"columns are separated by {_SEPARATORS.get(separator, repr(separator))}"
        marks += ", and numbers have decimal commas" if decimal == "," else ""
        warnings.warn(f"{path}: read so that {marks}", LrqrWarning, stacklevel=5)
    return separator, decimal, skipped


def _separator(lines: Sequence[str], expected: str) -> str:
    """Return the separator that gives every line the same number of fields, two or more."""
    sizes = {}
    for mark in dict.fromkeys([expected, *_SEPARATORS]):
        rows = [row for row in csv.reader(lines, delimiter=mark) if row]
        sizes[mark] = [len(row) for row in (rows[:-1] if len(lines) == _LOOKED_AT else rows)] or [1]
    even = [mark for mark, found in sizes.items() if len({*found}) == 1 and found[0] > 1]
    several = [mark for mark, found in sizes.items() if found[0] > 1]
    return [*even, *several, expected][0]


def _decimal(lines: Sequence[str], separator: str) -> str:
    cells = [cell.strip() for row in csv.reader(lines, delimiter=separator) for cell in row]
    commas = any(COMMA.fullmatch(cell) for cell in cells)
    points = any(re.fullmatch(r"[+-]?\d+\.(\d{1,2}|\d{4,})", cell) for cell in cells)
    return "," if commas and not points else "."


def _csv_batches(
    path: Path, keys: list[str], start: tuple[int, int, str], wanted: Sequence[str], size: int
) -> Iterator[pa.Table]:
    # Every column is read as text: a type guessed from the first block would fail, or change, in a later one.
    first_line, row_length, separator = start
    options = {
        "read_options": pacsv.ReadOptions(
            column_names=keys,
            skip_rows=first_line,
            block_size=max(_BLOCK, 64 * row_length),
            use_threads=False,
        ),
        "parse_options": pacsv.ParseOptions(newlines_in_values=True, delimiter=separator),
        "convert_options": pacsv.ConvertOptions(
            include_columns=list(wanted) or keys[:1],
            column_types=dict.fromkeys(keys, pa.string()),
        ),
    }
    compression = "gzip" if path.name.lower().endswith(".gz") else None
    with pa.input_stream(str(path), compression=compression) as stream:
        for batch in pacsv.open_csv(stream, **options):
            yield from _slices(pa.Table.from_batches([batch]), size)


def _why_unreadable(path: Path, header: Sequence[str], form: tuple[int, str], error: Exception) -> str:
    """Read a bad file again, slowly, to say where it is bad."""
    skipped, separator = form
    columns = len(header)
    try:
        with _open_text(path) as stream:
            lines = csv.reader(itertools.islice(stream, skipped, None), delimiter=separator)
            rows = (row for row in lines if row)
            next(rows)
            ragged = [(number, len(row)) for number, row in enumerate(rows, 1) if len(row) != columns]
    except UnicodeError:
        return f"{path}: {_NOT_UTF8}"
    except (OSError, EOFError, zlib.error, csv.Error) as other:
        return f"{path}: damaged: {_first_line(other)}"
    if not ragged:
        return f"{path}: cannot be read as CSV: {_first_line(error)}"
    shown = ", ".join(f"row {number} has {fields}" for number, fields in ragged[:3])
    more = ", ..." if len(ragged) > 3 else ""
    first = separator.join(header)
    return (
        f"{path}: {len(ragged)} rows do not have the {columns} fields of the header: {shown}{more} "
        "(data rows counted from 1, the header not counted); is a comma or a quote missing, or is the first "
        f"line no header? It is {first[:80]!r}"
    )


def _open_text(path: Path) -> io.TextIOBase:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


@reader(".feather", ".arrow")
def _read_feather(path: Path, _roles: Roles) -> Opened:
    return _opened_whole(feather.read_table(path))


@reader(".jsonl", ".ndjson")
def _read_json_lines(path: Path, _roles: Roles) -> Opened:
    whole = pajson.ReadOptions(block_size=max(path.stat().st_size, 1))  # types are those of all lines
    return _opened_whole(pajson.read_json(path, read_options=whole))


@reader(".xlsx")
def _read_excel(path: Path, _roles: Roles) -> Opened:
    try:
        frame = pd.read_excel(path, engine="calamine")
    except ImportError as error:
        raise DataError(
            f"{path}: to read Excel files, pip install 'lrqr[excel]', or save the sheet as .csv"
        ) from error
    except Exception as error:  # what the reader raises is its own
        raise DataError(f"{path}: not a readable .xlsx file: {_first_line(error)}") from error
    return _opened_whole(pa.Table.from_pandas(frame, preserve_index=False))


def _opened_whole(table: pa.Table) -> Opened:
    return replace(_opened_frame(table, table.column_names), categorical=category_columns(table))


@reader(".parquet")
def _read_parquet(path: Path, _roles: Roles) -> Opened:
    return _read_parquet_directory(path) if path.is_dir() else _opened_parquet([path])


def _read_parquet_directory(path: Path) -> Opened:
    parts = sorted(
        part
        for part in path.rglob("*.parquet")
        if not any(p[0] in "._" for p in part.relative_to(path).parts)
    )
    if not parts:
        raise DataError(f"{path}: a directory without .parquet files")
    return _opened_parquet(parts, [_folders(part.relative_to(path).parts[:-1]) for part in parts])


def _folders(names: Sequence[str]) -> dict[str, str | None]:
    """Return the columns that folders such as ``region=US`` name, with their values."""
    pairs = [name.split("=", 1) for name in names if "=" in name]
    values = {unquote(key): unquote(value) for key, value in pairs}
    return {key: None if value == _HIVE_NULL else value for key, value in values.items()}


def _opened_parquet(parts: list[Path], folders: Sequence[dict[str, str | None]] = ({},)) -> Opened:
    files = [_parquet_schema(part) for part in parts]
    own = set(files[0].names)  # a column in the file comes before one in the name of a folder
    folders = [{key: value for key, value in found.items() if key not in own} for found in folders]
    schemas = [
        pa.schema([*schema, *((key, pa.string()) for key in found)])
        for schema, found in zip(files, folders, strict=True)
    ]
    categorical = tuple(dict.fromkeys(name for schema in files for name in _categories(schema)))
    columns = tuple(schemas[0].names)
    problems = []
    for part, schema in zip(parts[1:], schemas[1:], strict=True):
        odd = sorted(set(columns) ^ set(schema.names))
        if odd:
            more = f", ... ({len(odd)} in all)" if len(odd) > _SHOWN else ""
            listed = ", ".join(map(repr, odd[:_SHOWN])) + more
            problems.append(f"{part.name} and {parts[0].name} differ in {listed}")
    if problems:
        raise DataError(f"{parts[0].parent}: the parts have different columns: {'; '.join(problems[:5])}")

    def batches(wanted: Sequence[str], size: int) -> Iterator[pa.Table]:
        chosen = list(wanted) or [columns[0]]
        common = _common_schema(parts, schemas, chosen)
        for part, schema, found in zip(parts, files, folders, strict=True):
            stored = [name for name in chosen if name not in found] or schema.names[:1]
            try:
                with pq.ParquetFile(part, pre_buffer=False) as file:
                    for batch in file.iter_batches(batch_size=size, columns=stored, use_threads=False):
                        # what a library noted about its own types is not needed, and may be damaged
                        table = pa.Table.from_batches([batch]).replace_schema_metadata()
                        for key, value in found.items():
                            constant = pa.repeat(pa.scalar(value, pa.string()), table.num_rows)
                            table = table.append_column(key, constant)
                        table = table.select(chosen)
                        yield table if len(parts) == 1 else table.cast(common, safe=False)
            except _UNREADABLE as error:
                raise DataError(f"{part}: damaged: {_first_line(error)}") from error

    return Opened(columns, batches, categorical=categorical)


def _categories(schema: pa.Schema) -> list[str]:
    """Return the columns of categories, by their type or by what pandas noted of them."""
    found = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    try:
        noted = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))["columns"]
        named = [note["name"] for note in noted if note["pandas_type"] == "categorical"]
    except (ValueError, KeyError, TypeError):  # nothing noted, or damaged
        named = []
    return [name for name in schema.names if name in {*found, *map(str, named)}]


def _common_schema(parts: list[Path], schemas: list[pa.Schema], wanted: Sequence[str]) -> pa.Schema:
    """Types that hold the wanted columns of all parts: a part may be narrower (float32) than another.

    Raises
    ------
    DataError
        All columns at once that are, say, texts in one part and numbers in another.
    """
    common, problems = [], []
    for name in wanted:
        kinds: dict[pa.DataType, Path] = {}
        for part, schema in zip(parts, schemas, strict=True):
            kinds.setdefault(_plain_type(schema.field(name).type), part)
            wide = _widest(kinds)
            if wide is None:
                (first, where), *_, (odd, _) = [pair for pair in kinds.items() if pair[0] != pa.null()]
                problems.append(f"{part.name}: {name!r} is {odd}, {first} in {where.name}")
                break
        common.append((name, wide))
    if problems:
        more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise DataError(f"{'; '.join(problems[:5])}{more}; write all parts with the same types")
    return pa.schema(common)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values: how texts are stored makes no difference."""
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.string() if pa.types.is_large_string(value) or pa.types.is_string_view(value) else value


def _widest(kinds: Iterable[pa.DataType]) -> pa.DataType | None:
    """Return the type that holds the values of all types, None if there is none; booleans are numbers."""
    known = set(kinds)
    if len(known) == 1:
        return known.pop()
    if pa.uint64() in known and all(map(pa.types.is_integer, known)):
        return pa.float64()
    numbers = [pa.int8() if pa.types.is_boolean(kind) else kind for kind in known]
    try:
        fields = [pa.schema([("column", kind)]) for kind in numbers]
        return pa.unify_schemas(fields, promote_options="permissive").field("column").type
    except pa.ArrowException:
        return None


def _parquet_schema(path: Path) -> pa.Schema:
    try:
        schema = pq.read_schema(path)
    except _UNREADABLE as error:
        raise DataError(f"{path}: not a Parquet file: {_first_line(error)}") from error
    return pa.schema(
        [
            field
            for field in schema
            if not (field.name.startswith("__index_level_") and field.name.endswith("__"))
        ],
        metadata=schema.metadata,
    )


@reader(".npz")
def _read_npz(path: Path, _roles: Roles) -> Opened:
    if not zipfile.is_zipfile(path):
        raise DataError(f"{path}: not an NPZ file (the archive that numpy.savez writes)")
    try:
        with np.load(path, allow_pickle=False) as archive:
            _check_unpacked(path, archive.zip.infolist())
            arrays = {name: archive[name] for name in archive.files}
    except DataError:
        raise
    except (*_BAD_ARCHIVE, *_UNREADABLE) as error:
        objects = "Object arrays" in str(error)
        what = "holds arrays of Python objects, which are never loaded" if objects else "damaged"
        raise DataError(f"{path}: {what}: {_first_line(error)}") from error
    table, roles = _npz_columns(path, arrays)
    return replace(_opened_frame(table, table.column_names), roles=roles)


def _check_unpacked(path: Path, members: Iterable[zipfile.ZipInfo]) -> None:
    """Refuse an archive that is small and unpacks to what fills a memory."""
    packed = unpacked = 0
    for member in members:
        packed, unpacked = packed + member.compress_size, unpacked + member.file_size
    if unpacked > _LARGE and unpacked > _DENSEST * packed:
        raise DataError(
            f"{path}: would unpack from {packed / 1e6:.3g} MB to {unpacked / 1e9:.3g} GB, which measured "
            "data do not; write it with numpy.savez, uncompressed, if it is right"
        )


def _npz_columns(path: Path, arrays: dict[str, Any]) -> tuple[pa.Table, dict[str, tuple[str, ...]]]:
    """Return the arrays as a table, and the roles of its columns, which the names of the arrays say.

    An array of shape (n,) is one column, one of shape (n, d) is d columns.
    """
    feature_names, classes = arrays.pop("feature_names", None), arrays.pop("classes", None)
    if "logits" in arrays:
        if "probabilities" in arrays:
            raise DataError(f"{path}: holds both probabilities and logits; keep one of them")
        logits = np.asarray(arrays.pop("logits"), dtype=np.float64)
        arrays["probabilities"] = softmax(logits, axis=-1) if logits.size else logits
    if "prediction" in arrays and "probabilities" in arrays:
        raise DataError(f"{path}: holds both prediction and probabilities; keep one of them")
    wrong = [f"{name} {array.shape}" for name, array in arrays.items() if array.ndim not in {1, 2}]
    lengths = {name: array.shape[0] for name, array in arrays.items() if array.ndim}
    if wrong or len(set(lengths.values())) != 1:
        found = "; ".join(wrong) or ", ".join(f"{name} {n}" for name, n in lengths.items()) or "no arrays"
        raise DataError(
            f"{path}: arrays must have the same number of rows and one or two dimensions: {found}"
        )
    columns: list[Any] = []
    roles: dict[str, tuple[str, ...]] = {}
    for name, array in arrays.items():
        matrix = array[:, None] if array.ndim == 1 else array
        columns += [pa.array(values) for values in matrix.T]
        if name == "features":
            roles[name] = _labels(path, "feature_names", feature_names, matrix.shape[1], prefix="f")
        elif name == "probabilities":
            if array.ndim == 1 and classes is None:
                classes = ["1"]  # of two, 0 and 1
            roles["classes"] = _labels(path, "classes", classes, matrix.shape[1], prefix="")
            roles["prediction"] = tuple(f"p_{label}" for label in roles["classes"])
        else:
            several = tuple(f"{name}_{k}" for k in range(matrix.shape[1]))
            roles[name] = (name,) if array.ndim == 1 else several
    named = [column for role, found in roles.items() if role != "classes" for column in found]
    return pa.Table.from_arrays(columns, named), roles


def _labels(path: Path, what: str, given: Any, count: int, *, prefix: str) -> tuple[str, ...]:
    if given is None:
        return tuple(f"{prefix}{k}" for k in range(count))
    names = tuple(str(name) for name in np.atleast_1d(given))
    if len(names) != count:
        raise DataError(f"{path}: {what} has {len(names)} names for {count} columns")
    return names


def _slices(table: pa.Table, size: int) -> Iterator[pa.Table]:
    for start in range(0, table.num_rows, size):
        yield table.slice(start, size)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
