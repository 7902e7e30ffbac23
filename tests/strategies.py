"""Problems of every kind, for the tests that state laws."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import rel_entr

from lrqr.solvers.problem import Problem
from lrqr.stats.moments import Moments


def make_problem(
    seed: int,
    n: int,
    d: int,
    *,
    regularization: float,
    ridge: float,
    coverage: float = 0.9,
    shift: float = 1.0,
    scores: str = "normal",
) -> Problem:
    """A random problem with unlabeled source = labeled source, and n target rows shifted by ``shift``."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    target = rng.normal(size=(n, d)) + shift * rng.normal(size=d) / np.sqrt(d)
    noise = rng.normal(size=n)
    y = {
        "normal": np.abs(noise) * (1.0 + 0.5 * np.tanh(X[:, 0])),
        "ties": np.round(2.0 * np.abs(noise)),
        "binary": (noise > 0.5).astype(float),
        "wide": 10.0 ** rng.uniform(-4.0, 4.0, n),
        "equal": np.ones(n),
    }[scores]
    return Problem(
        features=np.hstack([np.ones((n, 1)), X]),
        scores=y,
        second_moment=Moments.of(X).augmented_second(ridge),
        target_mean=Moments.of(target).augmented_mean(),
        coverage=coverage,
        regularization=regularization,
    )


@st.composite
def problems(draw: Any, *, most_rows: int = 150, most_features: int = 20) -> Problem:
    """Problems over d, n, λ from 0.01 to 10, ridge from 0 to 1."""
    d = draw(st.integers(1, most_features))
    n = draw(st.integers(max(20, 2 * d), most_rows))
    return make_problem(
        draw(st.integers(0, 10_000)),
        n,
        d,
        regularization=10.0 ** draw(st.floats(-2.0, 1.0)),
        ridge=draw(st.sampled_from([0.0, 0.1, 1.0])),
        coverage=draw(st.sampled_from([0.5, 0.8, 0.9, 0.95])),
        shift=draw(st.floats(0.0, 2.0)),
    )


@st.composite
def corners(draw: Any) -> Problem:
    """Where it hurts: tiny λ and ridge, near-disjoint supports, d near or above n, ties, wide scores."""
    d = draw(st.integers(1, 40))
    return make_problem(
        draw(st.integers(0, 10_000)),
        draw(st.integers(2, 60)),
        d,
        regularization=10.0 ** draw(st.floats(-7.0, 1.5)),
        ridge=10.0 ** draw(st.floats(-6.0, 1.0)),
        coverage=draw(st.sampled_from([0.5, 0.9, 0.99])),
        shift=draw(st.sampled_from([0.0, 1.0, 10.0])),
        scores=draw(st.sampled_from(["normal", "ties", "binary", "wide", "equal"])),
    )


def permuted(problem: Problem, seed: int = 0) -> Problem:
    """The same problem with its labeled rows in another order."""
    order = np.random.default_rng(seed).permutation(len(problem.scores))
    return replace(problem, features=problem.features[order], scores=problem.scores[order])


def worst_case_probability(beta: float, radius: float, divergence: str) -> float:
    """Return g(β), the smallest probability, within the radius, of an event of nominal probability β.

    g(β) = inf{z : D_f(Bernoulli(z) || Bernoulli(β)) <= ρ} (Cauchois, Gupta, Ali, Duchi 2024), of which
    ``robust_level`` is the inverse. Their closed form for chi-square belongs to (t-1)²/2, not to the (t-1)²
    beside which it is printed.
    """
    if beta in {0.0, 1.0} or radius == 0.0:
        return beta
    if divergence == "kl":
        if -math.log1p(-beta) <= radius:
            return 0.0
        return float(
            brentq(
                lambda z: rel_entr(z, beta) + rel_entr(1.0 - z, 1.0 - beta) - radius, 0.0, beta, xtol=1e-15
            )
        )
    variance = beta * (1.0 - beta)
    reach = {
        "tv": radius / 2.0,
        "chi2": math.sqrt(2.0 * radius * variance),
        "chi2full": math.sqrt(radius * variance),
    }
    return max(0.0, beta - reach[divergence])
