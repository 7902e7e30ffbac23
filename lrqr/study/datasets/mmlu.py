"""MMLU questions answered by LLaMA-13B: high-school subjects to college and professional ones.

Section 5.4 of arXiv:2502.13030, with the 16 subjects whose option probabilities are public and with MiniLM
embeddings of the questions in place of GPT-2's; or with a file of all subjects and GPT-2's embeddings, which
``scripts/export_mmlu.py`` writes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lrqr.errors import DataError
from lrqr.study.datasets import (
    DataFile,
    Rows,
    ShiftData,
    check_shift,
    data_folder,
    locate,
    selected,
    standardized,
    unlabeled_and_test,
)

if TYPE_CHECKING:
    from pathlib import Path

    from lrqr.arrays import FloatArray, IntArray

TITLE = "MMLU: option probabilities of LLaMA-13B and MiniLM embeddings, school to college questions"
SOURCE = "Hendrycks et al. (2021); Kumar et al. (2023), arXiv:2305.18404; all-MiniLM-L6-v2 embeddings"
LICENSE = "MIT (questions, probabilities), Apache-2.0 (embedding model)"
FILES = (
    DataFile(
        "mmlu_llama13b.csv.gz", "255c7fd615708fe0d588bb99f87ee99d83fc510c5c87818b546885376bd382de", 358635
    ),
    DataFile(
        "mmlu_minilm_embeddings.npz",
        "07ad1d70c9c7c9d402006e73bb61603ab6980b2d289f752f8dd91efa5c19df83",
        1824751,
    ),
)
SHIFTS = ("school-to-college", "first-component")

CLASSES = ("A", "B", "C", "D")
LEVELS = ("source_school", "target_college_professional")
SLOPE = 1.5
_KEYS = ("embedding", "probability", "answer", "subject")


@cache
def table(path: str = "") -> tuple[pd.DataFrame, Rows]:
    """Return the questions and, row by row, their embedding, answer index and option probabilities.

    These are the 2574 questions of the shipped files, or those of an exported NPZ.
    """
    if path:
        return _exported(data_folder() / path)
    frame = pd.read_csv(locate(FILES[0]), keep_default_na=False)
    with np.load(locate(FILES[1]), allow_pickle=False) as arrays:
        embedding = arrays["emb"].astype(np.float64)
    answer = frame["answer"].map({name: index for index, name in enumerate(CLASSES)})
    probability = frame[[f"p_{name}" for name in CLASSES]].to_numpy(np.float64)
    return frame, Rows(embedding, np.asarray(answer, dtype=np.int64), probability)


def _exported(file: Path) -> tuple[pd.DataFrame, Rows]:
    if not file.is_file():
        raise DataError(f"{file} is missing; scripts/export_mmlu.py makes it, where LLaMA-13B is")
    with np.load(file, allow_pickle=False) as arrays:
        missing = [key for key in _KEYS if key not in arrays]
        if missing:
            raise DataError(
                f"{file} lacks {', '.join(missing)}; scripts/export_mmlu.py writes {', '.join(_KEYS)}"
            )
        embedding, probability, answer, subject = (arrays[key] for key in _KEYS)
    names = [str(name) for name in subject]
    school = [name.startswith("high_school") for name in names]
    moved = [name.startswith(("college", "professional")) for name in names]
    level = np.select([school, moved], LEVELS, "other")
    probability = probability.astype(np.float64) / probability.sum(axis=1, keepdims=True, dtype=np.float64)
    rows = Rows(embedding.astype(np.float64), answer.astype(np.int64), probability)
    return pd.DataFrame({"subject": names, "level": level}), rows


def split(
    shift: str,
    *,
    seed: int,
    path: str = "",
    source_share: float = 0.8,
    components: int = 0,
    source_rows: int = 0,
    target_rows: int = 0,
    test_rows: int = 0,
) -> ShiftData:
    """Draw one random split.

    Parameters
    ----------
    shift : one of SHIFTS
        ``school-to-college``: the 408 high-school questions are the source, the 890 college and professional
        ones the target. ``first-component``: each of all questions goes to the target with probability
        sigmoid(1.5 z), z the standardized first principal component of the embeddings, so that the true
        likelihood ratio is known.
    seed : int
    path : str
        An NPZ of ``scripts/export_mmlu.py``, a relative path in the data folder; the shipped files if empty.
    source_share : float
        The random share of the high-school questions that calibrates, so that splits differ in the source
        too; all do where ``source_rows`` is given.
    components : int
        Keep so many principal components of the embeddings (fitted on the source and the unlabeled target);
        0 keeps all 384 dimensions.
    source_rows, target_rows, test_rows : int
        At most so many questions in each part; 0 is all. Without ``test_rows`` the target is halved, and
        ``target_rows`` bounds both halves.
    """
    check_shift(shift, SHIFTS, "mmlu")
    frame, rows = table(path)
    level = frame["level"].to_numpy()
    rng = np.random.default_rng(seed)
    if shift == "first-component":
        log_odds = SLOPE * _first_component(path)
        rows = replace(rows, ratio=np.exp(log_odds))
        source, moved = selected(log_odds, rng.permutation(len(rows)), rng)
    elif source_rows:
        order = rng.permutation(len(rows))
        source, moved = (order[level[order] == name] for name in LEVELS)
    else:
        source, moved = (rng.permutation(np.flatnonzero(level == name)) for name in LEVELS)
        source = source[: round(source_share * len(source))]
    source = source[: source_rows or None]
    target, test = unlabeled_and_test(moved, target_rows, test_rows)
    if components:
        features = _components(rows.features, np.concatenate([source, target]), components)
        rows = replace(rows, features=features)
    names = tuple(f"e{index}" for index in range(rows.features.shape[1]))
    return ShiftData.dealt(shift, names, rows, source, target, test, classes=CLASSES)


@cache
def _first_component(path: str) -> FloatArray:
    """Return the standardized first principal component of all embeddings, shape (n,)."""
    features = table(path)[1].features
    return standardized(_components(features, np.arange(len(features)), 1)[:, 0])


def _components(features: FloatArray, fit_rows: IntArray, count: int) -> FloatArray:
    """Principal components of ``features``; the directions come from the rows ``fit_rows`` alone."""
    centered = features - features[fit_rows].mean(axis=0)
    directions = np.linalg.svd(centered[fit_rows], full_matrices=False)[2][:count]
    signs = np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)])
    return np.asarray(centered @ (directions * signs[:, None]).T)
