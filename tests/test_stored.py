"""Whatever is changed in a stored model, with hashes made to fit: it answers as before, or is refused."""

from __future__ import annotations

import io
import json
import shutil
import warnings
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from commands import GIVEN, LABELS, NUMBERS, classes, lrqr, table, write

from lrqr.calibrate import store
from lrqr.calibrate.model import load
from lrqr.commands.inspect import describe
from lrqr.errors import ArtifactError, LrqrError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd

Arrays = dict[str, np.ndarray[Any, Any]]
FITS = {
    "weighted": [*NUMBERS, "--method", "weighted"],
    "given": [*NUMBERS, *GIVEN],
    "default": NUMBERS,
    "constant": [*NUMBERS, "--feature-map", "constant"],
    "split": [*NUMBERS, "--method", "split"],
    "doubly-robust": [*NUMBERS, "--method", "doubly-robust"],
    "dro": [*NUMBERS, "--method", "dro"],
    "dro-isotonic": [*NUMBERS, "--method", "dro-isotonic"],
    "robust-weighted": [*NUMBERS, "--method", "robust-weighted"],
    "conditional": [*NUMBERS, "--method", "conditional"],
    "base": ["--outcome", "y", "--base", "ridge", "--exclude", "yhat"],
    "sets": LABELS,
}
VALUES = [
    None,
    True,
    -1,
    10**30,
    0.5,
    1e308,
    {"$float": "inf"},
    {"$float": "nan"},
    "x",
    [],
    [1],
    {},
    {"a": 1},
]
# what no declaration allows, whatever the field is
NEVER = {"float32", "datetime", "complex", "text", "nan", "deeper", "missing"}


def fit(folder: Path, name: str) -> tuple[Path, pd.DataFrame]:
    """Fit a model; return its directory and rows to ask it."""
    make = classes if name == "sets" else table
    source, target, new = make(120, seed=1), make(80, 0.5, seed=2), make(6, 0.5, seed=3)
    paths = write(folder, source=source, target=target.drop(columns="y"))
    ran = lrqr("fit", paths["source"], paths["target"], *FITS[name], "-o", folder / "model")
    assert ran.code == 0, ran.err
    return folder / "model", new.drop(columns="y")


def parts(model: Path) -> tuple[dict[str, Any], Arrays]:
    with np.load(model / "arrays.npz") as stored:
        return json.loads((model / "artifact.json").read_text()), {key: stored[key] for key in stored.files}


def forge(model: Path, raw: dict[str, Any], arrays: Arrays) -> None:
    """Write the parts of a model, with hashes that fit."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for key, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array, allow_pickle=False)
            archive.writestr(f"{key}.npy", member.getvalue())
    (model / "arrays.npz").write_bytes(buffer.getvalue())
    entries = {key: store._entry(array) for key, array in arrays.items()}
    files = raw["files"] | {"arrays.npz": store._sha256(buffer.getvalue())}
    forged = {key: value for key, value in raw.items() if key != "sha256"} | {
        "arrays": entries,
        "files": files,
    }
    forged["sha256"] = store._sha256(store._canonical(forged))
    (model / "artifact.json").write_text(json.dumps(forged))


def answers(model: Path, rows: pd.DataFrame) -> bytes:
    loaded = load(model)
    regions = loaded.predict_set if loaded.task == "classification" else loaded.predict_interval
    describe(loaded)
    return loaded.predict_threshold(rows).tobytes() + regions(rows).tobytes()


def changed_arrays(array: np.ndarray[Any, Any]) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    yield "shuffled", np.random.default_rng(0).permutation(array.ravel()).reshape(array.shape)
    yield from {"short": array[:-1], "empty": array[:0], "long": np.concatenate([array, array])}.items()
    yield "deeper", array[None]
    if array.dtype.kind != "U":
        whole = np.nan_to_num(array).astype("i8") if np.abs(array).max(initial=0.0) < 2**62 else array > 0
        for name, kind in (("complex", "c16"), ("datetime", "M8[s]"), ("float32", "f4"), ("text", "U8")):
            yield name, whole.astype("i8").astype(kind)
        yield from {"int8": whole.astype("i1"), "bool": array.astype("?")}.items()
    if array.dtype.kind == "f":
        yield from {"negative": -array, "zero": np.zeros_like(array)}.items()
        for name, value in (("huge", 1e308), ("infinite", np.inf), ("nan", np.nan)):
            yield name, np.full_like(array, value)
    elif array.dtype.kind == "i":
        yield from {"negative": -1 - array, "huge": array + 2**62}.items()


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every part of a state; of lists of objects, to the first."""
    if isinstance(value, dict) and not any(key.startswith("$") for key in value):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        yield from places(value[0], (*path, 0))
    if path:
        yield path


