"""``python -m lrqr`` and the console script."""

from __future__ import annotations

import signal
import sys
from typing import Any, NoReturn

_STOPPED = 128 + signal.SIGTERM  # as shells count


def _stop(*_: Any) -> NoReturn:
    """Leave as after an error, so that files under temporary names are removed."""
    sys.exit(_STOPPED)


def main() -> None:
    """Run the command line."""
    try:
        signal.signal(signal.SIGTERM, _stop)
        from lrqr.cli import cli

        cli(prog_name="lrqr")
    except KeyboardInterrupt:  # while the libraries are imported
        sys.exit(130)


if __name__ == "__main__":
    main()
