"""f-divergences, their worst-case levels, worst-case means and plug-in radii.

D_f(Q||P) = E_P f(dQ/dP) with f(1) = 0. Two conventions of chi-square are in use and differ by a factor 2
in the radius, so they have names of their own:

========== ============== =====================================
name       f(t)           used by
========== ============== =====================================
kl         t log t        Ai & Ren (2024), Gui et al. (2024)
chi2       (t-1)²/2       Cauchois et al. (2024)
chi2full   (t-1)²         the code of Ai & Ren
tv         abs(t-1)       Cauchois et al.: twice the total variation
========== ============== =====================================
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import rel_entr

from lrqr.arrays import FloatArray
from lrqr.errors import UsageError
from lrqr.plugins import check_choice

DIVERGENCES = ("kl", "chi2", "chi2full", "tv")

# f(t) = (t-1)² over this number.
_CHI2 = {"chi2": 2.0, "chi2full": 1.0}
_XTOL, _RTOL = 1e-15, 4 * np.finfo(np.float64).eps


def check_divergence(name: str) -> str:
    """Return ``name`` if it is a known divergence."""
    check_choice("divergence", name, DIVERGENCES)
    return name


def check_radius(radius: float) -> float:
    """Return ``radius`` as a float if it is a finite number of at least 0."""
    value = float(radius)
    if not (math.isfinite(value) and value >= 0.0):
        raise UsageError(f"a divergence radius must be a finite number >= 0, got {radius!r}")
    return value


def bernoulli_divergence(z: float, beta: float, divergence: str) -> float:
    """Return D_f(Bernoulli(z) || Bernoulli(beta)) for beta strictly between 0 and 1."""
    if divergence == "kl":
        return float(rel_entr(z, beta) + rel_entr(1.0 - z, 1.0 - beta))
    if divergence == "tv":
        return 2.0 * abs(z - beta)
    return (z - beta) ** 2 / (beta * (1.0 - beta)) / _CHI2[divergence]


def robust_tail(alpha: float, radius: float, divergence: str) -> float:
    """Return 1 - g⁻¹(1-α) without cancellation: it may lie far below 1e-16.

    Parameters
    ----------
    alpha : float
        Wanted miscoverage within the whole ball.
    radius : float
        ρ of the ball, in units of the divergence.
    divergence : str
        One of ``DIVERGENCES``.
    """
    tau = 1.0 - alpha
    if radius == 0.0:
        return alpha
    if divergence == "tv":
        return max(0.0, alpha - radius / 2.0)
    if divergence in _CHI2:
        rho = radius * _CHI2[divergence] / 2.0
        # (α+ρ-√(ρ²+2ρατ))/(1+2ρ), with the difference of large numbers multiplied out
        return alpha**2 / (alpha + rho + math.sqrt(rho**2 + 2.0 * rho * alpha * tau))
    # τ log(τ/β) + α log(α/(1-β)) = ρ in u = -log(1-β): bisection in β would lose all digits near 1
    entropy = -(tau * math.log(tau) + alpha * math.log(alpha))

    def excess(u: float) -> float:
        return alpha * u - tau * math.log(-math.expm1(-u)) - entropy - radius

    lowest, highest = -math.log(alpha), (radius + entropy) / alpha
    if excess(lowest) >= 0.0:  # a radius below rounding
        return alpha
    return math.exp(-float(brentq(excess, lowest, highest * (1.0 + 1e-12), xtol=_XTOL, rtol=_RTOL)))


def robust_level(level: float, radius: float, divergence: str) -> float:
    """Return g⁻¹(level): the nominal level whose worst case within the radius is ``level``.

    Examples
    --------
    >>> round(robust_level(0.9, 0.02, "kl"), 6)
    0.949371
    """
    return 1.0 - robust_tail(1.0 - level, radius, divergence)


def worst_case_mean(risk: FloatArray, radius: float, divergence: str) -> float:
    """Return sup{ mean(w·risk) : w >= 0, mean(w) = 1, mean(f(w)) <= radius }.

    Parameters
    ----------
    risk : (n,) array
        Losses of n equally likely rows.
    radius : float
        ρ, in units of the divergence.
    divergence : str
        One of ``DIVERGENCES``.
    """
    levels, counts = np.unique(risk, return_counts=True)
    masses = counts / len(risk)
    mean, top = float(masses @ levels), float(levels[-1])
    if radius == 0.0 or len(levels) == 1:
        return mean
    if divergence == "tv":
        # the mass ρ/2 moves from the lowest losses to the highest
        left = radius / 2.0 - (np.cumsum(masses[:-1]) - masses[:-1])
        moved = np.clip(left, 0.0, masses[:-1])
        return mean + float(moved @ (top - levels[:-1]))
    # in units of about the range, a power of 2: squares of tiny losses would round to 0, inverses overflow
    unit = math.ldexp(1.0, min(math.frexp(top - float(levels[0]))[1], 1023))
    if divergence == "kl":
        return unit * _kl_mean(levels / unit, masses, radius)
    return unit * _chi2_mean(levels / unit, masses, radius * _CHI2[divergence] / 2.0)


def plug_in_radius(source: FloatArray, target: FloatArray | None, divergence: str) -> float:
    """Estimate D_f(target || source) of the features from likelihood ratios, on any scale.

    Under covariate shift it bounds the divergence of the scores (data processing).

    Parameters
    ----------
    source : (n_s,) array
        Ratios of source rows.
    target : (n_t,) array or None
        Ratios of target rows. KL uses them in the Donsker-Varadhan form
        mean_target log r - log mean_source r; without them it is mean_source r̃ log r̃.
    divergence : str
        One of ``DIVERGENCES``.

    Returns
    -------
    float
        At least 0.
    """
    mean = float(source.mean())
    if mean <= 0.0:
        raise UsageError("all likelihood ratios of the source rows are 0: no radius can be estimated")
    ratio = source / mean
    if divergence == "kl":
        if target is None:
            estimate = float(rel_entr(ratio, 1.0).mean())
        else:
            estimate = float(np.log(np.maximum(target, np.finfo(np.float64).tiny)).mean() - math.log(mean))
    elif divergence == "tv":
        estimate = float(np.abs(ratio - 1.0).mean())
    else:
        estimate = float(np.square(ratio - 1.0).mean()) / _CHI2[divergence]
    return max(0.0, estimate)


def _kl_mean(levels: FloatArray, masses: FloatArray, radius: float) -> float:
    """Tilt the masses by exp(t·risk) until their KL divergence is the radius."""
    top = float(levels[-1])
    if radius >= -math.log(masses[-1]):
        return top
    below = levels - top

    def tilted(t: float) -> tuple[float, float]:
        weight = masses * np.exp(t * below)
        total = float(weight.sum())
        slope = float(weight @ below) / total
        return t * slope - math.log(total), slope

    if tilted(0.0)[0] >= radius:  # a radius below the rounding of the masses' sum
        return float(masses @ levels)
    high = 1.0 / -float(below[0])
    while tilted(high)[0] < radius:
        high *= 2.0
    t = float(brentq(lambda t: tilted(t)[0] - radius, 0.0, high, xtol=_XTOL * high, rtol=_RTOL))
    return top + tilted(t)[1]


def _chi2_mean(levels: FloatArray, masses: FloatArray, rho: float) -> float:
    """Solve for the η with w = (risk-η)₊ / mean (risk-η)₊ and mean w² = 1 + 2ρ."""
    if 1.0 + 2.0 * rho >= 1.0 / masses[-1]:
        return float(levels[-1])
    mean = float(masses @ levels)
    if rho == 0.0:  # half of the smallest number there is
        return mean
    spread = math.sqrt(float(masses @ np.square(levels - mean)))
    if mean - spread / math.sqrt(2.0 * rho) <= levels[0]:
        return mean + math.sqrt(2.0 * rho) * spread

    def weights(eta: float) -> FloatArray:
        excess = np.maximum(levels - eta, 0.0)
        scaled: FloatArray = excess / float(masses @ excess)
        return scaled

    def too_far(eta: float) -> float:
        return float(masses @ np.square(weights(eta))) - 1.0 - 2.0 * rho

    # above the second highest level only the highest has weight, which is too much
    eta = float(brentq(too_far, levels[0], levels[-2], xtol=_XTOL, rtol=_RTOL))
    return float((masses * weights(eta)) @ levels)
