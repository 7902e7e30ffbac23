"""The picture of the start page: the same model, calibrated without and with the target."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, GREY, ORANGE, save
from sklearn.linear_model import LinearRegression

from lrqr import ConformalRegressor

rng = np.random.default_rng(2)


def outcome(x):
    return np.sin(2 * x) + x + (0.15 + 0.35 * np.clip(x, 0, None) ** 1.5) * rng.normal(size=len(x))


def curve(x):
    return np.column_stack([x, np.sin(2 * x)])


# Most labeled rows have a small x; the model will be used where x is larger and the outcome is noisier.
x_source, x_target, x_test = (
    rng.normal(0.7, 0.6, 1500),
    rng.normal(1.6, 0.5, 1000),
    rng.normal(1.6, 0.5, 4000),
)
y_source, y_test = outcome(x_source), outcome(x_test)
model = LinearRegression()
split = ConformalRegressor(model, method="split").fit(curve(x_source), y_source)
lrqr = ConformalRegressor(model).fit(curve(x_source), y_source, X_target=curve(x_target))


def draw():
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.6), sharey=True, layout="constrained")
    grid = np.linspace(-0.4, 2.6, 300)
    for ax, fitted, color, name in zip(axes, (split, lrqr), (ORANGE, BLUE), ("split", "lrqr"), strict=True):
        lower, upper = fitted.predict_interval(curve(x_test)).T
        covered = np.mean((lower <= y_test) & (y_test <= upper))
        ax.plot(
            x_source[:400], y_source[:400], ".", color=GREY, markersize=3, alpha=0.6, label="source, labeled"
        )
        ax.plot(
            x_test[:300],
            y_test[:300],
            "x",
            color=color,
            markersize=4,
            alpha=0.7,
            label="target, labels unseen",
        )
        ax.fill_between(grid, *fitted.predict_interval(curve(grid)).T, color=color, alpha=0.25, linewidth=0)
        ax.plot(grid, fitted.predict(curve(grid)), color=color)
        ax.set(title=f"--method {name}: covers {covered:.0%}", xlabel="x", xlim=(-0.4, 2.6), ylim=(-3, 7))
        ax.legend(frameon=False, loc="upper left")
    axes[0].set_ylabel("outcome")
    return figure


save("intervals", draw)
