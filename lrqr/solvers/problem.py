"""The LR-QR problem: pinball loss plus likelihood-ratio regularizer, its dual, and its whitened form.

Equation numbers refer to docs/method.md.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import linalg

from lrqr.arrays import FloatArray
from lrqr.errors import DataError, UsageError

# Relative eigenvalue below which a direction of Σ (scaled to unit diagonal) counts as absent.
_RANK_TOLERANCE = 1e-12
# Relative length outside the range of Σ that rounding alone may give a vector that lies in it.
_RANGE_TOLERANCE = 1e-7


def pinball(residuals: FloatArray, coverage: float) -> float:
    """Mean of max(coverage · u, -(1 - coverage) · u), eq. (1)."""
    return float(np.maximum(coverage * residuals, (coverage - 1.0) * residuals).mean())


def best_multiple(scores: FloatArray, direction: FloatArray, coverage: float) -> float:
    """Return the t that minimizes Σρ(S - t q): a weighted quantile of S/q with weights |q|, eq. (13)."""
    used = np.abs(direction) > 1e-12 * np.abs(direction).max(initial=0.0)
    if not used.any():
        return 0.0
    breaks, weights = scores[used] / direction[used], np.abs(direction[used])
    order = np.argsort(breaks, kind="stable")
    slopes = np.cumsum(weights[order]) - np.where(direction[used] > 0, coverage, 1.0 - coverage) @ weights
    return float(breaks[order][min(int(np.searchsorted(slopes, 0.0)), len(order) - 1)])


@dataclass(frozen=True)
class Whitened:
    """LR-QR with Σ = I: min over v, β of mean ρ(S - ψ·v) + λ (β²‖v‖² - 2β c·v), eq. (7).

    Attributes
    ----------
    psi : ndarray of shape (n, k)
        ψ = L⁻¹φ.
    scores : ndarray of shape (n,)
    pull : ndarray of shape (k,)
        c = L⁻¹m: coefficients of the least-squares likelihood ratio r̂ = ψ·c.
    back : ndarray of shape (p, k)
        γ = back @ v.
    coverage : float
    """

    psi: FloatArray
    scores: FloatArray
    pull: FloatArray
    back: FloatArray
    coverage: float


@dataclass(frozen=True)
class Problem:
    """F(γ, β) = Ê1[ℓ(γ·φ, S)] + λ (β² γ'Σγ - 2β m·γ), eq. (2).

    Parameters
    ----------
    features : ndarray of shape (n, p)
        φ of the labeled source rows, the constant 1 first.
    scores : ndarray of shape (n,)
        S, one score per labeled row.
    second_moment : ndarray of shape (p, p)
        Σ = mean of φφ' over unlabeled source rows, plus ridge · diag(0, 1, .., 1).
    target_mean : ndarray of shape (p,)
        m = mean of φ over unlabeled target rows.
    coverage : float
        1 - α.
    regularization : float
        λ >= 0, in score units.
    """

    features: FloatArray
    scores: FloatArray
    second_moment: FloatArray
    target_mean: FloatArray
    coverage: float
    regularization: float

    def __post_init__(self) -> None:
        n, p = self.features.shape
        if n < 1 or p < 1:
            raise DataError(f"the problem needs at least one labeled row and one feature, got shape {(n, p)}")
        if self.scores.shape != (n,) or self.target_mean.shape != (p,) or self.second_moment.shape != (p, p):
            raise DataError(
                f"shapes do not fit: features {self.features.shape}, scores {self.scores.shape}, "
                f"second_moment {self.second_moment.shape}, target_mean {self.target_mean.shape}"
            )
        for name in ("features", "scores", "second_moment", "target_mean"):
            if not np.isfinite(getattr(self, name)).all():
                raise DataError(f"{name} of the problem holds NaN or infinity")
        if not 0.0 < self.coverage < 1.0:
            raise UsageError(f"coverage must lie strictly between 0 and 1, got {self.coverage}")
        if not 0.0 <= self.regularization < np.inf:
            raise UsageError(f"regularization must be a finite number >= 0, got {self.regularization}")

    def with_regularization(self, regularization: float) -> Self:
        """Return the same problem with another λ."""
        if not 0.0 <= regularization < np.inf:
            raise UsageError(f"regularization must be a finite number >= 0, got {regularization}")
        # The arrays were checked once; a path of λ would check them again and again.
        other = copy(self)
        object.__setattr__(other, "regularization", float(regularization))
        return other

    def loss(self, gamma: FloatArray) -> float:
        """Ê1[ℓ(γ·φ, S)], eq. (1)."""
        return pinball(self.scores - self.features @ gamma, self.coverage)

    def objective(self, gamma: FloatArray, beta: float) -> float:
        """F(γ, β), eq. (2)."""
        quadratic = float(gamma @ self.second_moment @ gamma)
        linear = float(self.target_mean @ gamma)
        return self.loss(gamma) + self.regularization * (beta * beta * quadratic - 2.0 * beta * linear)

    def losses(self, gammas: FloatArray) -> FloatArray:
        """Ê1[ℓ(γ·φ, S)] of several γ (m, p), shape (m,); one product with the features for all."""
        return np.array([pinball(row, self.coverage) for row in self.scores - gammas @ self.features.T])

    def objectives(
        self, gammas: FloatArray, betas: Sequence[float], regularizations: Sequence[float]
    ) -> FloatArray:
        """F(γ, β) of several γ (m, p), each with its own β and λ, shape (m,), eq. (2)."""
        quadratic = ((gammas @ self.second_moment) * gammas).sum(axis=1)
        beta = np.asarray(betas)
        penalty = beta * beta * quadratic - 2.0 * beta * (gammas @ self.target_mean)
        return np.asarray(self.losses(gammas) + np.asarray(regularizations) * penalty)

    def multipliers(self, gamma: FloatArray) -> FloatArray:
        """Subgradient of the pinball loss in each residual, shape (n,); the mid-value at ties."""
        residuals = self.scores - self.features @ gamma
        return np.where(
            residuals > 0, self.coverage, np.where(residuals < 0, self.coverage - 1.0, self.coverage - 0.5)
        )

    def gradient(self, gamma: FloatArray, beta: float, multipliers: FloatArray | None = None) -> FloatArray:
        """Gradient of F in γ for given dual values of the rows, shape (p,), eq. (3)."""
        a = self.multipliers(gamma) if multipliers is None else multipliers
        smooth = 2.0 * self.regularization * beta * (beta * (self.second_moment @ gamma) - self.target_mean)
        return smooth - self.features.T @ a / len(a)

    def gradient_beta(self, gamma: FloatArray, beta: float) -> float:
        """Gradient of F in β, eq. (4)."""
        quadratic = float(gamma @ self.second_moment @ gamma)
        return 2.0 * self.regularization * (beta * quadratic - float(self.target_mean @ gamma))

    def best_beta(self, gamma: FloatArray) -> float:
        """Return the β that minimizes F for this γ, m·γ / γ'Σγ; 0 where every β is as good, eq. (5)."""
        quadratic = float(gamma @ self.second_moment @ gamma)
        return float(self.target_mean @ gamma) / quadratic if quadratic > 0.0 else 0.0

    def dual_value(self, multipliers: FloatArray, beta: float) -> float:
        """D(a) <= min over γ of F(γ, β), for any a in [-α, 1-α]^n, eq. (9).

        Needs λ > 0, β ≠ 0 and a regular Σ; -inf otherwise unless Φ'a = 0.
        """
        n = len(self.scores)
        strength = self.regularization * beta * beta
        pull = self.features.T @ multipliers / n + 2.0 * self.regularization * beta * self.target_mean
        value = float(multipliers @ self.scores) / n
        if not pull.any():
            return value
        if strength <= 0.0:
            return -np.inf
        try:
            factor = linalg.cho_factor(self.second_moment)
        except linalg.LinAlgError:
            return -np.inf
        return value - float(pull @ linalg.cho_solve(factor, pull)) / (4.0 * strength)

    def gap(self, gamma: FloatArray, beta: float, multipliers: FloatArray) -> float:
        """F(γ, β) - D(a): an upper bound on how far γ is from optimal at this β, eq. (10)."""
        return self.objective(gamma, beta) - self.dual_value(multipliers, beta)

    def whiten(self) -> Whitened:
        """Return the problem in coordinates in which Σ is the identity, eq. (6).

        Raises
        ------
        UsageError
            If Σ is singular and F unbounded below, or blind to a direction in which labeled rows vary.
        """
        second_moment, n = self.second_moment, len(self.scores)
        if self.regularization == 0.0:
            # Without a regularizer only the labeled rows say what can be told apart.
            second_moment = self.features.T @ self.features / n
        scale = np.sqrt(np.diag(second_moment))
        scale = np.where(scale > 0.0, scale, 1.0)
        sigma = second_moment / np.outer(scale, scale)
        mean = self.target_mean / scale
        back = _factor(sigma)
        triangular = back is not None
        if back is None:
            values, vectors = np.linalg.eigh(sigma)
            kept = values > _RANK_TOLERANCE * values[-1]
            basis = vectors[:, kept]
            if self.regularization > 0.0:
                self._require_range(mean - basis @ (basis.T @ mean), mean, scale, basis)
            back = basis / np.sqrt(values[kept])
        back = back / scale[:, None]
        return Whitened(
            psi=_times_upper(self.features, back) if triangular else self.features @ back,
            scores=self.scores,
            pull=back.T @ self.target_mean,
            back=back,
            coverage=self.coverage,
        )

    def _require_range(
        self, outside: FloatArray, mean: FloatArray, scale: FloatArray, basis: FloatArray
    ) -> None:
        if np.linalg.norm(outside) > _RANGE_TOLERANCE * np.linalg.norm(mean):
            raise UsageError(
                "the LR-QR problem is unbounded below: the target mean lies in a direction in which the "
                "source does not vary at all (fewer source rows than features, or collinear or constant "
                "columns) and the ridge is 0; set ridge > 0"
            )
        rows = self.features / scale
        blind = rows - (rows @ basis) @ basis.T
        if np.linalg.norm(blind) > _RANGE_TOLERANCE * np.linalg.norm(rows):
            raise UsageError(
                "the labeled rows vary in a direction in which the unlabeled source rows do not, so nothing "
                "regularizes it; set ridge > 0 or give more source rows"
            )


def _times_upper(rows: FloatArray, upper: FloatArray) -> FloatArray:
    """Return rows @ upper for an upper triangular matrix, at half the cost."""
    product = linalg.blas.dtrmm(1.0, upper, rows.T, trans_a=1)
    return np.ascontiguousarray(product.T, dtype=np.float64)


def _factor(sigma: FloatArray) -> FloatArray | None:
    """L^-T of Σ = LL' (unit diagonal), or None if Σ is numerically singular."""
    try:
        lower = np.linalg.cholesky(sigma)
    except np.linalg.LinAlgError:
        return None
    if np.diag(lower).min() ** 2 < len(sigma) * _RANK_TOLERANCE:
        return None
    inverse, _ = linalg.lapack.dtrtri(lower, lower=1)
    return np.asarray(inverse.T, dtype=np.float64)


@dataclass(frozen=True)
class Solution:
    """What a solver returns.

    Attributes
    ----------
    coef : ndarray of shape (p,)
        γ, the constant's coefficient first.
    beta : float
    objective : float
        F(γ, β) in score units.
    gap : float
        Upper bound on F(γ, β) - min over γ of F(., β), eq. (10).
    iterations : int
        Linear systems solved.
    converged : bool
        Whether the gap met the tolerance and β is stationary.
    branch : str
        Where the winning start came from: "infinity" (λ = ∞), "zero" (λ = 0), or "grid" (a coarse grid of β).
    regularization : float
        The λ that was solved for.
    multipliers : ndarray of shape (n,)
        The dual point that certifies the gap.
    """

    coef: FloatArray
    beta: float
    objective: float
    gap: float
    iterations: int
    converged: bool
    branch: str
    regularization: float
    multipliers: FloatArray
