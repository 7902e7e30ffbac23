"""What a fit promises: certified by fits that have not seen the row, and said alike by every command."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from commands import lrqr
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LogisticRegression

from lrqr import ConformalClassifier, ConformalRegressor
from lrqr.calibrate.calibrate import Options, calibrate
from lrqr.calibrate.offset import FOLDS, Evidence
from lrqr.calibrate.rows import Rows
from lrqr.calibrate.threshold import ThresholdModel
from lrqr.errors import LrqrWarning
from lrqr.methods.split import SplitConformal

if TYPE_CHECKING:
    from pathlib import Path

# The default, with all its models, is fitted in test_recorded.py.
pytestmark = pytest.mark.usefixtures("small_map")

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
    one = model.fit(X, y, X_target=target, certify=True).certify().certificate_
    two = model.fit(X[order], y[order], X_target=target[other], certify=True).certify().certificate_
    assert one == two


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
    evidence = Evidence(Watched(), X, y, np.ones(103), flat, flat, {})
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
        model = ThresholdModel(method).fit(X, y, X_target=target, certify=True).certify()
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
    assert [text for text in texts if bound not in " ".join(text.split())] == []
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


def little(n: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Source rows and scores, and target rows of which hardly any source row is like."""
    X, y = rows(n, 0.0, 0)
    return X, y, rows(150, 3.5, 1)[0]


@pytest.mark.parametrize("feature_map", ["auto", "learned", "constant"])
def test_without_overlap_no_threshold_is_below_that_of_split(feature_map: Any) -> None:
    X, y, target = little()
    floor = float(SplitConformal(0.9).fit(X, y).predict(X[:1])[0])
    source, unlabeled = Rows(X, y, np.empty((300, 0))), Rows(target)
    options = Options("precomputed", feature_map=feature_map, levels=(0.5,))
    found = calibrate(source, unlabeled, options)
    assert found.floor_ == floor
    assert found.predict(target).min() >= floor
    assert found.at(0.5).predict(target).min() >= float(SplitConformal(0.5).fit(X, y).predict(X[:1])[0])
    near = calibrate(source, Rows(rows(150, 0.4, 2)[0]), options)
    assert near.floor_ is None
    assert (
        ThresholdModel.from_state(found.to_state()).predict(target).tolist() == found.predict(target).tolist()
    )


@pytest.mark.parametrize(
    ("method", "feature_map"), [("lrqr", "learned"), ("split", "given"), ("weighted", "given")]
)
def test_pac_raises_the_level_just_enough(method: str, feature_map: Any) -> None:
    X, y = rows(900, 0.0, 0)
    target = rows(500, 0.4, 1)[0]
    model = ThresholdModel(method, feature_map=feature_map, guarantee="pac")
    model.fit(X, y, X_target=target, certify=True).certify()
    assert model.certificate_.lower_bound >= 0.9
    assert 0.9 < model.level_ < 0.99
    before, after = model.marginal_.predict(target), model.predict(target)
    assert (after >= before).all()
    assert after.mean() > 1.02 * before.mean()
    again = ThresholdModel.from_state(model.to_state())
    assert (again.predict(target).tolist(), again.level_) == (after.tolist(), model.level_)


def test_pac_gives_nothing_finite_where_no_number_of_rows_would_do() -> None:
    """With 20 rows even a bound that covers all of them is .05^(1/20) = .86."""
    X, y = rows(20, 0.0, 0)
    model = ThresholdModel("split", guarantee="pac").fit(X, y, certify=True).certify()
    assert np.isposinf(model.predict(X)).all()
    assert 0.8 < model.certificate_.lower_bound <= 0.05 ** (1 / 20)
    with pytest.warns(LrqrWarning, match="the guarantee pac cannot be kept: 20 effective rows"):
        calibrate(Rows(X, y, np.empty((20, 0))), None, Options("precomputed", "split", guarantee="pac"))


