"""A model directory gives back what was put in, is the same twice, and is refused when anything changed."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from commands import files, lrqr, table, write
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from lrqr.calibrate import store as artifact
from lrqr.calibrate.skops_files import to_bytes
from lrqr.errors import ArtifactError, UsageError

if TYPE_CHECKING:
    import pandas as pd

X = np.random.default_rng(0).normal(size=(60, 3))
Y = X[:, 0] + 0.1 * X[:, 1]

scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text()
arrays = hnp.arrays(
    dtype=st.sampled_from([np.float64, np.int64, np.bool_]),
    shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    elements=None,
).filter(lambda a: not (a.dtype.kind == "f" and np.isnan(a).any()))
keys = st.text(st.characters(codec="utf-8", exclude_characters="\x00/\\"), min_size=1, max_size=8).filter(
    lambda key: not key.startswith("$")
)
states = st.recursive(
    scalars | arrays,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


def same(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray):
        return (
            isinstance(right, np.ndarray)
            and left.dtype == right.dtype
            and left.shape == right.shape
            and left.tobytes() == right.tobytes()
        )
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and left == right


def state() -> dict[str, Any]:
    return {
        "coverage": 0.9,
        "threshold": {"coef": np.array([1.0, np.inf]), "names": np.array(["a", "b"]), "value": -np.inf},
        "base": {"model": make_pipeline(StandardScaler(), RidgeCV(cv=3)).fit(X, Y)},
        "ratio": {"models": [HistGradientBoostingRegressor(max_iter=4, random_state=0).fit(X, Y)]},
    }


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return artifact.save(state(), tmp_path_factory.mktemp("stored") / "model")


@pytest.fixture
def model(stored: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stored, tmp_path / "model"))


@settings(max_examples=60, deadline=None)
@given(value=st.dictionaries(keys, states, max_size=3))
def test_what_comes_back_is_what_was_saved(
    tmp_path_factory: pytest.TempPathFactory, value: dict[str, Any]
) -> None:
    path = artifact.save(value, tmp_path_factory.mktemp("round") / "model")
    assert same(artifact.load(path), value)


def test_estimators_come_back_and_predict_the_same(model: Path) -> None:
    loaded = artifact.load(model)
    assert np.array_equal(loaded["base"]["model"].predict(X), state()["base"]["model"].predict(X))
    assert np.array_equal(loaded["ratio"]["models"][0].predict(X), state()["ratio"]["models"][0].predict(X))
    assert {path.name for path in model.iterdir()} == {
        "artifact.json",
        "arrays.npz",
        "base.skops",
        "estimators.skops",
    }


def test_same_state_same_bytes(model: Path, tmp_path: Path) -> None:
    again = artifact.save(state(), tmp_path / "again")
    resaved = artifact.save(artifact.load(model), tmp_path / "resaved")
    for path in model.iterdir():
        assert path.read_bytes() == (again / path.name).read_bytes(), path.name
        assert path.read_bytes() == (resaved / path.name).read_bytes(), path.name


def test_the_json_is_strict(model: Path) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    json.loads((model / "artifact.json").read_text(), parse_constant=refuse)


@pytest.mark.parametrize("name", ["artifact.json", "arrays.npz", "base.skops", "estimators.skops"])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_truncated_file_is_one_clear_error(model: Path, name: str, share: float) -> None:
    data = (model / name).read_bytes()
    (model / name).write_bytes(data[: int(share * len(data))])
    with pytest.raises(ArtifactError, match=name):
        artifact.load(model)


@pytest.mark.parametrize("name", ["artifact.json", "arrays.npz", "base.skops", "estimators.skops"])
def test_a_missing_file_is_one_clear_error(model: Path, name: str) -> None:
    (model / name).unlink()
    with pytest.raises(ArtifactError, match=name):
        artifact.load(model)


def test_every_changed_byte_is_noticed(model: Path) -> None:
    rng = np.random.default_rng(1)
    for name in ("artifact.json", "arrays.npz", "base.skops"):
        path = model / name
        data = path.read_bytes()
        for position in rng.integers(len(data), size=40):
            changed = bytearray(data)
            changed[position] ^= 1 << int(rng.integers(7))
            path.write_bytes(changed)
            try:
                loaded = artifact.load(model)
            except ArtifactError:
                continue
            # a byte that carries no content, such as a zip date or a space: then nothing may differ
            assert loaded["coverage"] == 0.9
            assert same(loaded["threshold"], state()["threshold"])
        path.write_bytes(data)


def rewrite(model: Path, **changes: Any) -> None:
    """Change the manifest and make its own checksum right again, as an attacker would."""
    path = model / "artifact.json"
    raw = json.loads(path.read_text()) | changes
    raw.pop("sha256")
    raw["sha256"] = artifact._sha256(artifact._canonical(raw))
    path.write_text(json.dumps(raw))


def rehash(model: Path, name: str) -> None:
    raw = json.loads((model / "artifact.json").read_text())
    rewrite(model, files=raw["files"] | {name: artifact._sha256((model / name).read_bytes())})


def test_an_unknown_version_is_named(model: Path) -> None:
    rewrite(model, version=99)
    with pytest.raises(ArtifactError, match="has format version 99, this program reads version 1"):
        artifact.load(model)


def test_a_file_of_another_program_is_refused(model: Path) -> None:
    rewrite(model, format="onnx")
    with pytest.raises(ArtifactError, match="not a model of this program"):
        artifact.load(model)


def test_an_unknown_field_is_named(model: Path) -> None:
    rewrite(model, extra=1)
    with pytest.raises(ArtifactError, match="schema of a model: extra"):
        artifact.load(model)


def test_an_object_array_is_refused_and_runs_nothing(model: Path, tmp_path: Path) -> None:
    marker = tmp_path / "ran"

    class Payload:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (marker,))

    np.savez(model / "arrays.npz", **{"threshold.coef": np.array([Payload()], dtype=object)})
    rehash(model, "arrays.npz")
    with pytest.raises(ArtifactError, match=r"arrays\.npz holds an object array, which could run code"):
        artifact.load(model)
    assert not marker.exists()


def test_a_skops_file_with_a_foreign_type_is_refused(model: Path) -> None:
    import skops.io

    data = skops.io.dumps({"base.model": FunctionTransformer(shutil.rmtree)})
    (model / "base.skops").write_bytes(data)
    rehash(model, "base.skops")
    with pytest.raises(ArtifactError, match=r"not trusted: shutil\.rmtree; refused"):
        artifact.load(model)


def test_nan_in_an_array_is_refused_even_with_right_hashes(model: Path) -> None:
    bad = np.array([np.nan, 1.0])
    raw = json.loads((model / "artifact.json").read_text())
    with np.load(model / "arrays.npz") as stored:
        arrays = dict(stored) | {"threshold.coef": bad}
    (model / "arrays.npz").write_bytes(artifact._npz_bytes(arrays))
    entries = raw["arrays"] | {"threshold.coef": artifact._entry(bad)}
    rewrite(model, arrays=entries)
    rehash(model, "arrays.npz")
    with pytest.raises(ArtifactError, match=r"'threshold\.coef' holds values that are not finite"):
        artifact.load(model)


def test_a_reference_to_nothing_is_refused(model: Path) -> None:
    raw = json.loads((model / "artifact.json").read_text())
    rewrite(model, state=raw["state"] | {"more": {"$array": "nowhere"}})
    with pytest.raises(ArtifactError, match="refers to a part that is not there"):
        artifact.load(model)


@pytest.mark.parametrize("value", [object(), np.array([object()]), {1: 2}, {"$array": 1}, 1j])
def test_what_cannot_be_stored_is_refused_before_anything_is_written(tmp_path: Path, value: Any) -> None:
    with pytest.raises(TypeError, match="state cannot"):
        artifact.save({"value": value}, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_overwriting_needs_force_and_a_model(model: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exists already; pass --force"):
        artifact.save({"a": 1}, model)
    artifact.save({"a": 1}, model, force=True)
    assert artifact.load(model) == {"a": 1}
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "chapter.tex").write_text("years of work")
    with pytest.raises(UsageError, match="not a model directory"):
        artifact.save({"a": 1}, other, force=True)
    assert (other / "chapter.tex").read_text() == "years of work"


def test_the_model_that_a_link_points_at_is_replaced_and_the_link_stays(model: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(model)
    artifact.save({"a": 1}, link, force=True)
    assert link.is_symlink()
    assert artifact.load(model) == artifact.load(link) == {"a": 1}
    assert {path.name for path in tmp_path.iterdir()} == {"link", model.name}


def test_a_write_that_fails_leaves_the_old_model_whole(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path.name: path.read_bytes() for path in model.iterdir()}

    def fail(_: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("lrqr.calibrate.directory.os.fsync", fail)
    with pytest.raises(OSError, match="no space"):
        artifact.save({"a": 1}, model, force=True)
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before
    assert [path.name for path in model.parent.iterdir()] == ["model"]


def test_skops_files_carry_no_address_and_no_date() -> None:
    data = to_bytes({"model": LogisticRegression().fit(X, Y > 0)})
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        names = archive.namelist()
        schema = archive.read("schema.json").decode()
    assert all(len(Path(name).stem) < 8 for name in names)
    assert '"__id__": 0' in schema


def test_loading_nothing(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="there is no model at"):
        artifact.load(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ArtifactError, match=r"it has no artifact\.json"):
        artifact.load(tmp_path / "empty")


def test_two_runs_give_the_same_bytes(tmp_path: Path) -> None:
    def columns(n: int, shift: float, seed: int) -> pd.DataFrame:
        frame = table(n, shift, seed).drop(columns="yhat")
        return frame.assign(c=np.where(frame["b"] > 0, "up", "down"))

    paths = write(tmp_path, source=columns(120, 0.0, 1), target=columns(60, 0.5, 2).drop(columns="y"))
    run = (
        "import sys\nfrom click.testing import CliRunner\nfrom lrqr.cli import cli\n"
        "from lrqr.calibrate import learned\nlearned.FOLDS, learned.REPEATS = 2, 1\n"
        "source, target, folder = sys.argv[1:]\n"
        "for base in ('ridge', 'hist-gradient-boosting'):\n"
        "    model = f'{folder}/{base}'\n"
        "    fit = ['fit', source, target, '--outcome', 'y', '--base', base, '-o', model]\n"
        "    for command in (fit, ['predict', model, target, '-o', f'{model}.csv']):\n"
        "        assert CliRunner().invoke(cli, command).exit_code == 0\n"
    )
    for name in ("1", "2"):
        (tmp_path / name).mkdir()
        arguments = [sys.executable, "-c", run, paths["source"], paths["target"], tmp_path / name]
        threads = {"OPENBLAS_NUM_THREADS": name, "OMP_NUM_THREADS": name}
        subprocess.run(arguments, check=True, env=os.environ | threads | {"PYTHONHASHSEED": name})
    produced = [path for path in (tmp_path / "1").rglob("*") if path.is_file()]
    assert {path.name for path in produced} >= {"artifact.json", "arrays.npz", "base.skops", "ridge.csv"}
    for path in produced:
        assert path.read_bytes() == (tmp_path / "2" / path.relative_to(tmp_path / "1")).read_bytes(), (
            path.name
        )


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fitted")
    files(path, n=60)
    options = ("--outcome", "y", "--base", "ridge", "--exclude", "yhat")
    assert lrqr("fit", path / "source.csv", path / "target.csv", *options, "-o", path / "model").code == 0
    return path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("artifact.json", "is truncated or damaged"),
        ("arrays.npz", "is truncated or was changed (its sha256 differs); fit the model again"),
        ("base.skops", "is truncated or was changed (its sha256 differs); fit the model again"),
    ],
)
def test_a_truncated_model_is_one_clear_error(fitted: Path, tmp_path: Path, name: str, message: str) -> None:
    model = shutil.copytree(fitted / "model", tmp_path / "model")
    (model / name).write_bytes((model / name).read_bytes()[:-20])
    for command in (["evaluate", model, fitted / "test.csv"], ["inspect", model]):
        ran = lrqr(*command)
        assert ran.code == 1
        assert ran.err.startswith(f"Error: {model / name} {message}")
        assert ran.err.count("\n") == 1


def test_a_changed_byte_and_an_unknown_version(fitted: Path, tmp_path: Path) -> None:
    model = shutil.copytree(fitted / "model", tmp_path / "model")
    path = model / "artifact.json"
    text = path.read_text()
    path.write_text(text.replace('"coverage": 0.9', '"coverage": 0.1', 1))
    ran = lrqr("inspect", model)
    assert ran.code == 1
    assert (
        "artifact.json was changed after it was written (its sha256 differs); fit the model again" in ran.err
    )
    path.write_text(json.dumps(json.loads(text) | {"version": 7}))
    ran = lrqr("inspect", model)
    assert ran.code == 1
    assert "has format version 7, this program reads version 1; fit the model again" in ran.err


def test_two_writers_and_a_reader_at_once(tmp_path: Path) -> None:
    """Whoever reads while two processes replace a model again and again gets one of them, whole."""
    run = (
        "import sys, numpy as np\nfrom lrqr.calibrate import store\n"
        "for k in range(int(sys.argv[2]), int(sys.argv[2]) + 60):\n"
        "    store.save({'k': k, 'values': np.full(4000, k)}, sys.argv[1], force=True)\n"
    )
    path = artifact.save({"k": 0, "values": np.full(4000, 0)}, tmp_path / "model")
    writers = [subprocess.Popen([sys.executable, "-c", run, path, str(start)]) for start in (1_000, 2_000)]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        loaded = artifact.load(path)
        assert (loaded["values"] == loaded["k"]).all()
        seen.add(loaded["k"])
    assert [writer.returncode for writer in writers] == [0, 0]
    assert len(seen) > 2
    assert artifact.load(path)["k"] in {1_059, 2_059}
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


def test_of_two_first_writers_one_is_told(tmp_path: Path) -> None:
    """Without --force the model that stands first stays."""
    run = (
        "import sys\nfrom pathlib import Path\nfrom lrqr.calibrate import store\n"
        "from lrqr.errors import UsageError\nfolder, name = Path(sys.argv[1]), sys.argv[2]\n"
        "(folder / name).touch()\n"
        "while not ((folder / 'a').exists() and (folder / 'b').exists()):\n    pass\n"
        "try:\n    store.save({'k': name}, folder / 'model')\nexcept UsageError:\n    sys.exit(2)\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", run, tmp_path, name]) for name in "ab"]
    codes = [writer.wait() for writer in writers]
    assert sorted(codes) == [0, 2]
    assert artifact.load(tmp_path / "model") == {"k": "ab"[codes.index(0)]}
