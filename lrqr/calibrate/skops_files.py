"""Fitted scikit-learn estimators <-> skops bytes: the same every time, building only trusted types."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lrqr.errors import ArtifactError

if TYPE_CHECKING:
    from collections.abc import Mapping

# What skops may build beyond its own default list: a private class of scikit-learn's boosted trees.
TRUSTED = frozenset({"sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"})

_EARLIEST = (1980, 1, 1, 0, 0, 0)  # the zip format's first date


def to_bytes(estimators: Mapping[str, Any]) -> bytes:
    """Dump with skops, then renumber what depends on memory addresses and the clock."""
    import skops.io

    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(dict(estimators)))) as dumped:
        schema = json.loads(dumped.read("schema.json"))
        members = {name: dumped.read(name) for name in dumped.namelist() if name != "schema.json"}
    ids: dict[int, int] = {}
    renamed: dict[str, str] = {}
    _renumber(schema, ids, renamed)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for old, new in renamed.items():
            add_member(archive, new, members[old], zipfile.ZIP_DEFLATED)
        add_member(archive, "schema.json", json.dumps(schema).encode(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def from_bytes(data: bytes, path: Path) -> dict[str, Any]:
    """Load what `to_bytes` made.

    Raises
    ------
    ArtifactError
        If it holds a type outside of skops' own list and `TRUSTED`, or cannot be read.
    """
    import skops.io

    try:
        unknown = sorted(set(skops.io.get_untrusted_types(data=data)) - TRUSTED)
        loaded = None if unknown else skops.io.loads(data, trusted=sorted(TRUSTED))
    except Exception as error:
        raise ArtifactError(
            f"{path} cannot be read: {error}; it may come from another version of scikit-learn"
        ) from error
    if unknown:
        raise ArtifactError(f"{path} holds types that are not trusted: {', '.join(unknown)}; refused")
    if not isinstance(loaded, dict):
        raise ArtifactError(f"{path} does not hold the estimators of a model")
    return loaded


def add_member(archive: zipfile.ZipFile, name: str, data: bytes, compression: int) -> None:
    """Add a member that carries no date."""
    info = zipfile.ZipInfo(name, _EARLIEST)
    info.compress_type = compression
    archive.writestr(info, data)


def _renumber(node: Any, ids: dict[int, int], renamed: dict[str, str]) -> None:
    if isinstance(node, list):
        for item in node:
            _renumber(item, ids, renamed)
    if not isinstance(node, dict):
        return
    if isinstance(node.get("__id__"), int):
        # Whether two equal strings or numbers are one object is an accident of the interpreter:
        # each gets a number of its own. Arrays, lists and estimators keep their identity.
        old = -1 - len(ids) if node.get("is_json") else node["__id__"]
        node["__id__"] = ids.setdefault(old, len(ids))
    file = node.get("file")
    if isinstance(file, str):
        node["file"] = renamed.setdefault(file, f"{len(renamed)}{Path(file).suffix}")
    for item in node.values():
        _renumber(item, ids, renamed)
