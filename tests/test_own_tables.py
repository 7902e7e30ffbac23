"""The user's own tables in an experiment file: files and declared shifts become the right parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from lrqr.errors import DataError
from lrqr.study import config, datasets
from lrqr.study.datasets import tables
from lrqr.study.run import run

if TYPE_CHECKING:
    from pathlib import Path

    from lrqr.study.datasets import Rows, ShiftData

N = 400
LINE = 'shift = { column = "x", at = 0.0 }'


def toml(body: str, *, base: str = 'base = "ridge"', score: str = "absolute") -> str:
    return f"""
title = "mine"
score = "{score}"
{base}
[data]
kind = "tables"
[[data.tables]]
name = "t"
{body}
[[methods]]
name = "split"
[[methods]]
name = "weighted"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "row": np.arange(N, dtype=float),
            "x": rng.normal(size=N),
            "z": np.exp(rng.normal(size=N)),
            "color": rng.choice(["red", "green", "blue"], size=N),
            "level": rng.integers(1, 5, size=N),
        }
    )
    frame["y"] = frame["x"] + frame["z"] + rng.normal(size=N)
    frame["yhat"] = frame["x"] + frame["z"]
    frame["s"] = np.abs(frame["y"] - frame["yhat"])
    frame["label"] = np.where(frame["y"] > 1.5, "yes", "no")
    frame["p_yes"] = 1 / (1 + np.exp(1.5 - frame["yhat"]))
    frame["p_no"] = 1 - frame["p_yes"]
    frame.to_csv(tmp_path / "all.csv", index=False)
    frame.to_parquet(tmp_path / "all.parquet")  # not every pandas reads a CSV to the last bit
    for name, part in (
        ("a", frame[:200]),
        ("b", frame[200:300].drop(columns=["y", "s"])),
        ("c", frame[300:]),
    ):
        part.to_parquet(tmp_path / f"{name}.parquet")
    return tmp_path


def drawn(folder: Path, body: str, *, seed: int = 0, **options: Any) -> ShiftData:
    file = folder / "mine.toml"
    file.write_text(toml(body, **options))
    experiment = config.load(file)
    return tables.split("t", seed=seed, table=experiment.data.tables[0])


def rows(part: Rows | None, names: tuple[str, ...], column: str = "row") -> list[float]:
    assert part is not None
    return list(part.features[:, names.index(column)])


ONE = 'path = "all.csv"\noutcome = "y"\nexclude = ["yhat", "s", "label", "p_yes", "p_no"]\n'


def test_a_threshold_splits_by_value_into_disjoint_parts(folder: Path) -> None:
    data = drawn(folder, ONE + LINE)
    names = data.feature_names
    parts = [rows(part, names) for part in (data.train, data.source, data.target, data.test)]
    together = [row for part in parts for row in part]
    assert sorted(together) == list(range(N))
    assert max(rows(data.source, names, "x") + rows(data.train, names, "x")) <= 0.0
    assert min(rows(data.target, names, "x") + rows(data.test, names, "x")) > 0.0
    assert abs(len(data.target) - len(data.test)) <= 1
    assert data.target.outcome is None


def test_the_median_is_a_threshold(folder: Path) -> None:
    data = drawn(folder, ONE + 'shift = { column = "x", at = "median" }\ntrain_share = 0.25')
    assert data.train is not None
    assert (len(data.train), len(data.source)) == (50, 150)
    assert len(data.target) + len(data.test) == 200


@pytest.mark.parametrize(
    ("column", "source", "target"), [("color", '["red"]', '["blue"]'), ("level", "[1, 2]", "[3]")]
)
def test_groups_are_source_and_target(folder: Path, column: str, source: str, target: str) -> None:
    shift = f'shift = {{ column = "{column}", source = {source}, target = {target} }}'
    data = drawn(folder, ONE + shift)
    frame = pd.read_parquet(folder / "all.parquet")
    assert data.train is not None
    wanted = [value.strip(' "') for value in source.strip("[]").split(",")]
    there = frame[frame[column].astype(str).isin(wanted)]
    assert sorted(rows(data.train, data.feature_names) + rows(data.source, data.feature_names)) == list(
        there["row"]
    )
    others = frame["row"][frame[column].astype(str) == target.strip('[]"')]
    assert sorted(rows(data.target, data.feature_names) + rows(data.test, data.feature_names)) == list(others)


