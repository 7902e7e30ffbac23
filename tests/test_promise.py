"""What a fit promises: certified by fits that have not seen the row, and said alike by every command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from commands import lrqr

from lrqr.calibrate.offset import FOLDS, Evidence
from lrqr.calibrate.threshold import ThresholdModel
from lrqr.methods.split import SplitConformal

if TYPE_CHECKING:
    from pathlib import Path

NUMBERS = ["lower_bound", "confidence", "sensitivity", "at_least", "pareto_k", "effective_size"]


def rows(n: int, mean: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(mean, 1.0, size=(n, 2))
    return X, np.abs(np.exp(0.6 * X[:, 0]) * rng.normal(size=n))


@pytest.mark.parametrize(
    ("method", "feature_map"), [("lrqr", "learned"), ("lrqr", "given"), ("weighted", "given")]
)
def test_shuffled_rows_have_the_same_certificate(method: str, feature_map: str) -> None:
    X, y = rows(240, 0.0, 0)
    target, _ = rows(120, 0.7, 1)
    order, other = np.random.default_rng(2).permutation(240), np.random.default_rng(3).permutation(120)
    model = ThresholdModel(method, feature_map=feature_map)
    one = model.fit(X, y, X_target=target, certify=True).certificate_
    assert one == model.fit(X[order], y[order], X_target=target[other], certify=True).certificate_


class Watched(SplitConformal):
    """Remembers which rows it was fitted on and asked for."""

    seen: ClassVar[list[np.ndarray]] = []

    def fit(self, X: Any, y: Any, **samples: Any) -> Watched:
        self.seen.append(X[:, 0])
        return super().fit(X, y, **samples)

    def predict(self, X: Any, *, ratio: Any = None) -> np.ndarray:
        self.seen.append(X[:, 0])
        return super().predict(X, ratio=ratio)


def test_each_row_is_judged_once_and_by_other_rows() -> None:
    X, y = rows(103, 0.0, 0)
    flat = np.zeros((103, 1))
    evidence = Evidence(Watched(), X, y, np.ones(103), flat, flat, {}, lifted=False)
    Watched.seen.clear()
    found = evidence.thresholds(0.9)
    fitted, asked = Watched.seen[::2], Watched.seen[1::2]
    assert len(fitted) == FOLDS
    assert all(sorted([*one, *other]) == sorted(X[:, 0]) for one, other in zip(fitted, asked, strict=True))
    assert sorted(np.concatenate(asked)) == sorted(X[:, 0])
    assert len(found) == 103


def test_a_threshold_that_ignores_the_shift_is_found_out() -> None:
    """Of two methods on the same rows the bound is lower for the one that covers less."""
    X, y = rows(1500, 0.0, 0)
    target, of_target = rows(1500, 1.0, 1)
    found = {}
    for method in ("split", "weighted"):
        model = ThresholdModel(method).fit(X, y, X_target=target, certify=True)
        found[method] = model.certificate_.lower_bound
        assert found[method] <= np.mean(of_target <= model.predict(target))
    assert found["split"] < found["weighted"] - 0.05


def write(folder: Path) -> list[Path]:
    paths = []
    for name, n, mean in (("source", 300, 0.0), ("target", 150, 0.6), ("test", 150, 0.6)):
        X, y = rows(n, mean, len(name) + n)
        frame = pd.DataFrame({"x0": X[:, 0], "x1": X[:, 1], "yhat": 0.0, "y": y})
        paths.append(folder / f"{name}.csv")
        (frame.drop(columns="y") if name == "target" else frame).to_csv(paths[-1], index=False)
    return paths


def test_every_command_says_the_same(tmp_path: Path) -> None:
    source, target, test = write(tmp_path)
    columns = ("--outcome", "y", "--prediction", "yhat")
    said = lrqr("fit", source, target, *columns, "--at-least", "0.8", "-o", tmp_path / "model").err
    model = tmp_path / "model"
    found = lrqr("inspect", model, "--format", "json").json["certificate"]
    assert set(NUMBERS) <= found.keys()
    assert found["at_least"] == 0.8
    assert 0.5 < found["lower_bound"] < 0.9
    judged = lrqr("evaluate", model, test, "--format", "json", "--report", tmp_path / "r.html")
    assert judged.json["certificate"] == found
    assert lrqr("diagnose", source, target, "--model", model, "--format", "json").json["certificate"] == found
    bound = f"95 % sure: at least {100 * found['lower_bound']:.1f} % of the target is covered"
    texts = [said, lrqr("inspect", model).out, lrqr("evaluate", model, test).out]
    texts += [lrqr("diagnose", source, target, "--model", model).out, (tmp_path / "r.html").read_text()]
    assert all(bound in " ".join(text.split()) for text in texts)
    assert all("at least 80 %" in " ".join(text.split()) for text in texts)


def test_a_floor_above_the_promise_is_refused(tmp_path: Path) -> None:
    source, target, _ = write(tmp_path)
    refused = lrqr(
        "fit",
        source,
        target,
        "--outcome",
        "y",
        "--prediction",
        "yhat",
        "--at-least",
        "0.95",
        "-o",
        tmp_path / "m",
    )
    assert refused.code == 2
    assert "--at-least 0.95 is above the promised coverage 0.9" in refused.err
