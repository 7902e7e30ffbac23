"""CIFAR-10 test images under common corruptions, seen by a pretrained ResNet-56.

The protocol of section 5.3 of arXiv:2502.13030 (one domain held out as the target) on real images and a real
network, in place of RxRx1, and mixtures of clean and corrupted images.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import softmax

from lrqr.study.datasets import DataFile, Rows, ShiftData, check_shift, leave_one_out, locate

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
            softmax(arrays["logits"].astype(np.float64), axis=1),
        )
        names = tuple(str(name).replace("_", "-") for name in arrays["domain_names"])
        order = np.array([DOMAINS.index(name) for name in names])
        return rows, order[arrays["domain"]], tuple(str(name) for name in arrays["class_names"])


def split(
    shift: str,
    *,
    seed: int,
    source_rows: int = 2000,
    target_rows: int = 500,
    test_rows: int = 0,
    exact: bool = True,
) -> ShiftData:
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
        Unlabeled target images; 0 takes all (leave-one-out only).
    test_rows : int
        Test images of a mixture; 0 is as many as ``target_rows``.
    exact : bool
        Whether a mixture holds exactly the stated share of corrupted images, or each image is corrupted with
        that probability, independently of the others.
    """
    check_shift(shift, SHIFTS, "corrupted-cifar")
    rows, domain, classes = table()
    if shift in DOMAINS:
        limits = (source_rows, target_rows)
        parts = leave_one_out(domain, DOMAINS.index(shift), seed=seed, limits=limits)
    else:
        low, high = MIXTURES[shift]
        ratio = np.where(domain > 0, high / low, (1 - high) / (1 - low))
        rows = replace(rows, ratio=ratio)
        sizes = (source_rows or 2000, target_rows or 500, test_rows or target_rows or 500)
        parts = _mixture(domain > 0, (low, high), sizes, exact, np.random.default_rng(seed))
    names = tuple(f"f{index}" for index in range(rows.features.shape[1]))
    return ShiftData.dealt(shift, names, rows, *parts, classes=classes)


def _mixture(
    corrupted: BoolArray,
    shares: tuple[float, float],
    sizes: tuple[int, int, int],
    exact: bool,
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray, IntArray]:
    """Draw disjoint source, target and test rows with the given shares of corrupted images.

    The true ratio is ``share_target / share_source`` for a corrupted image and that of the complements for a
    clean one.
    """
    pools = [rng.permutation(np.flatnonzero(corrupted == value)) for value in (False, True)]
    drawn = sizes if exact else (sizes[0], sizes[1] + sizes[2])
    parts = []
    for position, size in enumerate(drawn):
        share = shares[min(position, 1)]
        count = round(size * share) if exact else int(rng.binomial(size, share))
        taken = [pools[0][: size - count], pools[1][:count]]
        pools = [pools[0][size - count :], pools[1][count:]]
        parts.append(rng.permutation(np.concatenate(taken)))
    source, target, test = parts if exact else (parts[0], *np.split(parts[1], [sizes[1]]))
    return source, target, test
