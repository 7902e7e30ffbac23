"""Coverage and length in slices of the target, from the least to the most like the source."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, GREY, ORANGE, save
from sklearn.linear_model import Ridge

from lrqr import ConformalRegressor

rng = np.random.default_rng(1)
SLICES = 6


def rows(n, shift):
    x = rng.normal(size=(n, 3)) + [shift, 0.0, 0.0]
    return x, x[:, 1] + (0.3 + np.abs(x[:, 0])) * rng.normal(size=n)


X, y = rows(3000, 0.0)
X_target, _ = rows(2000, 1.0)
X_test, y_test = rows(6000, 1.0)
models = {
    "split": ConformalRegressor(Ridge(), method="split").fit(X, y),
    "lrqr": ConformalRegressor(Ridge()).fit(X, y, X_target=X_target),
}
order = np.array_split(np.argsort(X_test[:, 0]), SLICES)


def draw():
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.2), layout="constrained")
    left.axhline(90, color=GREY, linestyle="--", linewidth=1)
    for (name, model), color in zip(models.items(), (ORANGE, BLUE), strict=True):
        lower, upper = model.predict_interval(X_test).T
        inside = (lower <= y_test) & (y_test <= upper)
        left.plot(
            range(1, SLICES + 1), [100 * inside[part].mean() for part in order], "o-", color=color, label=name
        )
        right.plot(range(1, SLICES + 1), [(upper - lower)[part].mean() for part in order], "o-", color=color)
    left.set(xlabel="sixth of the target, by the first feature", ylabel="coverage, %")
    right.set(xlabel="sixth of the target, by the first feature", ylabel="mean length", ylim=(0, None))
    left.legend(frameon=False)
    return figure


save("neighborhoods", draw)
