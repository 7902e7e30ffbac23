"""Where work is done makes no difference: one process, several, a Dask cluster that loses a worker."""

from __future__ import annotations

import os
import pickle
import signal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from commands import NUMBERS, lrqr, table

import lrqr as package
from lrqr.commands.engine import BatchScorer, Place, spread
from lrqr.commands.predict import predict
from lrqr.data import tables
from lrqr.errors import LrqrWarning, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from lrqr.calibrate.model import CalibratedModel


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model with learned features and one text among them."""
    folder = tmp_path_factory.mktemp("engine")
    for name, n, shift in (("source", 300, 0.0), ("target", 200, 0.5)):
        frame = table(n, shift, seed=n).assign(kind=np.where(np.arange(n) % 3, "x", "y"))
        tables.write(folder / f"{name}.parquet", frame)
    ran = lrqr("fit", folder / "source.parquet", folder / "target.parquet", *NUMBERS, "-o", folder / "model")
    assert ran.code == 0, ran.err
    return folder / "model"


def _rows(n: int) -> pd.DataFrame:
    return table(n, 0.5, seed=5).assign(kind="x", key=[f"row {k}" for k in range(n)])


def _square(number: int) -> int:
    return number * number


def test_pieces_come_back_in_order_and_are_taken_when_they_are_needed() -> None:
    taken: list[int] = []

    def pieces() -> Any:
        for number in range(5):
            taken.append(number)
            yield number

    with Place().ready():
        found = spread(_square, pieces())
        assert next(found) == 0
        assert len(taken) < 5
        assert list(found) == [1, 4, 9, 16]


@pytest.mark.parametrize("pieces", [1, 3, 7])
def test_a_batch_scorer_says_what_predict_says(model: Path, pieces: int) -> None:
    fitted: CalibratedModel = package.load(model)
    rows = _rows(50)
    scorer = pickle.loads(pickle.dumps(BatchScorer(fitted, keep=("key",))))  # noqa: S301 - our own
    batches = pa.Table.from_pandas(rows).to_batches(max_chunksize=-(-50 // pieces))
    empty = batches[0].slice(0, 0)
    found = pa.Table.from_batches(list(scorer.each([empty, *batches])))
    assert found.column_names == ["key", "threshold", "lower", "upper", "outside_support"]
    assert found["key"].to_pylist() == list(rows["key"])
    assert np.array_equal(found["threshold"].to_numpy(), fitted.predict_threshold(rows))
    assert np.array_equal(
        np.column_stack([found["lower"].to_numpy(), found["upper"].to_numpy()]), fitted.predict_interval(rows)
    )
    assert isinstance(scorer(batches[0]), pa.RecordBatch)
    assert scorer(pa.Table.from_batches(batches)).equals(found.combine_chunks())


def test_places_that_make_no_sense_are_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="pass --engine dask"):
        Place(scheduler="tcp://127.0.0.1:1")
    with pytest.raises(UsageError, match="at least 1"):
        Place(jobs=0)
    tables.write(tmp_path / "new.csv", _rows(3))
    ran = lrqr("predict", model, tmp_path / "new.csv", "-o", tmp_path / "out.csv", "--engine", "dsak")
    assert ran.code == 2
    assert "dask" in ran.err


@pytest.mark.slow
def test_fits_and_predictions_are_the_same_bytes_on_several_processes(model: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.parquet"
    tables.write(new, _rows(200_000))
    source = model.parent / "source.parquet", model.parent / "target.parquet"
    for name, place in (("one", ()), ("two", ("--jobs", 2)), ("dask", ("--engine", "dask", "--jobs", 2))):
        assert lrqr("fit", *source, *NUMBERS, "-o", tmp_path / name, *place).code == 0
        ran = lrqr("predict", model, new, "-o", tmp_path / f"{name}.parquet", *place)
        assert ran.code == 0, ran.err
        for part in ("artifact.json", "arrays.npz"):
            assert (tmp_path / name / part).read_bytes() == (tmp_path / "one" / part).read_bytes()
        assert (tmp_path / f"{name}.parquet").read_bytes() == (tmp_path / "one.parquet").read_bytes()


def test_an_evaluation_does_not_depend_on_the_batches(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = _rows(400).assign(kind=np.where(np.arange(400) == 300, "never", "x"))
    with pytest.warns(LrqrWarning, match="1 rows hold categories never seen"):
        whole = package.evaluate(model, rows, group="key")
    monkeypatch.setattr(tables.batches, "__kwdefaults__", tables.batches.__kwdefaults__ | {"size": 37})
    with pytest.warns(LrqrWarning, match="1 rows hold categories never seen"):
        assert package.evaluate(model, rows, group="key") == whole
    assert whole.n == 400
    assert whole.shift.outside_support_here is not None
    assert whole.shift.outside_support_here >= 1 / 400


@pytest.mark.slow
def test_nothing_is_lost_with_a_worker(model: Path, tmp_path: Path) -> None:
    from distributed import Client, LocalCluster

    new, killed = tmp_path / "new.parquet", []
    tables.write(new, _rows(500_000))
    with (
        LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        workers = client.run(os.getpid)

        def kill(_progress: str) -> None:
            if not killed:
                killed.append(next(iter(workers.values())))
                os.kill(killed[0], signal.SIGKILL)

        place = Place("dask", cluster.scheduler_address)
        done = predict(model, new, tmp_path / "dask.parquet", place=place, step=kill)
    assert killed
    assert done.rows == 500_000
    predict(model, new, tmp_path / "here.parquet")
    assert (tmp_path / "dask.parquet").read_bytes() == (tmp_path / "here.parquet").read_bytes()


@pytest.mark.slow
def test_a_scheduler_that_does_not_answer_is_named(model: Path, tmp_path: Path) -> None:
    tables.write(tmp_path / "new.csv", _rows(3))
    place = ("--engine", "dask", "--scheduler", "tcp://127.0.0.1:9")
    ran = lrqr("predict", model, tmp_path / "new.csv", "-o", tmp_path / "out.csv", *place)
    assert ran.code == 2
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in ran.err
    assert not (tmp_path / "out.csv").exists()