def test_text_columns_become_indicators_and_exclusions_stay_out(folder: Path) -> None:
    data = drawn(folder, ONE.replace('"yhat"', '"row", "yhat"') + LINE)
    assert data.feature_names == ("x", "z", "color=blue", "color=green", "color=red", "level")


def test_row_limits(folder: Path) -> None:
    data = drawn(folder, ONE + LINE + "\nsource_rows = 30\ntarget_rows = 20")
    assert (len(data.source), len(data.target), len(data.test)) == (30, 20, 20)


def test_a_tilt_resamples_with_the_stated_weights(folder: Path) -> None:
    data = drawn(folder, ONE + 'log = ["z"]\nshift = { tilt = { x = 1.0, z = 0.5 } }')
    names = data.feature_names
    target, test = set(rows(data.target, names)), set(rows(data.test, names))
    assert not target & test
    assert not (target | test) & set(rows(data.source, names) + rows(data.train, names))
    assert (len(data.source), len(data.target), len(data.test)) == (100, 50, 50)
    assert data.source.ratio is not None
    frame = pd.read_parquet(folder / "all.parquet")
    tilted = np.exp(frame["x"] + 0.5 * np.log(frame["z"]))
    chosen = [int(row) for row in rows(data.source, names)]
    np.testing.assert_allclose(data.source.ratio, tilted.to_numpy()[chosen], rtol=1e-12)
    means = [
        np.mean(rows(drawn(folder, ONE + "shift = { tilt = { x = 1.0 } }", seed=k).test, names, "x"))
        for k in range(30)
    ]
    weights = np.exp(frame["x"])
    assert abs(np.mean(means) - np.average(frame["x"], weights=weights)) < 0.1
    assert abs(frame["x"].mean()) < 0.1  # so that the check can fail


def test_a_soft_shift_has_the_stated_odds(folder: Path) -> None:
    shift = "shift = { soft = { x = 1.0, z = -0.5 }, slope = 2.0 }"
    data = drawn(folder, ONE + shift)
    assert data.source.ratio is not None
    frame = pd.read_parquet(folder / "all.parquet")

    def standard(values: np.ndarray) -> np.ndarray:
        return (values - values.mean()) / values.std()

    z = standard(standard(frame["x"].to_numpy()) - 0.5 * standard(frame["z"].to_numpy()))
    chosen = [int(row) for row in rows(data.source, data.feature_names)]
    np.testing.assert_allclose(np.log(data.source.ratio), 2.0 * z[chosen], rtol=1e-10, atol=1e-12)
    moved = [int(row) for row in rows(data.target, data.feature_names) + rows(data.test, data.feature_names)]
    shares = np.array([moved.count(row) for row in range(N)])
    rest = np.array(sorted(moved + chosen))
    expected = (1 / (1 + np.exp(-2.0 * z)))[rest]
    error = np.sqrt((expected * (1 - expected)).sum())
    assert abs(shares[rest].sum() - expected.sum()) < 4 * error


def test_three_files_keep_their_roles(folder: Path) -> None:
    body = (
        'source = "a.parquet"\ntarget = "b.parquet"\ntest = "c.parquet"\noutcome = "y"\n'
        'prediction = ["yhat"]\nexclude = ["s", "label", "p_yes", "p_no"]'
    )
    data = drawn(folder, body, base="")
    names = data.feature_names
    assert "yhat" not in names
    assert data.train is None
    assert data.source.prediction is not None
    assert data.source.prediction.shape == (160, 1)
    assert set(rows(data.source, names)) <= set(range(200))
    assert set(rows(data.target, names)) <= set(range(200, 300))
    assert set(rows(data.test, names)) <= set(range(300, 400))
    assert (len(data.source), len(data.target), len(data.test)) == (160, 80, 80)


