"""Inputs nobody thought of: an answer, or one message with an exit code that the documents name."""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import NUMBERS, lrqr, table, write

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
import fuzz

COMMAND = ("--method", "split", "--force")


@pytest.mark.filterwarnings("ignore")
def test_mutated_files_end_in_an_answer_or_one_message(tmp_path: Path) -> None:
    """A short search; ``make fuzz`` goes on with new seeds."""
    codes, broken = fuzz.search(20261201, lambda tried: tried < 150, tmp_path)
    assert not broken
    assert codes[0] > 5
    assert codes[1] > 50


def fitted(folder: Path, source: Path) -> tuple[int, str]:
    target = write(folder, target=table(40, 0.5, seed=2)[["a", "b"]])["target"]
    ran = lrqr("fit", source, target, *NUMBERS, *COMMAND, "-o", folder / "model")
    return ran.code, ran.err


def test_what_a_library_noted_in_a_parquet_file_may_be_damaged(tmp_path: Path) -> None:
    frame = pa.Table.from_pandas(table(60, seed=1)).replace_schema_metadata({b"pandas": b'{"columns": \xff'})
    pq.write_table(frame, tmp_path / "source.parquet")
    assert fitted(tmp_path, tmp_path / "source.parquet")[0] == 0


def test_features_too_large_to_be_squared_are_named(tmp_path: Path) -> None:
    frame = table(60, seed=1)
    frame.loc[3, "a"] = -1e200
    code, said = fitted(tmp_path, write(tmp_path, source=frame)["source"])
    assert code == 1
    assert "feature 'a' has values up to 1e+200 in size, beyond 1e+150 too large to be squared" in said


def test_lists_are_no_labels(tmp_path: Path) -> None:
    frame = table(60, seed=1)
    lists = frame.assign(g=[[k] for k in range(60)])
    lists.to_parquet(tmp_path / "lists.parquet")
    code, _ = fitted(tmp_path, write(tmp_path, source=frame)["source"])
    assert code == 0
    ran = lrqr("evaluate", tmp_path / "model", tmp_path / "lists.parquet", "--group", "g")
    assert ran.code == 1
    assert "column 'g' holds values of type list<element: int64>, neither numbers nor texts" in ran.err


def test_empty_logits_and_bombs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lrqr.data.formats._LARGE", 1 << 26)  # 1 GiB takes seconds to make
    np.savez(tmp_path / "empty.npz", features=np.ones((5, 1)), outcome=np.zeros(5), logits=np.zeros(0))
    ran = lrqr("fit", tmp_path / "empty.npz", tmp_path / "empty.npz", *COMMAND, "-o", tmp_path / "model")
    assert ran.code == 1
    assert "arrays must have the same number of rows" in ran.err
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": "<f8", "fortran_order": False, "shape": (1 << 24, 1)}
    )
    with (
        zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("features.npy", "w", force_zip64=True) as member,
    ):
        member.write(head.getvalue())
        for _ in range(8):
            member.write(bytes(1 << 24))
    ran = lrqr("fit", tmp_path / "bomb.npz", tmp_path / "bomb.npz", *COMMAND, "-o", tmp_path / "model")
    assert ran.code == 1
    assert "bomb.npz: would unpack from 0.131 MB to 0.134 GB" in ran.err


def test_an_array_that_claims_more_than_it_has_is_damaged(tmp_path: Path) -> None:
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40, 9)}
    )
    with zipfile.ZipFile(tmp_path / "claim.npz", "w") as archive:
        archive.writestr("features.npy", head.getvalue() + bytes(64))
    ran = lrqr("fit", tmp_path / "claim.npz", tmp_path / "claim.npz", *COMMAND, "-o", tmp_path / "model")
    assert ran.code == 1
    assert "claim.npz: damaged" in ran.err


def test_names_of_columns_are_no_paths(tmp_path: Path) -> None:
    frame = pd.concat([table(60, seed=1), pd.Series(np.arange(60.0), name="../../outside")], axis=1)
    code, _ = fitted(tmp_path, write(tmp_path, source=frame)["source"])
    assert code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "source.csv", "target.csv"]
