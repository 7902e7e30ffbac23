"""Search for inputs that lrqr does not answer as it promises: mutate good files and run commands on them.

Every command must end in success or in one message with an exit code that the documents name; never in a
traceback, never in "unforeseen", never by running longer than a bound. Usage:
``python scripts/fuzz.py SECONDS [SEED]``; inputs that break the promise are kept in a folder that is named at
the end.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from click.testing import CliRunner

from lrqr.cli import cli

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CODES = {0, 1, 2, 3, 4}
LONGEST = 20.0  # seconds for one command on a file of a hundred rows
TOKENS = [
    b"",
    b",",
    b'"',
    b"\n",
    b"\r\n",
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"NaN",
    b"inf",
    b"-inf",
    b"1e309",
    b"1e-320",
    b"-1",
    b"0",
    b"99999999999999999999",
    b"true",
    b"None",
    b"null",
    b"[]",
    b"{}",
    b"=1+1",
    b"\x1b[31m",
    b"'",
    b"a",
    b"y",
    b"yhat",
    b"../",
    b"\xe2\x80\xae",
    b"1,5",
    b"2020-01-01",
]


def mutate(name: str, data: bytes, rng: np.random.Generator) -> bytes:
    """Change a good file: half of the times a few bytes, else what the bytes mean."""
    meaning = MEANINGS.get(name)
    return change_bytes(data, rng) if meaning is None or rng.random() < 0.5 else meaning(data, rng)


def change_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    """Flip, cut, repeat, replace or insert a few bytes."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(0, len(out) + 1))
        end = min(len(out), at + int(rng.choice([1, 2, 40])))
        kind = int(rng.integers(0, 5))
        if kind == 0 and at < len(out):
            out[at] = int(rng.integers(0, 256))
        elif kind == 1:
            del out[at:end]
        elif kind == 2:
            out[at:at] = out[at:end] * int(rng.integers(1, 20))
        elif kind == 3:
            out[at:end] = TOKENS[rng.integers(len(TOKENS))]
        else:
            out[at:at] = TOKENS[rng.integers(len(TOKENS))]
    return bytes(out)


def change_cells(data: bytes, rng: np.random.Generator) -> bytes:
    """Write something else into a few cells of a CSV file, or into a whole column."""
    rows = [line.split(b",") for line in data.splitlines()]
    for _ in range(int(rng.integers(1, 4))):
        column, token = int(rng.integers(len(rows[0]))), TOKENS[rng.integers(len(TOKENS))]
        start = int(rng.integers(len(rows)))
        for row in rows[start:] if rng.random() < 0.3 else rows[start : start + 1]:
            row[column] = token
    return b"\n".join(b",".join(row) for row in rows)


def change_column(data: bytes, rng: np.random.Generator) -> bytes:
    """Write a column of a Parquet file with another type, or other values."""
    frame = pd.read_parquet(io.BytesIO(data))
    name = frame.columns[rng.integers(frame.shape[1])]
    values = frame[name]
    numbers = pd.Series(np.arange(len(frame)) % 7)
    others = [
        values.astype(str),
        numbers.astype(bool),
        numbers.astype("category"),
        pd.to_datetime(numbers),
        pd.to_timedelta(numbers),
        numbers.map(lambda k: [k]),
        numbers.map(lambda k: {"k": k}),
        numbers.astype("Int8"),
        numbers.map(lambda k: b"x" * k),
        pd.Series([None] * len(frame)),
        values.where(numbers > 0),
        numbers / 0.0,
        numbers.astype("uint64") + 2**63,
        numbers.map(Decimal),
        values.iloc[:0].reindex(values.index),
    ]
    frame[name] = others[rng.integers(len(others))]
    if rng.random() < 0.2:
        frame = frame.rename(columns={name: str(rng.choice(["a", "", " y ", "y\x00", "p_1"]))})
    frame = frame.loc[:, ~frame.columns.duplicated()].iloc[: int(rng.choice([0, 1, 2, len(frame)]))]
    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    return buffer.getvalue()


def change_array(data: bytes, rng: np.random.Generator) -> bytes:
    """Give an array of an NPZ file another type, shape or value."""
    with np.load(io.BytesIO(data)) as archive:
        arrays = dict(archive)
    name = list(arrays)[rng.integers(len(arrays))]
    values = arrays[name]
    others = [
        values.astype(bool),
        values.astype(complex),
        values.astype("S3"),
        values.astype("U9"),
        values.astype("M8[s]"),
        values[..., None],
        values[:0],
        values[:-1],
        values.ravel(),
        values * np.nan,
        values * np.inf,
        values * 1e308,
        values.astype(np.float16),
        values.astype(">f4"),
        np.asfortranarray(values),
        np.float64(1.0),
    ]
    arrays[name] = others[rng.integers(len(others))]
    if rng.random() < 0.2:
        arrays[str(rng.choice(["score", "group", "id", "logits", "../x", "ratio"]))] = arrays.pop(name)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def change_value(data: bytes, rng: np.random.Generator) -> bytes:
    """Set a key of a configuration to something else."""
    lines = data.splitlines()
    at = int(rng.integers(1, len(lines)))
    values = [
        b"true",
        b"[]",
        b"{}",
        b"1e400",
        b"nan",
        b'"x"',
        b"-1",
        b"0",
        b"1979-05-27",
        b"[[1]]",
        b"[fit]",
        b"0.5",
    ]
    keys = [
        lines[at].split(b" =")[0],
        b"ridge",
        b"selection",
        b"feature-map",
        b"score",
        b"infinite",
        b"id",
        b"group",
    ]
    lines[at] = keys[rng.integers(len(keys))] + b" = " + values[rng.integers(len(values))]
    return b"\n".join(lines)


