"""Fourteen tasks on real data by which docs/selection.md judges rules: mostly soft selection, ratio known.

Each row goes to the target with probability sigmoid(1.5 z), z a standardized sum of standardized covariates,
so that p(y | x) is shared by construction and the likelihood ratio is proportional to exp(1.5 z). Two further
tasks: MMLU from school to college (ratio not known) and a mixture of clean and corrupted images.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lrqr.study.datasets import DataFile, Rows, ShiftData, check_shift, locate, softmax

if TYPE_CHECKING:
    from lrqr.arrays import BoolArray, FloatArray, IntArray

TITLE = "Soft selection on tables, questions and images: 14 tasks to judge selection rules"
SOURCE = "UCI 1, 165, 183, 186, 275, 291, 320; StatLib; MMLU with LLaMA-13B; CIFAR-10 with ResNet-56"
LICENSE = "as of the single files, see data/README.md"


@dataclass(frozen=True)
class Table:
    """How a file becomes a regression task.

    Attributes
    ----------
    file : DataFile
    outcome : str
    selection : dict
        The weights of the standardized columns in z.
    dropped : tuple of str
        Columns that are no features.
    logarithm : tuple of str
        Columns replaced by their logarithm.
    linear : bool
        The base model is ridge regression instead of gradient boosted trees.
    per_household : tuple of str
        Columns divided by the number of households (before the logarithm).
    """

    file: DataFile
    outcome: str
    selection: dict[str, float]
    dropped: tuple[str, ...] = ()
    logarithm: tuple[str, ...] = ()
    linear: bool = False
    per_household: tuple[str, ...] = ()


_COMMUNITIES = DataFile(
    "communities.csv", "19dc3ec40b4c3bf0e32bf560853c374d6bf9a4e7314bcb6407bb574b4447dc69", 1097664
)
_NOT_PREDICTIVE = ("state", "county", "community", "communityname", "fold")
RACES = ("racepctblack", "racePctWhite", "racePctHisp", "racePctAsian")
TABLES = {
    "airfoil": Table(
        DataFile("airfoil.csv", "f80dc41192780708e81a56ec78c5ec7638781a1ae78d9c4134ea8d0b0d3f06cd", 59516),
        "sound_pressure_db",
        {"frequency_hz": -1.0, "displacement_thickness_m": 1.0},
        logarithm=("frequency_hz", "displacement_thickness_m"),
    ),
    "abalone": Table(
        DataFile("abalone.csv", "17d91efb155184007fb3bdf02fbf1381fb212ea824129d96610c06626ecfaabe", 191968),
        "rings",
        {"whole_weight": 1.0},
    ),
    "california": Table(
        DataFile(
            "california_housing.csv",
            "81dc3561d0438eb382b21ecd53837b844e50fba0058a39cfba37009b2687b72c",
            1237459,
        ),
        "medianHouseValue",
        {"latitude": 1.0, "medianIncome": 0.5},
        logarithm=("totalRooms", "totalBedrooms", "population", "households"),
        per_household=("totalRooms", "totalBedrooms", "population"),
    ),
    "bike": Table(
        DataFile(
            "bike_hour.csv", "11e08374c448229649b93e64c7442558b93d516a008804bd70bdb8c82333c434", 1144308
        ),
        "cnt",
        {"temp": 1.0, "hum": -0.5},
        dropped=("instant", "dteday", "casual", "registered"),
    ),
    "concrete": Table(
        DataFile("concrete.csv", "88b98d31c0076a5aa76df566011f1f96a48988e3251810673d2d5477d7cbfea2", 48489),
        "strength_mpa",
        {"age_days": 1.0, "cement": 0.5},
        logarithm=("age_days",),
    ),
    "student": Table(
        DataFile(
            "student_performance.csv",
            "e33bb2c4d66c1b326fb61a4238f9b6e564bc857d45a4f525ca00ed1dde98f4f7",
            114496,
        ),
        "G3",
        {"age": 1.0, "absences": 0.5},
    ),
    "wine": Table(
        DataFile(
            "wine_quality.csv", "26503907bb3438d8c0d70caada5cae9433abbaa4976a949623a38e420648b535", 415032
        ),
        "quality",
        {"alcohol": 1.0, "density": -0.3},
    ),
} | {
    race: Table(_COMMUNITIES, "ViolentCrimesPerPop", {race: 1.0}, _NOT_PREDICTIVE, linear=True)
    for race in RACES
}
_QUESTIONS = DataFile(
    "mmlu_llama13b.csv.gz", "255c7fd615708fe0d588bb99f87ee99d83fc510c5c87818b546885376bd382de", 358635
)
_EMBEDDINGS = DataFile(
    "mmlu_minilm_embeddings.npz", "07ad1d70c9c7c9d402006e73bb61603ab6980b2d289f752f8dd91efa5c19df83", 1824751
)
_IMAGES = DataFile(
    "cifar10_resnet56.npz", "9e43b62341ac3f167c37d294efeb428c821b0c800fcd216198e94596a96bcf9b", 2730080
)
FILES = (*dict.fromkeys(table.file for table in TABLES.values()), _QUESTIONS, _EMBEDDINGS, _IMAGES)
SHIFTS = (*TABLES, "mmlu-soft", "mmlu-hard", "cifar-mixture")
HELD_OUT = ("wine", "racePctHisp", "cifar-mixture")
"""The tasks that docs/selection.md reports apart."""

SLOPE = 1.5
SOURCE_ROWS, TARGET_ROWS, TEST_ROWS = 600, 300, 2000
TRAIN_SHARE, TRAIN_ROWS = 0.3, 1500
_OPTIONS = ("A", "B", "C", "D")
_CORRUPTED = (0.2, 0.8)


def split(shift: str, *, seed: int) -> ShiftData:
    """Draw one random split of one task.

    Tables: 30 % of the rows, at most 1500, train a base model (boosted trees; ridge for Communities). The
    rest is dealt out by soft selection: at most 600 labeled source rows, at most 300 unlabeled target rows
    but no more than half of the target, at most 2000 for testing. The questions and images come with
    predictions.

    Parameters
    ----------
    shift : one of SHIFTS
    seed : int

    Returns
    -------
    ShiftData
        With predictions, and with the true ratio except for ``mmlu-hard``.
    """
    check_shift(shift, SHIFTS, "soft-selection")
    rng = np.random.default_rng(seed)
    if shift in TABLES:
        return _table_task(shift, rng)
    if shift == "cifar-mixture":
        return _image_task(shift, rng)
    return _question_task(shift, rng)


@cache
def _table(name: str) -> tuple[tuple[str, ...], Rows]:
    """Return feature names and the rows of a table, with the ratio exp(1.5 z) of each."""
    table = TABLES[name]
    frame = pd.read_csv(locate(table.file)).drop(columns=list(table.dropped))
    missing = frame.isna().sum()
    frame = frame.drop(columns=missing.index[missing > 1])  # LEMAS columns of Communities
    frame = frame.fillna(frame.median(numeric_only=True))
    for column in table.per_household:
        frame[column] /= frame["households"]
    frame[list(table.logarithm)] = np.log(frame[list(table.logarithm)])
    if name == "bike":  # the hour is a circle
        frame["hour_sine"] = np.sin(frame["hr"] * (2 * np.pi / 24))
        frame["hour_cosine"] = np.cos(frame["hr"] * (2 * np.pi / 24))
    z = sum(weight * _standardized(frame[column]) for column, weight in table.selection.items())
    outcome = frame.pop(table.outcome).to_numpy(np.float64)
    features = pd.get_dummies(frame, drop_first=True).astype(np.float64)
    rows = Rows(features.to_numpy(), outcome, None, np.exp(SLOPE * _standardized(z)))
    return tuple(features.columns), rows


def _standardized(values: Any) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    return np.asarray((array - array.mean()) / array.std())


def _table_task(shift: str, rng: np.random.Generator) -> ShiftData:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    names, rows = _table(shift)
    order = rng.permutation(len(rows))
    count = min(TRAIN_ROWS, int(TRAIN_SHARE * len(rows)))
    train, rest = order[:count], order[count:]
    model: Any = HistGradientBoostingRegressor(early_stopping=False, random_state=0)
    if TABLES[shift].linear:
        model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-1, 5, 13)))
    assert rows.outcome is not None  # noqa: S101 - for the type checker
    model.fit(rows.features[train], rows.outcome[train])
    predicted = replace(rows, prediction=model.predict(rows.features)[:, None])
    return _assemble(shift, names, predicted, *_select(rows.ratio, rest, rng))


def _select(ratio: Any, rest: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Deal rows out to source and target, with odds ``ratio`` of the target."""
    odds = ratio[rest]
    chosen = rng.random(len(rest)) < odds / (1.0 + odds)
    return rest[~chosen], rest[chosen]


