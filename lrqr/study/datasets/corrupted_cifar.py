"""CIFAR-10 test images under common corruptions, seen by a pretrained ResNet-56.

The protocol of section 5.3 of arXiv:2502.13030 (one domain held out as the target) on real images and a real
network, in place of RxRx1, and mixtures of clean and corrupted images.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from lrqr.study.datasets import DataFile, Rows, ShiftData, check_shift, leave_one_out, locate, softmax

if TYPE_CHECKING:
    from lrqr.arrays import BoolArray, IntArray

TITLE = "CIFAR-10 test images, clean and corrupted: last-layer features and logits of a ResNet-56"
SOURCE = "Krizhevsky (2009); corruptions of Hendrycks and Dietterich (2019); network of Idelbayev (2018)"
LICENSE = "network BSD-2-Clause; CIFAR-10 states none and is distributed freely for research"
FILES = (
    DataFile(
        "cifar10_resnet56.npz", "9e43b62341ac3f167c37d294efeb428c821b0c800fcd216198e94596a96bcf9b", 2730080
    ),
)
DOMAINS = (
    "clean",
    "gaussian-noise",
    "shot-noise",
    "gaussian-blur",
    "brightness",
    "contrast",
    "pixelate",
    "jpeg",
)
MIXTURES = {"mixture-mild": (0.3, 0.6), "mixture-strong": (0.2, 0.8)}
SHIFTS = (*DOMAINS, *MIXTURES)


@cache
def table() -> tuple[Rows, IntArray, tuple[str, ...]]:
    """Return the 10000 images (features, class, probabilities), their domain and the names of the classes."""
    with np.load(locate(FILES[0]), allow_pickle=False) as arrays:
        rows = Rows(
            arrays["features"].astype(np.float64),
            arrays["label"].astype(np.int64),
            softmax(arrays["logits"]),
        )
        names = tuple(str(name).replace("_", "-") for name in arrays["domain_names"])
        order = np.array([DOMAINS.index(name) for name in names])
        return rows, order[arrays["domain"]], tuple(str(name) for name in arrays["class_names"])


def split(shift: str, *, seed: int, source_rows: int = 2000, target_rows: int = 500) -> ShiftData:
    """Draw one random split.

    Parameters
    ----------
    shift : one of SHIFTS
        A domain: it is the target, the other seven domains are the source. ``mixture-strong``: 20 % of the
        source images and 80 % of the target images are corrupted (``mixture-mild``: 30 % and 60 %), so that
        source and target overlap and the likelihood ratio is bounded.
    seed : int
    source_rows : int
        Calibration images; 0 takes all.
    target_rows : int
        Unlabeled target images, and as many test images; 0 takes all (leave-one-out only).
    """
    check_shift(shift, SHIFTS, "corrupted-cifar")
    rows, domain, classes = table()
    if shift in DOMAINS:
        parts = leave_one_out(
            rows, domain, DOMAINS.index(shift), seed=seed, limits=(source_rows, target_rows)
        )
    else:
        parts = _mixture(rows, domain > 0, MIXTURES[shift], seed, (source_rows or 2000, target_rows or 500))
    source, target, test = parts
    names = tuple(f"f{index}" for index in range(rows.features.shape[1]))
    return ShiftData(shift, names, source, target, test, classes=classes)


def _mixture(
    rows: Rows, corrupted: BoolArray, shares: tuple[float, float], seed: int, sizes: tuple[int, int]
) -> tuple[Rows, Rows, Rows]:
    """Draw disjoint parts in which the given share of the images (source, target) is corrupted.

    The source parts with probability share and 1 - share and the target's alike, so the true ratio is
    ``share_target / share_source`` for a corrupted image and its complement for a clean one.
    """
    rng = np.random.default_rng(seed)
    pools = [rng.permutation(np.flatnonzero(~corrupted)), rng.permutation(np.flatnonzero(corrupted))]
    ratio = np.where(corrupted, shares[1] / shares[0], (1 - shares[1]) / (1 - shares[0]))
    known = Rows(rows.features, rows.outcome, rows.prediction, ratio)
    taken = [0, 0]
    parts = []
    for size, share in ((sizes[0], shares[0]), (sizes[1], shares[1]), (sizes[1], shares[1])):
        counts = [size - round(size * share), round(size * share)]
        index = [pool[start : start + count] for pool, start, count in zip(pools, taken, counts, strict=True)]
        taken = [start + count for start, count in zip(taken, counts, strict=True)]
        parts.append(known.take(rng.permutation(np.concatenate(index))))
    return parts[0], parts[1].unlabeled(), parts[2]
