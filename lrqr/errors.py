"""The exceptions of lrqr and their exit codes.

Every message says what is wrong, the value, where it is, and what to do.
"""

from __future__ import annotations


class LrqrError(Exception):
    """Base of all errors that lrqr raises on purpose."""

    exit_code = 1


class DataError(LrqrError, ValueError):
    """Something is wrong in the data: a file, a column, a row."""


class ArtifactError(DataError):
    """A model directory is missing, damaged, tampered with or of an unknown version."""


class UsageError(LrqrError, ValueError):
    """An option, a parameter or a combination of them makes no sense."""

    exit_code = 2


class CheckFailed(LrqrError):  # noqa: N818 - it is an outcome that the user asked to be told
    """A check that the user asked for did not hold (``--fail-under``, ``--check``, ``--strict``)."""

    exit_code = 3


class NotConverged(LrqrError):  # noqa: N818 - it is an outcome, named as the solvers' field is
    """The solver stopped without its certificate, and ``--strict`` was asked for."""

    exit_code = 4


class LrqrWarning(UserWarning):
    """Something the user should know before trusting the result."""