@cache
def _questions() -> tuple[pd.DataFrame, Rows]:
    frame = pd.read_csv(locate(_QUESTIONS), keep_default_na=False)
    with np.load(locate(_EMBEDDINGS), allow_pickle=False) as arrays:
        embedding = arrays["emb"].astype(np.float64)
    answer = frame["answer"].map({name: index for index, name in enumerate(_OPTIONS)})
    probability = frame[[f"p_{name}" for name in _OPTIONS]].to_numpy(np.float64)
    centered = embedding - embedding.mean(axis=0)
    direction = np.linalg.svd(centered, full_matrices=False)[2][0]
    direction *= np.sign(direction[np.abs(direction).argmax()])
    ratio = np.exp(SLOPE * _standardized(centered @ direction))
    return frame, Rows(embedding, np.asarray(answer, dtype=np.int64), probability, ratio)


def _question_task(shift: str, rng: np.random.Generator) -> ShiftData:
    frame, rows = _questions()
    names = tuple(f"e{index}" for index in range(rows.features.shape[1]))
    order = rng.permutation(len(rows))
    if shift == "mmlu-soft":
        source, target = _select(rows.ratio, order, rng)
    else:
        level = frame["level"].to_numpy()[order]
        source, target = order[level == "source_school"], order[level == "target_college_professional"]
        rows = replace(rows, ratio=None)
    return _assemble(shift, names, rows, source, target, _OPTIONS)


