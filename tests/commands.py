"""The command line in the process of the tests, and small tables to run it on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from click.testing import CliRunner

from lrqr.cli import cli

if TYPE_CHECKING:
    from pathlib import Path


NUMBERS = ("--outcome", "y", "--prediction", "yhat")
LABELS = ("--outcome", "y", "--probability", "p_*")
GIVEN = ("--feature-map", "given")


@dataclass(frozen=True)
class Ran:
    """What a command gave."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def lrqr(*arguments: Any) -> Ran:
    """Run a command; an exception that would show a traceback fails the test."""
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments], prog_name="lrqr")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert "Traceback" not in result.stderr
    return Ran(result.exit_code, result.stdout, result.stderr)


_SEVERAL = """
import json, sys
from lrqr.__main__ import main
for arguments in json.load(sys.stdin):
    sys.argv[1:] = arguments
    try:
        code = main()
    except SystemExit as end:
        code = end.code
    for stream in (sys.stdout, sys.stderr):
        stream.write(f"\\0{code or 0}\\0")
        stream.flush()
"""


def fresh(folder: Path, *commands: list[str], **environment: str) -> list[Ran]:
    """Run commands one after the other in one new process, in a folder, with its own streams."""
    done = subprocess.run(
        [sys.executable, "-c", _SEVERAL],
        input=json.dumps(commands).encode(),
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        check=True,
    )
    out, err = (stream.decode("utf-8", "replace").split("\0") for stream in (done.stdout, done.stderr))
    return [Ran(int(code), *said) for code, *said in zip(out[1::2], out[::2], err[::2], strict=False)]


def table(n: int, shift: float = 0.0, seed: int = 0) -> pd.DataFrame:
    """Rows with features a and b, a prediction and an outcome whose noise grows with a."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(shift, 1.0, size=n), rng.normal(size=n)
    noise = rng.normal(size=n) * (0.5 + 0.3 * np.exp(0.5 * a))
    return pd.DataFrame({"a": a, "b": b, "yhat": a + b, "y": a + b + noise})


def classes(n: int, shift: float = 0.0, seed: int = 0) -> pd.DataFrame:
    """Rows with features a and b, probabilities of the classes red, green and blue, and a label."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(shift, 1.0, size=n), rng.normal(size=n)
    logits = np.column_stack([a, -a, b])
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    label = (p.cumsum(axis=1) > rng.uniform(size=(n, 1))).argmax(axis=1)
    names = np.array(["red", "green", "blue"])
    return pd.DataFrame(
        {"a": a, "b": b, "p_red": p[:, 0], "p_green": p[:, 1], "p_blue": p[:, 2], "y": names[label]}
    )


def write(folder: Path, **frames: pd.DataFrame) -> dict[str, Path]:
    """Write frames as CSV files; return their paths."""
    paths = {}
    for name, frame in frames.items():
        paths[name] = folder / f"{name}.csv"
        frame.to_csv(paths[name], index=False)
    return paths


def files(folder: Path, n: int = 200) -> dict[str, Path]:
    """Write a labeled source, an unlabeled target and a labeled test file."""
    return write(
        folder,
        source=table(n, seed=1),
        target=table(n, 0.5, seed=2).drop(columns=["y", "yhat"]),
        test=table(n, 0.5, seed=3),
    )


def scored(folder: Path, scores: Any, *options: object, features: Any = None, name: str = "model") -> Ran:
    """Fit on scores of the user's own; the target is the source itself."""
    x = np.linspace(0.0, 1.0, len(scores)) if features is None else features
    source = pd.DataFrame({"x": x, "s": scores})
    paths = write(folder, source=source, target=source[["x"]])
    arguments = (
        "fit",
        paths["source"],
        paths["target"],
        "--score-column",
        "s",
        "-o",
        folder / name,
        "--force",
    )
    return lrqr(*arguments, *options)


def predicted(folder: Path, *options: object, rows: str = "target", model: str = "model") -> pd.DataFrame:
    out = folder / "out.csv"
    ran = lrqr("predict", folder / model, folder / f"{rows}.csv", "-o", out, "--force", *options)
    assert ran.code == 0, ran.err
    return pd.read_csv(out)
