"""Experiments: the same results for any number of jobs and after an interruption; honest summaries."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from lrqr.calibrate.regions import Regions
from lrqr.errors import LrqrError, UsageError
from lrqr.methods import weighted
from lrqr.results import Comparison
from lrqr.show import paper
from lrqr.show.words import to_json
from lrqr.study import config, run, split, summary
from lrqr.study.datasets import Rows, synthetic

if TYPE_CHECKING:
    from pathlib import Path

SMALL = """
title = "small"
splits = 3
seed = 7
reference = "L"
[data]
kind = "synthetic"
shifts = ["linear", "none"]
options = { d = 2, source_rows = 80, target_rows = 60, test_rows = 70 }
[[methods]]
name = "lrqr"
label = "L"
parameters = { ridge = 1.0, regularization = 0.1 }
[[methods]]
name = "split"
[[methods]]
name = "weighted"
label = "oracle"
ratio = "true"
[[methods]]
name = "weighted"
"""
TIMES = ["seconds"]


@pytest.fixture(scope="module")
def experiment() -> config.Experiment:
    return config.parse(SMALL)


@pytest.fixture(scope="module")
def runs(experiment: config.Experiment) -> pd.DataFrame:
    return run.run(experiment)


def same(left: pd.DataFrame, right: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(left.drop(columns=TIMES), right.drop(columns=TIMES), check_exact=True)


def test_runs_are_tidy(runs: pd.DataFrame) -> None:
    assert list(runs.columns) == list(split.COLUMNS)
    assert len(runs) == 2 * 3 * 4
    assert list(runs["method"][:4]) == ["L", "split", "oracle", "weighted"]
    assert list(dict.fromkeys(runs["shift"])) == ["linear", "none"]
    assert runs["coverage"].between(0, 1).all()
    assert (runs["n_source"] == 80).all()
    assert (runs.loc[runs["method"] == "L", "ridge"] == 1.0).all()
    assert runs.loc[runs["method"] == "split", "ridge"].isna().all()
    assert runs["auc"].notna().all()


def test_results_do_not_depend_on_the_jobs(experiment: config.Experiment, runs: pd.DataFrame) -> None:
    same(run.run(experiment, jobs=2), runs)


def test_one_method_is_what_its_estimator_says(runs: pd.DataFrame) -> None:
    """Split by hand: the same rows, scores, thresholds, coverage and length."""
    seed = split.seed_of(7, "linear", 1)
    data = synthetic.split("linear", seed=seed, d=2, source_rows=80, target_rows=60, test_rows=70)
    assert data.source.prediction is not None
    assert data.test.prediction is not None
    scores = np.abs(data.source.outcome - data.source.prediction[:, 0])
    estimator = weighted.ESTIMATOR(coverage=0.9).fit(data.source.features, scores, ratio=data.source.ratio)
    thresholds = estimator.predict(data.test.features, ratio=data.test.ratio)
    covered = np.abs(data.test.outcome - data.test.prediction[:, 0]) <= thresholds
    row = runs[(runs["shift"] == "linear") & (runs["split"] == 1) & (runs["method"] == "oracle")].iloc[0]
    assert row["coverage"] == covered.mean()
    capped = np.where(np.isinf(thresholds), scores.max(), thresholds)
    assert row["size"] == pytest.approx(2 * capped.mean(), rel=1e-12)
    assert row["infinite"] == np.isinf(thresholds).mean()


def test_an_interrupted_run_resumes_without_repeating(
    experiment: config.Experiment, runs: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.run(experiment, tmp_path, splits=2)
    file = tmp_path / "splits.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    assert len(lines) == 4
    file.write_text("".join(lines[:3]) + lines[3][:40])  # killed while writing the fourth
    ran = []
    genuine = run.Job.__call__
    monkeypatch.setattr(run.Job, "__call__", lambda job, task: ran.append(task) or genuine(job, task))
    resumed = run.run(experiment, tmp_path)
    assert ran == [("none", 1), ("linear", 2), ("none", 2)]
    same(resumed, runs)
    ran.clear()
    same(run.run(experiment, tmp_path), runs)
    assert ran == []


def test_a_folder_of_another_experiment_is_refused(experiment: config.Experiment, tmp_path: Path) -> None:
    run.run(experiment, tmp_path, splits=1)
    other = config.parse(SMALL.replace("seed = 7", "seed = 8"))
    with pytest.raises(UsageError, match="another experiment"):
        run.run(other, tmp_path, splits=1)
    relaxed = config.parse(SMALL.replace("splits = 3", "splits = 1") + CLAIMS)
    run.run(relaxed, tmp_path)  # neither the number of splits nor the claims change a split


def test_an_error_says_where_it_happened() -> None:
    text = SMALL.replace(
        'label = "L"\nparameters = { ridge = 1.0', 'label = "L"\nparameters = { ridge = -1.0'
    )
    with pytest.raises(LrqrError, match=r"linear, split 0: method L: .*ridge"):
        run.run(config.parse(text))


def test_a_base_learner_is_for_data_without_predictions(runs: pd.DataFrame) -> None:
    same(run.run(config.parse(SMALL.replace("seed = 7", 'seed = 7\nbase = "ridge"'))), runs)
    bare = replace(synthetic.split("none", seed=0), train=None)
    with pytest.raises(UsageError, match="needs training rows"):
        split.predict_with_base(bare, "ridge", 0)
    text = SMALL.replace('"synthetic"', '"communities"').replace('["linear", "none"]', '["racepctblack"]')
    text = text.replace("options = { d = 2, source_rows = 80, target_rows = 60, test_rows = 70 }", "")
    with pytest.raises(UsageError, match="brings no predictions: name a base learner"):
        run.run(config.parse(text), splits=1)


def test_the_score_may_follow_the_outcome() -> None:
    job = run.job_of(config.parse(SMALL.replace("seed = 7", 'seed = 7\nscore = "auto"')))
    assert job(("none", 0))[1]
    text = SMALL.replace('"synthetic"', '"mmlu"').replace('["linear", "none"]', '["school-to-college"]')
    text = text.replace("d = 2, source_rows = 80, target_rows = 60, test_rows = 70", "components = 2")
    text = text.replace("seed = 7", 'seed = 7\nscore = "auto"').replace('ratio = "true"', "")
    sizes = [record["size"] for record in run.job_of(config.parse(text))(("school-to-college", 0))[1]]
    assert all(1 <= size <= 4 for size in sizes)


def test_true_ratio_must_be_known() -> None:
    text = SMALL.replace('"synthetic"', '"communities"').replace('["linear", "none"]', '["racepctblack"]')
    text = text.replace("options = { d = 2, source_rows = 80, target_rows = 60, test_rows = 70 }", "")
    with pytest.raises(UsageError, match="true likelihood ratio of racepctblack is not known"):
        run.run(config.parse(text.replace("seed = 7", 'seed = 7\nbase = "ridge"')), splits=1)


def results_of(experiment: config.Experiment, runs: pd.DataFrame) -> Comparison:
    table = summary.summarize(runs, experiment.reference)
    return summary.to_results(experiment, table, summary.check(experiment, runs))


def frame(**columns: list[float]) -> pd.DataFrame:
    count = len(columns["coverage"])
    table = pd.DataFrame({"shift": "s", "split": range(count)} | columns)
    for name in ("size", "size_allow", "infinite", "empty", "seconds", "regularization", "ridge"):
        if name not in table:
            table[name] = 1.0
    return table


def pair() -> pd.DataFrame:
    reference = frame(coverage=[0.9, 0.8, 1.0], size=[2.0, 2.0, 2.0]).assign(method="L")
    rival = frame(coverage=[0.8, 0.8, 0.8], size=[3.0, 4.0, 5.0], size_allow=[3.0, math.inf, 5.0])
    return pd.concat([reference, rival.assign(method="R")], ignore_index=True)


def test_summary_by_hand() -> None:
    table = summary.summarize(pair(), "L").set_index("method")
    assert table.loc["L", "coverage"] == pytest.approx(0.9)
    assert table.loc["L", "coverage_se"] == pytest.approx(0.1 / math.sqrt(3))
    assert table.loc["R", "coverage_difference"] == pytest.approx(-0.1)
    assert table.loc["R", "coverage_difference_se"] == pytest.approx(0.1 / math.sqrt(3))
    assert table.loc["R", "size"] == 4.0
    assert table.loc["R", "size_allow"] == math.inf
    assert table.loc["L", "coverage_difference"] == 0.0


def test_differences_are_paired_by_split_whatever_the_order() -> None:
    mixed = pair().sample(frac=1.0, random_state=0)
    table = summary.summarize(mixed, "L").set_index("method")
    assert table.loc["R", "size_difference"] == pytest.approx(2.0)
    assert table.loc["R", "size_difference_se"] == pytest.approx(1.0 / math.sqrt(3))


CLAIMS = """
[[expect]]
method = "L"
low = 0.5
reason = "more than half"
[[expect]]
method = "split"
metric = "size"
minus = "L"
low = 100.0
reason = "false on purpose"
[[expect]]
method = "split"
metric = "size"
over = "L"
shift = "none"
low = 0.2
high = 5.0
reason = "alike"
"""


def test_claims_hold_or_fail(runs: pd.DataFrame) -> None:
    checks = summary.check(config.parse(SMALL + CLAIMS), runs)
    assert list(checks["holds"]) == [True, True, False, False, True]
    assert checks["claim"][2] == "linear: size of split minus L"
    assert list(checks["expected"][[0, 4]]) == ["at least 0.5", "0.2 to 5"]
    table = summary.summarize(runs, "L")
    own = table[table["shift"] == "none"].set_index("method")["size"]
    assert checks["found"][4] == pytest.approx(own["split"] / own["L"])


@pytest.mark.parametrize(("low", "holds"), [(1.07, True), (1.08, False)])
def test_a_claim_has_three_standard_errors_of_slack(low: float, holds: bool) -> None:
    """Mean .9, standard error .1/sqrt(3): the claim may miss by .1732."""
    text = SMALL + f'[[expect]]\nmethod = "L"\nshift = "none"\nlow = {low}\nhigh = 2.0\nreason = "r"'
    checks = summary.check(config.parse(text), pair().assign(shift="none"))
    assert list(checks["holds"]) == [holds]


def test_results_have_the_keys_of_the_report(experiment: config.Experiment, runs: pd.DataFrame) -> None:
    from lrqr.results import parse

    results = results_of(experiment, runs)
    parsed = parse(json.loads(to_json(results)))
    assert [panel.name for panel in parsed.panels] == ["linear", "none"]
    first = parsed.panels[0].methods[0]
    assert first.name == "L"
    assert first.coverage == pytest.approx(
        runs[(runs["shift"] == "linear") & (runs["method"] == "L")]["coverage"].mean()
    )


def test_json_has_no_nan_and_no_infinity() -> None:
    text = to_json(Comparison.read({"a": [math.inf, -math.inf, math.nan, 1.5], "b": {"c": None}}))
    assert json.loads(text, parse_constant=pytest.fail) == {"a": ["inf", "-inf", None, 1.5], "b": {"c": None}}


def test_figures_repeat_byte_by_byte(experiment: config.Experiment, runs: pd.DataFrame) -> None:
    result = results_of(experiment, runs)
    first = paper.save(experiment, result)
    assert list(first) == ["figure.svg", "figure.png"]
    assert paper.save(experiment, result) == first
    text = first["figure.svg"].decode()
    for word in ("linear", "none", "oracle", "target coverage"):
        assert word in text


def test_the_path_figure_draws_a_line_per_ridge() -> None:
    text = SMALL.replace(
        "parameters = { ridge = 1.0, regularization = 0.1 }",
        "grid = { ridge = [1.0, 10.0], regularization = [0.05, 0.1, 0.2] }",
    ).replace('reference = "L"', "")
    text = text.split('[[methods]]\nname = "split"')[0] + (
        '[[methods]]\nname = "lrqr"\nlabel = "chosen"\nparameters = { selection = "paper", ridge = 10.0 }\n'
        '[figure]\nkind = "path"\n'
    )
    experiment = config.parse(text)
    runs = run.run(experiment, splits=2)
    figure = paper.draw(experiment, results_of(experiment, runs))
    axis = figure.axes[0]
    assert [label.get_text() for label in axis.get_legend().get_texts()] == ["ridge 1", "ridge 10"]
    stars = [line for line in axis.lines if line.get_marker() == "*" and len(line.get_xdata())]
    assert len(stars) == 1
    chosen = runs[(runs["shift"] == "linear") & (runs["method"] == "chosen")]
    assert stars[0].get_xdata()[0] == pytest.approx(chosen["regularization"].mean())


# ------------------------------------------------------------------------------ labels of the target

LABELED = """
title = "T"
splits = 2
base = "ridge"
[data]
kind = "synthetic"
shifts = ["linear"]
[[methods]]
name = "lrqr"
[[methods]]
name = "lrqr"
label = "few"
labels = 40
[[methods]]
name = "split"
label = "alone"
labels = 40
labels_alone = true
"""


@pytest.mark.usefixtures("small_map")
def test_labeled_target_rows_judge_no_method() -> None:
    runs = run.run(config.parse(LABELED))
    whole = run.run(
        config.parse(LABELED.replace("labels = 40", "labels = 0").replace("labels_alone = true", ""))
    )
    assert (runs["n_test"] == whole["n_test"] - 40).all()
    few, alone = (runs[runs["method"] == name].reset_index() for name in ("few", "alone"))
    assert few["contradicted"].isin([0.0, 1.0]).all()
    assert alone["contradicted"].isna().all()
    own = runs[runs["method"] == "lrqr"].reset_index()
    assert (few["threshold"] != own["threshold"]).all()


def test_size_is_measured_by_the_constant_that_would_have_kept_the_promise() -> None:
    """Of sorted scores 1 to 100 it is the 90th: intervals of length 180."""
    n = 100
    scores = np.random.default_rng(0).permutation(np.arange(1.0, n + 1.0))
    test = Rows(np.zeros((n, 1)), scores, np.zeros((n, 1)))
    found = split._judge(Regions("absolute"), 0.9, test, scores, np.full(n, 45.0), 100.0)
    assert found["size"] == 90.0
    assert found["size_matched"] == 0.5
    assert split._judge(Regions("absolute"), 0.9, test, scores, np.full(n, 90.0), 100.0)["coverage"] == 0.9


def test_more_labels_than_rows_and_labels_alone_with_weights_are_refused() -> None:
    with pytest.raises(UsageError, match="labels = 100000: there are only"):
        run.run(config.parse(LABELED.replace("labels = 40", "labels = 100000")))
    with pytest.raises(UsageError, match="labels_alone goes with labels"):
        config.parse(LABELED.replace('name = "split"', 'name = "weighted"'))
