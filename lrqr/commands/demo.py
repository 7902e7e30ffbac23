"""``lrqr demo``: the main job on data that come with lrqr."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lrqr.calibrate.rows import Rows
from lrqr.commands.split import PARTS, write_parts
from lrqr.study.datasets import ShiftData, selected, shipped, standardized, unlabeled_and_test
from lrqr.study.split import predict_with_base

if TYPE_CHECKING:
    from pathlib import Path

OUTCOME = "sound_pressure_db"
STORY = (
    "The noise of an airfoil is to be predicted from five measurements. The model and its labels come from "
    "one mix of experiments (source); it will be used on another, of lower frequencies and thicker boundary "
    "layers (target), where nobody has labels."
)

_TRAINING = 0.3  # of the source rows; the others calibrate
_SLOPE = 1.5  # log-odds of being a target row, per standard deviation of the direction of the shift


def commands(folder: Path, *, seed: int = 0, force: bool = False) -> list[list[str]]:
    """Write the files of the demo; return the arguments of the commands to run on them.

    Parameters
    ----------
    folder : Path
        Where ``source.csv``, ``target.csv`` and ``test.csv`` go, and all that the commands write.
    seed : int
        Draws the three parts.
    force : bool
        Replace files that are there.
    """
    source, target, test = map(str, write_parts(parts(seed), folder, force=force))
    model, intervals, report = (str(folder / name) for name in ("model", "intervals.csv", "report.html"))
    columns = ["--outcome", OUTCOME, "--prediction", "prediction"]
    replace = ["--force"] if force else []
    return [
        ["fit", source, target, *columns, "-o", model, *replace],
        ["predict", model, target, "--keep", "prediction", "-o", intervals, *replace],
        ["evaluate", model, test, "--report", report, *replace],
    ]


def parts(seed: int) -> dict[str, pd.DataFrame]:
    """Draw source, unlabeled target and labeled test rows, with the prediction of trees fitted on other rows.

    The chance of a row to be a target row depends on its features alone. The order of the file does not
    matter: it is the order of the experiments, so that neighbors are alike.
    """
    table = pd.read_csv(shipped("data/airfoil.csv", "commands/airfoil.csv"))
    features = table.drop(columns=OUTCOME)
    logs = [standardized(np.log(table[c].to_numpy())) for c in ("displacement_thickness_m", "frequency_hz")]
    rng = np.random.default_rng(seed)
    log_odds = _SLOPE * standardized(logs[0] - logs[1])
    labeled, moved = selected(log_odds, rng.permutation(len(table)), rng)
    train, source = np.split(labeled, [round(_TRAINING * len(labeled))])
    target, test = unlabeled_and_test(moved)
    rows = Rows(features.to_numpy(np.float64), table[OUTCOME].to_numpy())
    dealt = ShiftData.dealt("demo", list(map(str, features)), rows, source, target, test, train=train)
    frames = predict_with_base(dealt, "hist-gradient-boosting", seed).frames()
    return {part: frames[part].rename(columns={"outcome": OUTCOME}) for part in PARTS}
