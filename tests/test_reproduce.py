"""``lrqr reproduce``: every experiment's file, its outputs, and the paper's numbers on few splits."""

from __future__ import annotations

import importlib.util
import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lrqr.errors import DataError, UsageError
from lrqr.results import parse
from lrqr.study import config, datasets
from lrqr.study import run as reproduce
from lrqr.study.datasets import mmlu

# the last two need data that may not be shipped
WANTED = (
    "baseline-choices",
    "baseline-in-sample",
    "communities",
    "corrupted-cifar",
    "lambda-ablation",
    "mmlu",
    "mmlu-components",
    "real-shifts",
    "theory",
    "mmlu-all",
    "rxrx1",
)


def test_the_experiments_of_the_paper_are_there() -> None:
    assert set(WANTED) <= set(reproduce.names())
    assert [entry.name for entry in reproduce.catalog().experiments] == list(reproduce.names())


@pytest.mark.parametrize("name", WANTED)
def test_a_dry_run_reads_no_data(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LRQR_DATA", str(tmp_path / "nowhere"))
    plan = reproduce.dry_run(name, splits=3)
    assert plan.splits == 3
    assert plan.fits == 3 * len(plan.shifts) * len(plan.methods)


def test_unknown_names_are_corrected() -> None:
    with pytest.raises(UsageError, match="did you mean 'communities'"):
        reproduce.find("comunities")


@pytest.mark.parametrize("name", WANTED)
def test_every_expectation_has_a_reason_and_a_bound(name: str) -> None:
    experiment = config.load(reproduce.find(name))
    for claim in experiment.expect:
        assert len(claim.reason) > 10
        assert np.isfinite(claim.low) or np.isfinite(claim.high)


def rxrx1_file(folder: Path) -> None:
    """A file of the exported shape: 14 experiments of 40 images, 12 features, 6 classes."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(14), 40)
    outcome = rng.integers(6, size=len(group))
    features = rng.normal(size=(len(group), 12)) + 0.3 * rng.normal(size=(14, 12))[group]
    logits = rng.normal(size=(len(group), 6)) + 2.0 * np.eye(6)[outcome]
    arrays = {"features": features.astype(np.float32), "logits": logits.astype(np.float32)}
    np.savez(folder / "rxrx1.npz", **arrays, outcome=outcome, group=group)


@pytest.mark.reproduce
def test_rxrx1_runs_end_to_end_on_a_small_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LRQR_DATA", str(tmp_path))
    with pytest.raises(DataError, match="export_rxrx1"):
        reproduce.reproduce("rxrx1", tmp_path, splits=1)
    rxrx1_file(tmp_path)
    outcome = reproduce.reproduce("rxrx1", tmp_path, splits=1)
    assert len(set(outcome.runs["shift"])) == 14
    assert sorted(path.name for path in outcome.files) == [
        "checks.csv",
        "figure.png",
        "figure.svg",
        "results.csv",
        "results.json",
        "summary.csv",
        "summary.md",
    ]
    assert all(path.stat().st_size > 0 for path in outcome.files)
    table = pd.read_csv(tmp_path / "rxrx1" / "results.csv")
    pd.testing.assert_frame_equal(
        table[["shift", "split", "method", "coverage"]],
        outcome.runs[["shift", "split", "method", "coverage"]],
    )
    split = table[table["method"] == "SCP"]
    assert abs(split["coverage"].mean() - 0.9) < 0.06


def test_the_results_feed_the_report(tmp_path: Path) -> None:
    toml = tmp_path / "small.toml"
    toml.write_text(
        'title = "small"\nsplits = 2\n[data]\nkind = "synthetic"\nshifts = ["linear"]\n'
        "options = { source_rows = 60, target_rows = 40, test_rows = 50 }\n"
        '[[methods]]\nname = "lrqr"\nparameters = { ridge = 1.0, regularization = 0.1 }\n'
        '[[methods]]\nname = "split"\n'
        '[[expect]]\nmethod = "lrqr"\nlow = 0.99\nhigh = 1.0\nreason = "false on purpose, one split"\n'
        '[[published]]\nmethod = "split"\ncoverage = 0.781\nsize = 2.6\n'
    )
    outcome = reproduce.reproduce(str(toml), tmp_path / "run")
    loaded = json.loads((tmp_path / "run" / "small" / "results.json").read_text())
    assert parse(loaded).panels[0].splits == 2
    rows = {row["name"]: row for row in loaded["panels"][0]["methods"]}
    assert rows["split"]["published_coverage"] == 0.781
    assert "published_coverage" not in rows["lrqr"]
    assert len(outcome.checks) == 1
    text = (tmp_path / "run" / "small" / "summary.md").read_text(encoding="utf-8")
    assert "| paper: coverage % |" in text
    assert re.search(r"\| split \| .* \| 78.1 \| 2.6 \|", text)
    assert re.search(r"\| lrqr \| .* \| – \| – \|", text)
    assert "false on purpose" in text


@pytest.mark.parametrize(
    "name",
    [
        "communities",
        "real-shifts",
        *(pytest.param(name, marks=pytest.mark.reproduce) for name in ("mmlu", "corrupted-cifar")),
    ],
)
def test_each_experiment_runs_one_split_of_its_first_shift(name: str) -> None:
    experiment = config.load(reproduce.find(name))
    first = experiment.data.chosen()[0]
    data = experiment.data.model_copy(update={"shifts": [first]})
    runs = reproduce.run(experiment.model_copy(update={"data": data}), splits=1)
    assert list(runs["method"]) == [method.label for method in experiment.expanded()]
    assert runs["coverage"].between(0.2, 1.0).all()
    assert np.isfinite(runs["size"]).all()


@pytest.mark.reproduce
@pytest.mark.parametrize("name", ["communities", "mmlu"])
def test_recorded_expectations_hold_on_few_splits(name: str, tmp_path: Path) -> None:
    outcome = reproduce.reproduce(name, tmp_path, splits=20, jobs=2)
    assert len(outcome.checks) > 0
    failed = outcome.checks[~outcome.checks["holds"]]
    assert failed.empty, failed.to_string()


def test_the_page_on_reproduction_names_every_experiment() -> None:
    page = (Path(__file__).parents[1] / "docs" / "reproduction.md").read_text()
    for name in WANTED:
        assert re.search(rf"`(make |lrqr reproduce )?{name}`", page), name


def script_of(name: str) -> Any:
    path = Path(__file__).parents[1] / "scripts" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_all_of_mmlu_runs_end_to_end_on_a_small_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The export with fake models: the answer is more probable the longer the question is."""
    script = script_of("export_mmlu")
    rng = np.random.default_rng(0)
    subjects = ["high_school_physics"] * 60 + ["college_physics", "professional_law"] * 30 + ["astronomy"] * 5
    questions = [
        {"question": f"Q{i} " * (1 + i % 7), "choices": list("wxyz"), "answer": i % 4, "subject": subject}
        for i, subject in enumerate(subjects)
    ]

    def answerer(prompt: str) -> list[float]:
        assert prompt.endswith("A. w\nB. x\nC. y\nD. z\nAnswer:")
        number = int(re.findall(r"Q(\d+)", prompt)[0])
        return [float(prompt.count("Q")) * (option == number % 4) for option in range(4)]

    arrays = script.export(questions, answerer, lambda text: np.r_[text.count("Q"), rng.normal(size=2)])
    np.savez(tmp_path / "mmlu_all.npz", **arrays)
    assert arrays["probability"][13] == pytest.approx(np.exp([0, 7, 0, 0]) / (3 + np.exp(7)), rel=1e-6)
    for file in mmlu.FILES:  # a run verifies all files of its data set
        (tmp_path / file.name).symlink_to(datasets.locate(file))
    monkeypatch.setenv("LRQR_DATA", str(tmp_path))
    outcome = reproduce.reproduce("mmlu-all", tmp_path, splits=2)
    assert set(outcome.runs["n_source"]) == {48}
    assert set(outcome.runs["n_target"]) == set(outcome.runs["n_test"]) == {30}
    np.savez(tmp_path / "mmlu_all.npz", embedding=arrays["embedding"])
    mmlu.table.cache_clear()
    with pytest.raises(DataError, match="lacks probability, answer, subject; scripts/export_mmlu"):
        reproduce.reproduce("mmlu-all", tmp_path / "again", splits=1)


def test_the_export_script_knows_the_names_of_wilds_checkpoints() -> None:
    script = script_of("export_rxrx1")
    whole = {"model.conv1.weight": 1, "model.layer1.0.conv1.weight": 2, "model.fc.bias": 3}
    split = {"model.0.conv1.weight": 1, "model.0.layer1.0.conv1.weight": 2, "model.1.bias": 3}
    expected = {"conv1.weight": 1, "layer1.0.conv1.weight": 2, "fc.bias": 3}
    assert script.bare_names(whole) == expected
    assert script.bare_names(split) == expected
    assert script.bare_names({f"module.{name}": value for name, value in whole.items()}) == expected
    options = script.parse(["--root", "DATA", "--checkpoint", "model.pth"])
    assert options.output == Path("data/rxrx1.npz")
    assert not options.download


DOCS = Path(__file__).parents[1] / "docs"
# Records of scripts/measure_default.py, which are no experiments of `lrqr reproduce`.
STUDIES = {"few-rows", "ratio-slope"}
RECORDED = [path for path in sorted((DOCS / "results").glob("*.csv")) if path.stem not in STUDIES]


def test_every_experiment_that_can_run_here_is_recorded() -> None:
    assert {path.stem for path in RECORDED} >= set(WANTED) - {"rxrx1", "mmlu-all"}


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_results_are_rows_per_split_that_bear_out_the_expectations(path: Path) -> None:
    """Right methods and shifts, every split whole, claims true of the means, figures there."""
    experiment = config.load(reproduce.find(path.stem))
    table = pd.read_csv(path)
    assert list(table.columns[:6]) == ["split", "method", "ridge", "coverage", "size", "infinite"]
    shifts = experiment.data.chosen()
    labels = [method.label for method in experiment.expanded()]
    rows = table.groupby(["split", "shift", "method"]).size()
    assert (rows == 1).all()
    assert set(rows.index) == set(itertools.product(range(table["split"].nunique()), shifts, labels))
    given = {method.label: method.parameters.get("ridge") for method in experiment.expanded()}
    for label, ridges in table.groupby("method")["ridge"]:
        assert given[str(label)] in (None, "auto") or (ridges == given[str(label)]).all()
    means = table.groupby(["shift", "method"])[["coverage", "size", "infinite"]].mean()
    for claim in experiment.expect:
        for shift in [claim.shift] if claim.shift else shifts:
            found = means.loc[(shift, claim.method), claim.metric]
            if claim.minus:
                found -= means.loc[(shift, claim.minus), claim.metric]
            if claim.over:
                found /= means.loc[(shift, claim.over), claim.metric]
            assert claim.low - 1e-9 <= found <= claim.high + 1e-9, (shift, claim)
    if path.stem != "selection":
        for suffix in (".svg", ".png"):
            assert (DOCS / "figures" / f"{path.stem}{suffix}").stat().st_size > 0


@pytest.mark.parametrize("name", sorted(STUDIES))
def test_studies_of_the_default_are_recorded_per_split_too(name: str) -> None:
    table = pd.read_csv(DOCS / "results" / f"{name}.csv")
    assert list(table.columns[:6]) == ["split", "method", "ridge", "coverage", "size", "infinite"]
    assert table["coverage"].between(0.0, 1.0).all()
    assert (table.groupby(["split", "shift", "n_source", "method"]).size() == 1).all()


def test_the_tables_of_the_pages_are_the_means_of_the_recorded_splits() -> None:
    script = script_of("record_results")
    pages = [(DOCS / name).read_text(encoding="utf-8") for name in script.PAGES]
    assert [script.filled(page) for page in pages] == pages
    named = {match[1] for page in pages for match in script.MARK.finditer(page)}
    assert named == {path.stem for path in RECORDED} - {"selection"}


def test_a_table_is_made_of_the_means_over_splits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = script_of("record_results")
    monkeypatch.setattr(script, "DOCS", tmp_path)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "toy.csv").write_text(
        "split,method,ridge,coverage,size,infinite,shift,regularization\n"
        "0,a,,0.8,1,0,here,\n1,a,,0.9,2,0,here,\n0,b,1,0.5,3,0.5,here,0.1\n1,b,1,0.7,3,1,here,0.1\n"
    )
    page = "text\n\n<!-- table toy coverage,deviation,infinite rows b -->\n| old | table |\n\nmore\n"
    assert script.filled(page) == (
        "text\n\n<!-- table toy coverage,deviation,infinite rows b -->\n"
        "| 2 splits | coverage % | sd | infinite % |\n| --- | ---: | ---: | ---: |\n"
        "| b | 60.0 | 14.1 | 75 |\n\nmore\n"
    )
