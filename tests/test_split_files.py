"""``lrqr datasets split`` writes what ``fit`` and ``evaluate`` read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import pytest
from click.testing import CliRunner

from lrqr.cli import cli

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("name", "predictions"), [("communities", 1), ("mmlu", 4)])
def test_split_writes_disjoint_parts_with_predictions(name: str, predictions: int, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["datasets", "split", name, "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    parts = {part: pd.read_csv(tmp_path / f"{part}.csv") for part in ("source", "target", "test")}
    assert "outcome" not in parts["target"]
    for frame in parts.values():
        assert sum(column == "prediction" or column.startswith("p_") for column in frame) == predictions
    rows = pd.concat([frame.drop(columns="outcome", errors="ignore") for frame in parts.values()])
    assert not rows.duplicated().any()
    again = CliRunner().invoke(cli, ["datasets", "split", name, "-o", str(tmp_path)])
    assert again.exit_code != 0
    assert "exists" in again.output