def test_probabilities_scores_and_classes(folder: Path) -> None:
    rest = 'path = "all.csv"\nexclude = ["row", "color", "level"]\n'
    body = rest + 'outcome = "label"\nprobability = "p_*"\n' + LINE
    data = drawn(folder, body, base="", score="lac")
    assert data.classes == ("yes", "no")
    assert data.source.outcome is not None
    assert set(data.source.outcome) == {0, 1}
    given = drawn(folder, rest + 'score_column = "s"\n' + LINE, base="", score="precomputed")
    frame = pd.read_parquet(folder / "all.parquet")
    assert given.source.outcome is not None
    assert set(given.source.outcome) <= set(frame["s"])
    unmodeled = drawn(folder, rest + 'outcome = "label"\n' + LINE, score="lac")
    assert unmodeled.classes == ("no", "yes")
    assert unmodeled.train is not None


@pytest.mark.parametrize(
    ("body", "options"),
    [
        (ONE + LINE, {}),
        (
            'path = "all.csv"\noutcome = "y"\nprediction = ["yhat"]\nexclude = ["label", "s"]\n' + LINE,
            {"base": ""},
        ),
        (
            'path = "all.csv"\noutcome = "label"\nprobability = "p_*"\nexclude = ["s"]\n' + LINE,
            {"base": "", "score": "lac"},
        ),
        (
            'path = "all.csv"\noutcome = "label"\nexclude = ["s", "p_*"]\nfeatures = ["x", "z"]\n'.replace(
                ', "p_*"', ""
            )
            + LINE,
            {"base": 'base = "logistic"', "score": "lac"},
        ),
        (
            'path = "all.csv"\nscore_column = "s"\nexclude = ["label"]\n' + LINE,
            {"base": "", "score": "precomputed"},
        ),
    ],
)
def test_each_kind_of_table_runs(folder: Path, body: str, options: dict[str, str]) -> None:
    file = folder / "mine.toml"
    file.write_text(toml(body, **options))
    runs = run(config.load(file), folder / "run", splits=2)
    assert len(runs) == 4
    assert runs["coverage"].between(0.5, 1.0).all()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (ONE.replace("all.csv", "none.csv") + LINE, "there is no table"),
        (ONE + 'shift = { column = "xx", at = 0.0 }', "no column 'xx', did you mean"),
        (ONE + 'shift = { column = "colour", source = ["red"], target = ["blue"] }', "did you mean 'color'"),
        (ONE + 'shift = { column = "color", source = ["red"], target = ["pink"] }', "nowhere"),
        (ONE + 'shift = { column = "color", source = ["red"], target = ["red", "blue"] }', "in common"),
        (ONE + "shift = { tilt = { color = 1.0 } }", "no numeric column 'color'"),
        (ONE.replace('"s"', '"ss"') + LINE, "'ss' does not exist"),
        (ONE + 'log = ["zz"]\n' + LINE, "no column 'zz'"),
    ],
)
def test_mistakes_are_named(folder: Path, body: str, expected: str) -> None:
    with pytest.raises(DataError, match=expected):
        drawn(folder, body)


def test_relative_paths_may_start_at_the_data_folder() -> None:
    experiment = config.parse(
        toml('path = "concrete.csv"\noutcome = "strength_mpa"\nshift = { column = "age_days", at = 28 }')
    )
    assert tables.files(experiment.data.tables) == [datasets.data_folder() / "concrete.csv"]
    data = tables.split("t", seed=0, table=experiment.data.tables[0])
    assert len(data.feature_names) == 8


def test_classes_may_look_like_numbers(folder: Path) -> None:
    body = 'path = "all.csv"\noutcome = "level"\nfeatures = ["x", "z"]\n' + LINE
    assert drawn(folder, body).classes == ()
    data = drawn(folder, body + "\nclassify = true", score="lac")
    assert data.classes == ("1", "2", "3", "4")
    frame = pd.read_parquet(folder / "all.parquet").set_index("x")
    assert data.source.outcome is not None
    for x, index in zip(rows(data.source, data.feature_names, "x"), data.source.outcome, strict=True):
        assert frame["level"][x] == index + 1
