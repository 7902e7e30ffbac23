"""``python -m lrqr`` and the console script."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    try:
        from lrqr.cli import cli

        cli(prog_name="lrqr")
    except KeyboardInterrupt:  # while the libraries are imported
        sys.exit(130)


if __name__ == "__main__":
    main()