@cache
def _images() -> tuple[Rows, BoolArray, tuple[str, ...]]:
    with np.load(locate(_IMAGES), allow_pickle=False) as arrays:
        corrupted = arrays["domain"] != 0
        clean, dirty = _CORRUPTED
        ratio = np.where(corrupted, dirty / clean, clean / dirty)
        features, logits = arrays["features"].astype(np.float64), arrays["logits"]
        rows = Rows(features, arrays["label"].astype(np.int64), softmax(logits), ratio)
        return rows, corrupted, tuple(str(name) for name in arrays["class_names"])


def _image_task(shift: str, rng: np.random.Generator) -> ShiftData:
    """Draw each image independently: corrupted with probability 0.2 in the source, 0.8 in the target."""
    rows, corrupted, classes = _images()
    pools = [rng.permutation(np.flatnonzero(corrupted == value)) for value in (False, True)]
    parts = []
    for size, share in ((SOURCE_ROWS, _CORRUPTED[0]), (TARGET_ROWS + TEST_ROWS, _CORRUPTED[1])):
        dirty = int(rng.binomial(size, share))
        counts = (size - dirty, dirty)
        parts.append(rng.permutation(np.concatenate([p[:n] for p, n in zip(pools, counts, strict=True)])))
        pools = [pool[count:] for pool, count in zip(pools, counts, strict=True)]
    names = tuple(f"f{index}" for index in range(rows.features.shape[1]))
    return _assemble(shift, names, rows, parts[0], parts[1], classes)


def _assemble(
    shift: str,
    names: tuple[str, ...],
    rows: Rows,
    source: IntArray,
    target: IntArray,
    classes: tuple[str, ...] = (),
) -> ShiftData:
    unlabeled = min(TARGET_ROWS, len(target) // 2)
    return ShiftData(
        name=shift,
        feature_names=names,
        source=rows.take(source[:SOURCE_ROWS]),
        target=rows.take(target[:unlabeled]).unlabeled(),
        test=rows.take(target[unlabeled : unlabeled + TEST_ROWS]),
        classes=classes,
    )
