# ruff: noqa: S603 - a script: in no package, it runs the programs it names, and it prints
"""Install the built wheel into a new environment, away from the clone, and use it as a stranger would.

``make dist`` runs it. It fails if the wheel cannot be imported, lacks a file that it needs, or cannot fit,
predict and report.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

MAKE_TABLES = """
import numpy as np, pandas as pd
rng = np.random.default_rng(0)
for name, shift in {"source": 0.0, "target": 0.7, "labeled": 0.7}.items():
    x = rng.normal(size=(300, 2)) + [shift, 0.0]
    table = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "yhat": x[:, 1]})
    if name != "target":
        table["y"] = x[:, 1] + (0.3 + abs(x[:, 0])) * rng.normal(size=300)
    table.to_csv(f"{name}.csv", index=False)
"""

IMPORT = """
import importlib.metadata, pathlib, lrqr
assert "site-packages" in lrqr.__file__, lrqr.__file__
assert lrqr.__version__ == importlib.metadata.version("lrqr")
assert (pathlib.Path(lrqr.__file__).parent / "py.typed").exists()
for name in lrqr.__all__:
    getattr(lrqr, name)
"""


def main() -> None:
    """Try the only wheel in the folder that the command line names."""
    (wheel,) = Path(sys.argv[1]).resolve().glob("*.whl")
    with tempfile.TemporaryDirectory() as folder:
        try_out(wheel, Path(folder))
    print(f"{wheel.name}: installed and used away from the clone")


def try_out(wheel: Path, folder: Path) -> None:
    """Install ``wheel`` in ``folder`` and run the main job there."""
    # PYTHONPATH and an activated environment would let the clone answer instead of the wheel
    environment = {
        key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "VIRTUAL_ENV"}
    }

    def run(*command: object) -> str:
        done = subprocess.run(
            list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(
                f"{' '.join(map(str, command))}\nexited with {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done.stdout

    run(sys.executable, "-m", "venv", "env")
    python, lrqr = folder / "env" / "bin" / "python", folder / "env" / "bin" / "lrqr"
    run(python, "-m", "pip", "install", "--quiet", wheel)
    run(python, "-c", IMPORT)
    run(python, "-c", MAKE_TABLES)
    print(run(lrqr, "--version").strip())
    run(lrqr, "fit", "source.csv", "target.csv", "--outcome", "y", "--prediction", "yhat", "-o", "model")
    run(lrqr, "predict", "model", "target.csv", "-o", "intervals.csv")
    run(lrqr, "evaluate", "model", "labeled.csv", "--report", "report.html")
    if "lrqr 9" not in run(lrqr, "demo").splitlines()[-1]:
        sys.exit("lrqr demo: its last line does not say what lrqr covered")
    if "communities" not in run(lrqr, "reproduce", "--list"):
        sys.exit("lrqr reproduce --list: the wheel holds no experiments")


if __name__ == "__main__":
    main()
