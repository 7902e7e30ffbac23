"""Sets of classes: how many classes are in the set of each point of the plane."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from drawing import save
from sklearn.linear_model import LogisticRegression

from lrqr import ConformalClassifier

rng = np.random.default_rng(0)
CENTERS = np.array([[0.0, 0.0], [2.2, 0.0], [1.1, 1.9]])


def rows(n, tilt):
    label = rng.choice(3, n, p=tilt)
    return CENTERS[label] + rng.normal(size=(n, 2)) * 0.8, label


X, y = rows(1500, [0.6, 0.2, 0.2])
X_target, _ = rows(1000, [0.2, 0.4, 0.4])
model = ConformalClassifier(LogisticRegression()).fit(X, y, X_target=X_target)


def draw():
    figure, ax = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
    a, b = np.meshgrid(np.linspace(-2, 4.5, 200), np.linspace(-2, 4, 200))
    size = model.predict_set(np.column_stack([a.ravel(), b.ravel()])).sum(axis=1).reshape(a.shape)
    filled = ax.contourf(a, b, size, levels=[-0.5, 0.5, 1.5, 2.5, 3.5], cmap="Blues", vmin=-1, vmax=4)
    for label, marker in enumerate("osD"):
        chosen = X[y == label][:80]
        ax.plot(*chosen.T, marker, markersize=3, color="#444444", alpha=0.6, label=f"class {label}")
    bar = figure.colorbar(filled, ax=ax, ticks=[0, 1, 2, 3])
    bar.set_label("classes in the set")
    ax.set(xlabel="a", ylabel="b", xlim=(-2, 4.5), ylim=(-2, 4))
    return figure


save("sets", draw)
