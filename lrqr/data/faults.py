"""Everything that is wrong with a table, gathered over its batches and told in one message."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from lrqr.errors import DataError

if TYPE_CHECKING:
    from lrqr.arrays import BoolArray, IntArray

_ROWS_SHOWN = 5


@dataclass
class _Fault:
    count: int = 0
    rows: list[int] = field(default_factory=list)
    example: str = ""


@dataclass
class Faults:
    """Faults by kind and column: how many rows, which ones first, and an example.

    Parameters
    ----------
    where : str
        The file, or what to call the data.
    header_lines : int
        Lines before the first row of a text file, 0 for other formats.
    """

    where: str
    header_lines: int = 0
    found: dict[tuple[str, str], _Fault] = field(default_factory=dict)

    def add(self, column: str, kind: str, rows: BoolArray | IntArray, offset: int, example: str = "") -> None:
        """Note rows (a mask, or positions in a batch that starts at row ``offset``) of one kind of fault."""
        positions = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        if not positions.size:
            return
        fault = self.found.setdefault((column, kind), _Fault(example=example))
        fault.count += int(positions.size)
        room = _ROWS_SHOWN - len(fault.rows)
        fault.rows += [int(position) + offset + 1 for position in positions[: max(room, 0)]]

    def __bool__(self) -> bool:
        return bool(self.found)

    def summary(self, total: int) -> list[str]:
        """One line per fault."""
        return [
            f"column {column!r}: {fault.count} of {total} {kind}{fault.example} ({_rows(fault)})"
            for (column, kind), fault in self.found.items()
        ]

    def raise_if_any(self, total: int, advice: str = "") -> None:
        """Raise one error that lists them all.

        Raises
        ------
        DataError
        """
        if not self.found:
            return
        lines = self.summary(total)
        counted = "rows are data rows counted from 1"
        if self.header_lines:
            counted += f"; row 1 is line {self.header_lines + 1} of the file"
        tail = f"\n{advice}" if advice else ""
        if len(lines) == 1:
            raise DataError(f"{self.where}: {lines[0]}; {counted}{tail}")
        listed = "\n".join(f"  {line}" for line in lines)
        raise DataError(f"{self.where}: {len(lines)} problems ({counted}):\n{listed}{tail}")


def _rows(fault: _Fault) -> str:
    shown = ", ".join(str(row) for row in fault.rows)
    return f"row{'s' if fault.count > 1 else ''} {shown}{', ...' if fault.count > len(fault.rows) else ''}"
