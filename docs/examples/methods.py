"""Every method on the same rows: coverage against mean length, over ten random splits."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from drawing import BLUE, GREY, save

import lrqr

METHODS = ["split", "weighted", "dro-isotonic", "doubly-robust", "conditional", "lrqr"]
rng = np.random.default_rng(0)


def rows(n, shift):
    x = rng.normal(size=(n, 3)) + [shift, 0.0, 0.0]
    table = pd.DataFrame(x, columns=["a", "b", "c"]).assign(prediction=x[:, 1])
    return table.assign(outcome=x[:, 1] + (0.3 + np.abs(x[:, 0])) * rng.normal(size=n))


result = lrqr.compare(
    rows(800, 0.0),
    rows(600, 1.0).drop(columns="outcome"),
    rows(2000, 1.0),
    METHODS,
    splits=5,
    outcome="outcome",
    prediction="prediction",
)
means = result.replace(np.inf, np.nan).groupby("method")[["coverage", "size"]].agg(["mean", "std"])


def draw():
    figure, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
    ax.axvline(90, color=GREY, linestyle="--", linewidth=1)
    for name, row in means.iterrows():
        x, y = 100 * row["coverage", "mean"], row["size", "mean"]
        color = BLUE if name == "lrqr" else GREY
        ax.errorbar(x, y, row["size", "std"], 100 * row["coverage", "std"], fmt="o", color=color)
        ax.annotate(name, (x, y), xytext=(6, 6), textcoords="offset points", color=color)
    ax.set(xlabel="coverage of the target, %", ylabel="mean length")
    return figure


save("methods", draw)