def changed_states(state: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in places(state):
        for value in ["missing", *VALUES]:
            copied: Any = json.loads(json.dumps(state))
            inner = copied
            for key in path[:-1]:
                inner = inner[key]
            if value == "missing":
                del inner[path[-1]]
            else:
                inner[path[-1]] = value
            shorter = value == "missing" and path[-1] == 0  # a list of one model less is a list of models
            yield f"{'.'.join(map(str, path))} {'shorter' if shorter else value}", copied


def changes(raw: dict[str, Any], arrays: Arrays) -> Iterator[tuple[str, dict[str, Any], Arrays]]:
    for key, array in arrays.items():
        for name, other in changed_arrays(array):
            yield f"{key} {name}", raw, arrays | {key: np.ascontiguousarray(other).reshape(other.shape)}
    for name, state in changed_states(raw["state"]):
        yield name, raw | {"state": state}, arrays


def hold(folder: Path, name: str, every: int) -> None:
    """Try each ``every``-th change of a model."""
    model, rows = fit(folder, name)
    raw, arrays = parts(model)
    before, outcomes = answers(model, rows), {"same": 0, "refused": 0, "other": 0}
    work = shutil.copytree(model, folder / "work")
    for number, (what, state, values) in enumerate(changes(raw, arrays)):
        if number % every:
            continue
        forge(work, state, values)
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                after = answers(work, rows)
                thresholds = load(work).predict_threshold(rows)
        except LrqrError:
            outcomes["refused"] += 1
        except Exception as error:
            raise AssertionError(f"{what}: {error!r}") from error
        else:
            outcomes["same" if after == before else "other"] += 1
            kind = what.rsplit(" ", 1)[-1]
            assert after == before or kind not in NEVER, f"{what} gives another answer"
            assert not np.isnan(thresholds).any(), f"{what} gives NaN"
    assert outcomes["refused"] > outcomes["other"], outcomes


@pytest.mark.parametrize("name", ["weighted", "given", "constant", "conditional"])
def test_changes_are_refused_or_change_nothing(name: str, tmp_path: Path) -> None:
    hold(tmp_path, name, 61)


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_every_change_is_refused_or_changes_nothing(name: str, tmp_path: Path) -> None:
    hold(tmp_path, name, 1)


@pytest.mark.parametrize(
    ("key", "change", "message"),
    [
        ("estimator.fitted.weights_", lambda values: -values, r"must hold numbers within \[0, inf\)"),
        ("estimator.fitted.ratio_.fitted.scale_", lambda values: 0.0 * values, r"numbers within \(0, inf\)"),
        (
            "estimator.fitted.scores_",
            lambda values: values[:-1],
            "must have n = 120, as other fields say",
        ),
        ("estimator.fitted.scores_", lambda values: values > 0, "must be an array of float64"),
        ("estimator.fitted.scores_", lambda values: values + 1.0, "must have largest = "),
        ("estimator.fitted.ratio_.fitted.kept_", lambda values: values[::-1], "must hold rising numbers"),
    ],
)
def test_a_message_names_file_and_field(
    weighted: Path, tmp_path: Path, key: str, change: Any, message: str
) -> None:
    model = shutil.copytree(weighted, tmp_path / "model")
    raw, arrays = parts(model)
    name = f"threshold.{key}"
    forge(model, raw, arrays | {name: np.ascontiguousarray(change(arrays[name]))})
    with pytest.raises(ArtifactError, match=message) as caught:
        load(model)
    assert str(caught.value).startswith(f"{model / 'artifact.json'}: threshold.estimator.")
    assert str(caught.value).endswith("fit the model again")


def test_parts_of_two_models_never_mix(weighted: Path, tmp_path: Path) -> None:
    other, _ = fit(tmp_path, "given")
    shutil.copy(weighted / "arrays.npz", other / "arrays.npz")
    with pytest.raises(ArtifactError, match=r"arrays\.npz is truncated or was changed"):
        load(other)


@pytest.fixture(scope="module")
def weighted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fit(tmp_path_factory.mktemp("weighted"), "weighted")[0]
