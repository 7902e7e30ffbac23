"""``python -m lrqr`` and the console script."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    from lrqr.cli import cli

    cli(prog_name="lrqr")


if __name__ == "__main__":
    main()
