"""The commands: parse, call one workflow, print."""

from __future__ import annotations

from lrqr.cli import calibrate, judge, study
from lrqr.cli.group import cli

__all__ = ["calibrate", "cli", "judge", "study"]
