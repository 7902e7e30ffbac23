"""Whether predictions are alike in source and target, and whether they fit the outcome at all."""

import numpy as np
from scipy.stats import ks_2samp

from lrqr.arrays import FloatArray

# Chance of calling predictions different that are not: small, for what is said then is a hard word.
_SURPRISE = 1e-3
_FAR = 30.0  # spreads of the source: no shift within reach is as large
_WORSE = 1.2  # a model that has learned nothing may err a little more than a constant
_ERRORS = 4.0  # standard errors


def differing(source: FloatArray, target: FloatArray, *, alike: bool) -> str:
    """Say how predictions of target rows differ from those of source rows as no shift of features explains.

    Parameters
    ----------
    source, target : (n, k), (m, k) arrays
    alike : bool
        Whether the features look alike: then any difference is one that they do not explain. Otherwise only
        one by orders of magnitude is.

    Returns
    -------
    str
        Empty if there is none.
    """
    if source.shape[1] != target.shape[1] or not min(len(source), len(target)):
        return ""
    for own, other in zip(source.T, target.T, strict=True):
        chance = ks_2samp(own, other, method="asymp").pvalue * source.shape[1]
        if chance <= _SURPRISE and (alike or _far(own, other)):
            found = [f"mean {x.mean():.4g}, standard deviation {x.std():.3g}" for x in (own, other)]
            looks = "The features look alike, but the" if alike else "The"
            return (
                f"{looks} predictions differ ({found[0]} in the source; {found[1]} in the target): another "
                "model or another unit? "
                "Nothing can be promised before the same model, in the same unit, has predicted both."
            )
    return ""


def _far(own: FloatArray, other: FloatArray) -> bool:
    """Return whether two samples lie, or spread, apart by orders of magnitude."""
    spreads = np.array([np.subtract(*np.quantile(x, [0.75, 0.25])) for x in (own, other)])
    apart = abs(float(np.median(other) - np.median(own)))
    return bool(apart > _FAR * spreads[0] or spreads.max() > _FAR * spreads.min())


def worse_than_a_constant(prediction: FloatArray, outcome: FloatArray) -> str:
    """Say that predictions (n, k) fit the outcomes (n,) worse than a constant; empty if they do not.

    Numbers are judged by absolute errors against the median and squared ones against the mean (of several
    columns by their mean), class indices by the probability of the right class against its frequency.
    """
    if len(outcome) < 2:
        return ""
    if np.issubdtype(outcome.dtype, np.integer):
        frequency = np.bincount(outcome, minlength=prediction.shape[1]) / len(outcome)
        own, constant = 1.0 - prediction[np.arange(len(outcome)), outcome], 1.0 - frequency[outcome]
        what = "the probabilities of the right class are lower than the classes' frequencies"
        remedy = "do the columns belong to these classes?"
    else:
        center = prediction.mean(axis=1)
        if np.square(outcome - center).mean() <= outcome.var() or len(np.unique(outcome)) == 2:
            return ""  # of two values another word is said: that they may be classes
        own, constant = np.abs(outcome - center), np.abs(outcome - np.median(outcome))
        what = "the predictions are farther from the outcome than its median is"
        remedy = "another unit, another column, a logarithm?"
    # by the mean, or, where a few outcomes are huge, by the count
    for excess in (own - _WORSE * constant, np.sign(own - constant)):
        if own.mean() > constant.mean() and excess.mean() > _ERRORS * excess.std() / np.sqrt(len(excess)):
            break
    else:
        return ""
    return f"{what} (mean error {own.mean():.4g} against {constant.mean():.4g}): {remedy}"
