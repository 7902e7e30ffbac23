"""Experiment files: every mistake is named, all at once; grids are written out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lrqr import plugins
from lrqr.errors import LrqrWarning, UsageError
from lrqr.study import config

CONFIGS = sorted((Path(__file__).parents[1] / "configs").glob("*.toml"))

GOOD = """
title = "small"
[data]
kind = "synthetic"
shifts = ["linear"]
options = { d = 3 }
[[methods]]
name = "split"
"""


def problem(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        config.parse(text, origin="x.toml")
    return str(caught.value)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_experiment_of_the_repository_parses(path: Path) -> None:
    experiment = config.load(path)
    assert experiment.title
    assert experiment.data.chosen()


def test_defaults() -> None:
    experiment = config.parse(GOOD)
    assert (experiment.coverage, experiment.splits, experiment.score) == (0.9, 20, "absolute")
    assert [method.label for method in experiment.expanded()] == ["split"]
    assert experiment.ratio.cross_fit == 5


def test_no_shifts_means_all() -> None:
    experiment = config.parse(GOOD.replace('shifts = ["linear"]', ""))
    assert tuple(experiment.data.chosen()) == plugins.load("study.datasets", "synthetic").SHIFTS


def test_all_mistakes_are_reported_at_once() -> None:
    text = GOOD.replace(
        'title = "small"', 'titel = "small"\ncoverage = 90\nsplits = 0\n[ratio]\ncrossfit = 3'
    )
    message = problem(text)
    assert "4 problem(s)" not in message
    assert "5 problem(s)" in message
    assert "titel: unknown key, did you mean 'title'?" in message
    assert "title: missing" in message
    assert "coverage: Input should be less than 1 (got 90)" in message
    assert "splits: Input should be greater than or equal to 1 (got 0)" in message
    assert "ratio.crossfit: unknown key, did you mean 'cross_fit'?" in message


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('name = "split"', 'name = "spilt"', "did you mean 'split'?"),
        (
            'name = "split"',
            'name = "split"\nparameters = { ridge = 1 }',
            "unknown parameter of split 'ridge'",
        ),
        ('name = "split"', 'name = "lrqr"\nparameters = { rigde = 1 }', "did you mean 'ridge'?"),
        ('name = "split"', 'name = "lrqr"\nparameters = { coverage = 0.8 }', "unknown parameter of lrqr"),
        (
            'name = "split"',
            'name = "lrqr"\nparameters = { ridge = 1 }\ngrid = { ridge = [1, 2] }',
            "in parameters and in grid",
        ),
        ('name = "split"', 'name = "split"\n[[methods]]\nname = "split"', "two methods have the same label"),
        ('kind = "synthetic"', 'kind = "syntetic"', "did you mean 'synthetic'?"),
        ('shifts = ["linear"]', 'shifts = ["linaer"]', "unknown shift of synthetic 'linaer', did you mean"),
        ("d = 3", "dd = 3", "unknown option of synthetic 'dd'"),
        ('title = "small"', 'title = "small"\nscore = "absolut"', "did you mean 'absolute'?"),
        ('title = "small"', 'title = "small"\nreference = "splt"', "unknown reference 'splt', did you mean"),
        ('title = "small"', 'title = "small', "is not TOML"),
        (
            'name = "split"',
            'name = "split"\n[[expect]]\nmethod = "lrqr"\nreason = "r"',
            "unknown method label 'lrqr'",
        ),
        (
            'name = "split"',
            'name = "split"\n[[expect]]\nmethod = "split"\nlow = 1\nhigh = 0\nreason = "r"',
            "low 1.0 is above high 0.0",
        ),
        (
            'name = "split"',
            'name = "split"\n[[expect]]\nmethod = "split"\nshift = "none"\nreason = "r"',
            "unknown shift in expect 'none'",
        ),
    ],
)
def test_each_mistake_is_named(old: str, new: str, expected: str) -> None:
    assert old in GOOD
    assert expected in problem(GOOD.replace(old, new))


TABLES = """
title = "mine"
[data]
kind = "tables"
[[data.tables]]
name = "one"
path = "a.csv"
outcome = "y"
shift = { column = "x", at = "median" }
[[methods]]
name = "split"
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('at = "median"', 'at = "mean"', "data.tables.0.shift.at"),
        ('at = "median"', "at = 3, tilt = { x = 1.0 }", "give exactly one of"),
        ('column = "x", at = "median"', "at = 3", "column goes with"),
        ('column = "x", at = "median"', 'column = "x", source = ["a"]', "must both list"),
        ('path = "a.csv"', 'source = "a.csv"', "all of source, target and test"),
        ('path = "a.csv"', 'path = "a.csv"\ntest = "b.csv"', "path is one table to be split"),
        ('outcome = "y"', "", "give outcome"),
        ('outcome = "y"', 'outcom = "y"', "did you mean 'outcome'?"),
        ("[[methods]]", "[data.options]\nd = 1\n[[methods]]", "unknown option of tables"),
    ],
)
def test_mistakes_in_tables(old: str, new: str, expected: str) -> None:
    assert config.parse(TABLES).data.chosen() == ["one"]
    assert old in TABLES
    assert expected in problem(TABLES.replace(old, new))


