"""A fitted model <-> a directory of JSON, npz and, for fitted scikit-learn estimators, skops files.

``artifact.json`` holds the state as JSON in which arrays and estimators are references; ``arrays.npz`` the
arrays; ``base.skops`` the base learner and ``estimators.skops`` any other scikit-learn estimator. Each part
is checked by its sha256 before it is used, and nothing in it can be executed: arrays are read with
``allow_pickle=False`` and skops may build only trusted types.

The same state gives the same bytes: no timestamps, and the memory addresses that skops writes are renumbered.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lrqr.calibrate.directory import standing, write_directory
from lrqr.calibrate.skops_files import add_member, from_bytes, to_bytes
from lrqr.errors import ArtifactError, UsageError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from numpy.typing import NDArray

FORMAT = "lrqr-model"
VERSION = 1
STATE_FILE = "artifact.json"
ARRAYS_FILE = "arrays.npz"
SKOPS_FILES = {"base": "base.skops", "estimators": "estimators.skops"}

_REFERENCES = ("$array", "$estimator", "$float")


class ArrayEntry(BaseModel):
    """What ``artifact.json`` says about one array of ``arrays.npz``."""

    model_config = ConfigDict(extra="forbid")

    shape: tuple[int, ...]
    dtype: str
    finite: bool
    sha256: str


class Manifest(BaseModel):
    """The schema of ``artifact.json``."""

    model_config = ConfigDict(extra="forbid")

    format: str
    version: int
    sha256: str = Field(description="of the canonical JSON of everything else in this file")
    state: dict[str, Any]
    arrays: dict[str, ArrayEntry]
    files: dict[str, str] = Field(description="sha256 of each other file")


def save(state: Mapping[str, Any], path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write ``state`` as a model directory.

    Parameters
    ----------
    state : mapping
        Nested dicts and lists of JSON values, NumPy arrays and fitted scikit-learn estimators.
    path : path
        The directory to make. It is written under a temporary name and then renamed.
    force : bool, default=False
        Replace an existing model directory (never a directory that holds anything else).

    Returns
    -------
    pathlib.Path
        The directory.
    """
    target = Path(path)
    check_target(target, force=force)
    parts = _Parts()
    plain = parts.encode(dict(state), "")
    files: dict[str, bytes] = {}
    if parts.arrays:
        files[ARRAYS_FILE] = _npz_bytes(parts.arrays)
    for group, name in SKOPS_FILES.items():
        if parts.estimators[group]:
            files[name] = to_bytes(parts.estimators[group])
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "state": plain,
        "arrays": {key: _entry(array) for key, array in parts.arrays.items()},
        "files": {name: _sha256(data) for name, data in files.items()},
    }
    manifest["sha256"] = _sha256(_canonical(manifest))
    text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    files[STATE_FILE] = text.encode()
    try:
        write_directory(target, files, replace=force)
    except FileExistsError:  # by another process, since the check above
        check_target(target, force=force)
        raise
    return target


