"""The search of fuzz.py, guided by the code that inputs reach: atheris keeps those that reach more.

``python scripts/fuzz_guided.py SECONDS``, with ``pip install atheris`` (Linux). The first byte of an input
says which kind of file the others are; one that breaks the promise is kept as ``crash-*`` in this folder.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["lrqr"]):
    import fuzz

    import lrqr.commands.evaluate
    import lrqr.commands.fit
    import lrqr.commands.inspect  # noqa: F401 - what is imported later would not be followed


def main() -> None:
    """Search from the good files for as long as the command line says."""
    folder, corpus = (Path(tempfile.mkdtemp(prefix="lrqr-fuzz-")) for _ in range(2))
    bench = fuzz.Bench(folder)
    names = list(bench.good)
    for number, name in enumerate(names):
        (corpus / name).write_bytes(bytes([number]) + bench.good[name])

    def one(data: bytes) -> None:
        if not data:
            return
        for command in bench.commands(names[data[0] % len(names)], data[1:]):
            code, said = bench.run(*command)
            if code not in fuzz.CODES or "unforeseen" in said:
                raise RuntimeError(f"{command}: exit {code}: {said[-300:]}")

    limits = [f"-max_total_time={sys.argv[1]}", f"-timeout={fuzz.LONGEST:.0f}", "-rss_limit_mb=4096"]
    atheris.Setup([sys.argv[0], str(corpus), *limits], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