def test_tables_and_data_sets_do_not_mix() -> None:
    assert "goes with kind" in problem(TABLES.replace('"tables"', '"synthetic"'))
    assert "goes with kind" in problem(GOOD.replace('"synthetic"', '"tables"'))


def test_a_grid_becomes_every_combination() -> None:
    text = GOOD.replace(
        'name = "split"',
        'name = "lrqr"\nlabel = "L"\nparameters = { tol = 1e-5 }\n'
        "grid = { ridge = [1.0, 10.0], regularization = [0.1, 0.2, 0.3] }",
    )
    entries = config.parse(text).expanded()
    assert len(entries) == 6
    assert len({entry.label for entry in entries}) == 6
    assert entries[1].label == "L (ridge=1.0, regularization=0.2)"
    assert entries[1].parameters == {"tol": 1e-5, "ridge": 1.0, "regularization": 0.2}


def test_tables_beside_the_file_are_found_from_anywhere(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    file = tmp_path / "mine.toml"
    file.write_text(TABLES)
    assert config.load(file).data.tables[0].path == str(tmp_path / "a.csv")
    file.write_text(TABLES.replace("a.csv", "airfoil.csv"))
    assert config.load(file).data.tables[0].path == "airfoil.csv"


def test_a_missing_file_is_named() -> None:
    with pytest.raises(UsageError, match="there is no experiment file"):
        config.load("nowhere.toml")


def models() -> list[type]:
    return [
        config.Experiment,
        config.Data,
        config.Table,
        config.Shift,
        config.Ratio,
        config.Method,
        config.Expectation,
        config.Published,
        config.Figure,
    ]


@pytest.mark.parametrize("model", models(), ids=lambda model: model.__name__)
def test_every_key_is_documented(model: type) -> None:
    page = (Path(__file__).parents[1] / "docs" / "experiments.md").read_text(encoding="utf-8")
    missing = [name for name in model.model_fields if not re.search(rf"\b{name}\b", page)]
    assert missing == []


def test_the_examples_of_the_page_parse() -> None:
    page = (Path(__file__).parents[1] / "docs" / "experiments.md").read_text(encoding="utf-8")
    examples = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    assert len(examples) == 2
    assert [config.parse(example).data.chosen() for example in examples] == [["hospital"], ["years"]]


def test_the_feature_map_of_a_method_is_that_of_fit_and_keeps_its_old_name() -> None:
    text = 'title = "T"\n[data]\nkind = "synthetic"\n[[methods]]\nname = "lrqr"\n'
    assert config.parse(text).methods[0].feature_map == "auto"
    with pytest.warns(LrqrWarning, match="features = 'learned' of a method is now feature_map = 'learned'"):
        assert config.parse(text + 'features = "learned"\n').methods[0].feature_map == "learned"