MEANINGS = {
    "in.csv": change_cells,
    "in.parquet": change_column,
    "in.npz": change_array,
    "in.toml": change_value,
}


def table(n: int, seed: int) -> pd.DataFrame:
    """Return rows with a number, a text, a prediction and an outcome."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    text = rng.choice(["red", "blue"], n)
    return pd.DataFrame({"a": a, "c": text, "yhat": a, "y": a + rng.normal(size=n)})


FIT = ("--outcome", "y", "--prediction", "yhat", "--method", "split", "--force")
CONFIG = b"""[fit]
outcome = "y"
prediction = "yhat"
method = "split"
coverage = 0.9
seed = 1
exclude = ["c"]
"""


class Bench:
    """A folder with good files, and the commands that read a mutated copy of each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        source, target = table(60, 0), table(40, 1).drop(columns="y")
        self.good: dict[str, bytes] = {}
        for name, frame in (("source", source), ("target", target)):
            frame.to_csv(folder / f"{name}.csv", index=False)
        self.good["in.csv"] = (folder / "source.csv").read_bytes()
        buffer = io.BytesIO()
        source.to_parquet(buffer)
        self.good["in.parquet"] = buffer.getvalue()
        buffer = io.BytesIO()
        np.savez(buffer, features=source[["a"]].to_numpy(), outcome=source["y"], prediction=source["yhat"])
        self.good["in.npz"] = buffer.getvalue()
        self.good["in.toml"] = CONFIG
        ran = self.run("fit", "source.csv", "target.csv", *FIT[:-3], "--feature-map", "given", "-o", "model")
        if ran[0] != 0:
            raise RuntimeError(ran[1])
        for name in ("artifact.json", "arrays.npz"):
            self.good[name] = (folder / "model" / name).read_bytes()

    def run(self, *arguments: str) -> tuple[int, str]:
        """Run a command in the folder; names of files are taken to be in it."""
        paths = [str(self.folder / word) if self._is_name(word) else word for word in arguments]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = CliRunner().invoke(cli, paths, prog_name="lrqr")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            return -1, repr(result.exception)
        return result.exit_code, result.stderr

    def _is_name(self, word: str) -> bool:
        return word in {"model", "bad", "out"} or word.endswith((".csv", ".parquet", ".npz", ".toml"))

    def commands(self, name: str, data: bytes) -> Iterator[tuple[str, ...]]:
        """Write the mutated file; yield the commands to run on it."""
        if name in {"artifact.json", "arrays.npz"}:
            bad = self.folder / "bad"
            shutil.rmtree(bad, ignore_errors=True)
            shutil.copytree(self.folder / "model", bad)
            (bad / name).write_bytes(data)
            yield ("inspect", "bad", "--format", "json")
            yield ("evaluate", "bad", "source.csv", "--format", "json")
            return
        (self.folder / name).write_bytes(data)
        if name == "in.toml":
            yield ("fit", "source.csv", "target.csv", "-c", name, "-o", "out", "--force")
        elif name == "in.npz":
            yield ("fit", name, name, "--method", "split", "-o", "out", "--force")
        else:
            yield ("fit", name, "target.csv", *FIT, "-o", "out")
            yield ("evaluate", "model", name, "--format", "csv")


def search(seed: int, go_on: Callable[[int], bool], kept: Path) -> tuple[Counter[int], dict[str, str]]:
    """Mutate and run until ``go_on(tried)`` is false.

    Returns
    -------
    codes : Counter
        How many commands ended with each exit code.
    broken : dict
        For each kept input that broke the promise, the command and what it said.
    """
    rng = np.random.default_rng(seed)
    broken: dict[str, str] = {}
    codes: Counter[int] = Counter()
    tried = 0
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        while go_on(tried):
            name = list(bench.good)[tried % len(bench.good)]
            data = mutate(name, bench.good[name], rng)
            tried += 1
            for command in bench.commands(name, data):
                start = time.process_time()
                code, said = bench.run(*command)
                codes[code] += 1
                late = time.process_time() - start > LONGEST
                if code in CODES and "unforeseen" not in said and not late:
                    continue
                file = f"{hashlib.sha256(data).hexdigest()[:12]}-{name}"
                (kept / file).write_bytes(data)
                broken[file] = f"{' '.join(command)}: exit {code}{' late' if late else ''}: {said[-300:]}"
    return codes, broken


def main() -> None:
    """Search for as long as the command line says; print what was found."""
    seconds, seed = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    kept = Path(tempfile.mkdtemp(prefix="lrqr-fuzz-"))
    end = time.monotonic() + seconds
    codes, broken = search(seed, lambda _: time.monotonic() < end, kept)
    print(f"seed {seed}: exit codes {dict(sorted(codes.items()))}; {len(broken)} files broke the promise")
    if broken:
        print(json.dumps(broken, indent=1))
        print(f"kept in {kept}")
        sys.exit(1)


if __name__ == "__main__":
    main()