def test_who_abstains_answers_inside_the_support_only() -> None:
    X, y, _ = little()
    target = np.vstack([rows(80, 0.3, 4)[0], rows(80, 9.0, 5)[0]])
    for method in ("lrqr", "split"):
        how = Options("precomputed", method, abstain=True, certify=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = calibrate(Rows(X, y, np.empty((300, 0))), Rows(target), how)
        found = model.predict(target)
        assert np.isposinf(found[80:]).all()
        assert np.isfinite(found[:80]).mean() > 0.9
        assert np.isposinf(model.predict(target[80:], infinite="clip")).all()
        assert model.certificate_.lower_bound > 0.6  # of the answered rows, not of all


def test_who_answers_no_target_row_promises_nothing() -> None:
    X, y, _ = little()
    how = Options("precomputed", abstain=True, certify=True, guarantee="pac")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = calibrate(Rows(X, y, np.empty((300, 0))), Rows(rows(60, 50.0, 1)[0]), how)
    assert model.certificate_.lower_bound == 0.0
    assert np.isposinf(model.predict(rows(9, 50.0, 2)[0])).all()


def test_abstaining_is_said_by_every_command(tmp_path: Path) -> None:
    source, target, test = write(tmp_path)
    frame = pd.read_csv(test)
    frame.loc[:49, "x0"] += 30.0
    frame.to_csv(test, index=False)
    frame.drop(columns="y").to_csv(target, index=False)
    columns = ("--outcome", "y", "--prediction", "yhat", "--exclude", "x1")
    said = lrqr("fit", source, target, *columns, "--abstain", "-o", tmp_path / "model").err
    share = 100 * lrqr("inspect", tmp_path / "model", "--format", "json").json["certificate"]["answered"]
    assert 60.0 < share <= 66.7
    assert f"abstains: {share:.1f} % of the target rows get a finite answer" in said
    assert f"of the answered rows ({share:.1f} % of the target)" in " ".join(said.split())
    assert lrqr("predict", tmp_path / "model", test, "-o", tmp_path / "out.csv").code == 0
    out = pd.read_csv(tmp_path / "out.csv")
    assert out["abstained"][:50].all()
    assert out["abstained"][50:].mean() < 0.1
    assert out["abstained"].tolist() == np.isposinf(out["upper"]).tolist()
    found = lrqr("evaluate", tmp_path / "model", test, "--format", "json").json
    answered = ~out["abstained"]
    assert (found["n"], found["abstained"]) == (answered.sum(), 150 - answered.sum())
    inside = (frame["y"] >= out["lower"]) & (frame["y"] <= out["upper"])
    assert found["coverage"]["value"] == pytest.approx(inside[answered].mean())


def test_pac_says_what_it_costs(tmp_path: Path) -> None:
    source, target, _ = write(tmp_path)
    columns = ("--outcome", "y", "--prediction", "yhat", "--guarantee", "pac")
    said = lrqr("fit", source, target, *columns, "-o", tmp_path / "model")
    found = lrqr("inspect", tmp_path / "model", "--format", "json").json
    assert found["fit"]["guarantee"] == "pac"
    assert found["fit"]["level"] > 0.9
    assert found["fit"]["price"] > 1.0
    assert found["certificate"]["lower_bound"] >= 0.9
    assert f"answers to the target {found['fit']['price']:.2f} times as large" in said.err


def test_finite_answers_without_overlap_are_said_to_carry_no_promise(tmp_path: Path) -> None:
    X, y = rows(300, 0.0, 0)
    away = rows(150, 0.0, 1)[0] + 40.0
    for name, features in (("source", X), ("target", away)):
        scores = y if name == "source" else rows(150, 0.0, 1)[1]
        pd.DataFrame({"x0": features[:, 0], "x1": features[:, 1], "yhat": 0.0, "y": scores}).to_csv(
            tmp_path / f"{name}.csv", index=False
        )
    source, target, model = (tmp_path / name for name in ("source.csv", "target.csv", "model"))
    columns = ("--outcome", "y", "--prediction", "yhat")
    texts = [lrqr("fit", source, target, *columns, "-o", model).err, lrqr("inspect", model).out]
    texts.append(lrqr("evaluate", model, target).out)
    texts.append(lrqr("compare", source, target, target, *columns, "--splits", "1", "--method", "lrqr").err)
    with pytest.warns(LrqrWarning) as caught:
        ConformalRegressor(DummyRegressor().fit(X, y), prefit=True).fit(X, y, X_target=away)
    texts.append(" ".join(str(one.message) for one in caught))
    assert all("carry no promise" in " ".join(text.split()) for text in texts), texts


def test_python_warns_of_little_overlap_as_the_command_line_does() -> None:
    X, y, target = little()
    with pytest.warns(LrqrWarning, match="overlap"):
        ConformalRegressor(DummyRegressor().fit(X, y), prefit=True).fit(X, y, X_target=target)


def test_the_classifier_takes_what_the_regressor_takes() -> None:
    """All but what makes sense for numbers alone."""
    names = [set(inspect.signature(model).parameters) for model in (ConformalClassifier, ConformalRegressor)]
    assert names[1] - names[0] == {"side", "bounds"}
    rng = np.random.default_rng(0)
    X, target = rng.normal(size=(400, 2)), rng.normal(0.5, 1.0, size=(200, 2))
    y = np.where(X[:, 0] + rng.normal(size=400) > 0, "yes", "no")
    model = ConformalClassifier(LogisticRegression(), abstain=True, at_least=0.7).fit(X, y, X_target=target)
    assert model.certificate_.at_least == 0.7
    assert model.abstains(np.full((1, 2), 50.0)).tolist() == [True]