def check_target(path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Refuse a place for a model that would overwrite something (worth asking before a long fit)."""
    target = Path(path)
    if not target.exists():
        return
    if not force:
        raise UsageError(
            f"{target} exists already; pass --force (force=True) to replace it, or choose another -o"
        )
    if not _is_model(target) and not _is_model(standing(target)):  # one that is replaced just now is one, too
        raise UsageError(
            f"{target} exists and is not a model directory (it has no {STATE_FILE}); --force replaces only "
            "models, so choose another -o"
        )


def _is_model(folder: Path) -> bool:
    return (folder / STATE_FILE).exists() or (folder.is_dir() and not any(folder.iterdir()))


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read back what `save` wrote, after checking every part of it.

    While another process replaces the model, this is the previous one or the new one.

    Raises
    ------
    ArtifactError
        If the directory is missing, truncated, changed, or of a version that this program does not know.
    """
    while True:
        found = _found(path)
        try:
            return _load(standing(Path(path)))
        except ArtifactError:
            if _found(path) == found:
                raise


def _found(path: str | os.PathLike[str]) -> tuple[Path, int, int, bytes] | None:
    """Return what tells a model directory from one that takes its place."""
    state = standing(Path(path)) / STATE_FILE
    try:
        status = state.stat()
        return state, status.st_ino, status.st_mtime_ns, state.read_bytes()
    except OSError:
        return None


def _load(folder: Path) -> dict[str, Any]:
    manifest = _read_manifest(folder)
    arrays = _read_arrays(folder, manifest.arrays, manifest.files)
    estimators = {
        group: from_bytes(_read_file(folder, name, manifest.files), folder / name)
        for group, name in SKOPS_FILES.items()
        if name in manifest.files
    }
    decoded = _decode(manifest.state, arrays, estimators, folder)
    if not isinstance(decoded, dict):  # pragma: no cover - the schema asks for an object
        raise ArtifactError(f"{folder / STATE_FILE}: the state is not an object")
    return decoded


class _Parts:
    """Arrays and estimators taken out of a state on its way to JSON."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self.estimators: dict[str, dict[str, Any]] = {group: {} for group in SKOPS_FILES}

    def encode(self, value: Any, key: str) -> Any:
        if isinstance(value, np.ndarray):
            self.arrays[key] = _plain_array(value, key)
            return {"$array": key}
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not np.isfinite(value):
            return {"$float": str(value)}
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, list | tuple):
            return [self.encode(item, f"{key}.{index}") for index, item in enumerate(value)]
        if isinstance(value, dict):
            return {
                self._name(name, key): self.encode(item, f"{key}.{name}".lstrip("."))
                for name, item in value.items()
            }
        if hasattr(value, "get_params") and hasattr(value, "fit"):
            group = "base" if key.partition(".")[0] == "base" else "estimators"
            self.estimators[group][key] = value
            return {"$estimator": key}
        raise TypeError(f"a model's state cannot hold {type(value).__name__} (at {key!r})")

    @staticmethod
    def _name(name: object, key: str) -> str:
        if not isinstance(name, str) or name in _REFERENCES:
            raise TypeError(f"a model's state cannot have the key {name!r} (at {key!r})")
        return name


def _plain_array(array: NDArray[Any], key: str) -> NDArray[Any]:
    if array.dtype.kind == "O":
        if not all(isinstance(item, str) for item in array.flat):
            raise TypeError(f"a model's state cannot hold an array of objects (at {key!r})")
        array = array.astype(str)
    if array.dtype.kind not in "biufU":
        raise TypeError(f"a model's state cannot hold an array of {array.dtype} (at {key!r})")
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ArtifactError(f"the fitted model holds NaN in {key!r}; it is not saved")
    return np.ascontiguousarray(array).reshape(array.shape)


def _entry(array: NDArray[Any]) -> dict[str, Any]:
    return {
        "shape": list(array.shape),
        "dtype": array.dtype.str,
        "finite": _finite(array),
        "sha256": _sha256(array.tobytes()),
    }


def _finite(array: NDArray[Any]) -> bool:
    return bool(np.isfinite(array).all()) if array.dtype.kind == "f" else True


def _decode(value: Any, arrays: Mapping[str, Any], estimators: Mapping[str, Any], folder: Path) -> Any:
    if isinstance(value, list):
        return [_decode(item, arrays, estimators, folder) for item in value]
    if not isinstance(value, dict):
        return value
    try:
        if value.keys() == {"$array"}:
            return arrays[value["$array"]]
        if value.keys() == {"$float"}:
            return float(value["$float"])
        if value.keys() == {"$estimator"}:
            key = value["$estimator"]
            return estimators["base" if key.partition(".")[0] == "base" else "estimators"][key]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ArtifactError(f"{folder / STATE_FILE} refers to a part that is not there: {value}") from error
    return {key: _decode(item, arrays, estimators, folder) for key, item in value.items()}


# ---------------------------------------------------------------------------------------------- reading


def _read_manifest(folder: Path) -> Manifest:
    path = folder / STATE_FILE
    if not folder.exists():
        raise ArtifactError(f"there is no model at {folder}")
    if not path.is_file():
        raise ArtifactError(f"{folder} is not a model directory: it has no {STATE_FILE}")
    try:
        raw = json.loads(path.read_bytes().decode())
    except OSError as error:
        raise ArtifactError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{path} is truncated or damaged: {error}; fit the model again") from error
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise ArtifactError(f"{path} is not a model of this program (its format is not {FORMAT!r})")
    if raw.get("version") != VERSION:
        raise ArtifactError(
            f"{path} has format version {raw.get('version')!r}, this program reads version {VERSION}; "
            "fit the model again, or use the version of lrqr that wrote it"
        )
    try:
        manifest = Manifest.model_validate(raw)
    except ValidationError as error:
        fields = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ArtifactError(f"{path} does not follow the schema of a model: {fields}") from error
    declared = raw.pop("sha256")
    if declared != _sha256(_canonical(raw)):
        raise ArtifactError(
            f"{path} was changed after it was written (its sha256 differs); fit the model again"
        )
    return manifest


def _read_arrays(
    folder: Path, entries: Mapping[str, ArrayEntry], files: Mapping[str, str]
) -> dict[str, NDArray[Any]]:
    if not entries:
        return {}
    path = folder / ARRAYS_FILE
    data = _read_file(folder, ARRAYS_FILE, files)
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in stored.files}
    except Exception as error:  # whatever a crafted zip file makes NumPy raise
        what = "holds an object array, which could run code when loaded; refused"
        other = f"is damaged: {error}; fit the model again"
        raise ArtifactError(f"{path} {what if 'allow_pickle' in str(error) else other}") from error
    if arrays.keys() != entries.keys():
        odd = ", ".join(sorted(arrays.keys() ^ entries.keys()))
        raise ArtifactError(f"{path} does not hold the arrays that {STATE_FILE} lists ({odd})")
    for key, entry in entries.items():
        array = arrays[key]
        if array.shape != entry.shape or array.dtype.str != entry.dtype:
            raise ArtifactError(
                f"{path}: array {key!r} has shape {array.shape} and dtype {array.dtype.str}, "
                f"{STATE_FILE} says {entry.shape} and {entry.dtype}"
            )
        if _sha256(array.tobytes()) != entry.sha256:
            raise ArtifactError(
                f"{path}: array {key!r} was changed after it was written (its sha256 differs)"
            )
        if array.dtype.kind == "f" and (np.isnan(array).any() or (entry.finite and not _finite(array))):
            raise ArtifactError(f"{path}: array {key!r} holds values that are not finite")
    return arrays


def _read_file(folder: Path, name: str, files: Mapping[str, str]) -> bytes:
    path = folder / name
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ArtifactError(f"{path} is missing; fit the model again") from error
    if _sha256(data) != files.get(name):
        raise ArtifactError(f"{path} is truncated or was changed (its sha256 differs); fit the model again")
    return data


# ---------------------------------------------------------------------------------------------- writing


def _canonical(manifest: Mapping[str, Any]) -> bytes:
    return json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _npz_bytes(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    # written as np.savez does, but with member names of our own (savez cannot take a key named "file")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for key in sorted(arrays):
            member = io.BytesIO()
            np.lib.format.write_array(member, arrays[key], allow_pickle=False)
            add_member(archive, f"{key}.npy", member.getvalue(), zipfile.ZIP_STORED)
    return buffer.getvalue()
