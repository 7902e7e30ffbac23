"""Where coverage is not as promised, `evaluate` names the cause that the data speak for, with evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from commands import GIVEN, NUMBERS, files, lrqr, table, write

from lrqr.commands.causes import causes
from lrqr.results import Coverage, Evaluation, Feature, Fit, Method, Shift, Size

if TYPE_CHECKING:
    from pathlib import Path

COPIED, UNLIKE = "These rows calibrated the model", "These rows are not like the target of the fit"


def judged(found: Any, method: str = "lrqr", infinite: float = 0.0, **of_shift: Any) -> Evaluation:
    """Make a result of 400 rows whose feature a had the mean 1 in the target of the fit, 0 in the source."""
    moved = of_shift.pop("mean_here", 1.0)
    feature = Feature(
        name="a", standardized_difference=1.0, mean_source=0.0, mean_target=1.0, mean_here=moved
    )
    facts = {
        "n_source": 400,
        "n_target": 400,
        "auc": 0.7,
        "auc_low": 0.66,
        "auc_high": 0.74,
        "effective_size": 150.0,
        "outside_support": 0.01,
        "outside_support_here": 0.01,
        "verdict": "shift within reach",
        "features": [feature],
    }
    return Evaluation(
        n=400,
        nominal=0.9,
        coverage=Coverage(value=0.8, low=0.7, high=0.85, verdict=found),
        size=Size(infinite=infinite),
        methods=[Method(name=method, coverage=0.8), Method(name="weighted", coverage=0.87)],
        model=Fit(method=method),
        shift=Shift(**(facts | of_shift)),
    )


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (judged("below", outside_support_here=0.1), [UNLIKE, "10.0 % of them", "against 1.0 %", "87.0 %"]),
        (judged("below", mean_here=1.5), [UNLIKE, "a averages 1.5 here, 1 in that target"]),
        (judged("below", "split"), ["split takes no account of the shift (domain AUC 0.70)"]),
        (
            judged("below", "split", verdict="no shift detected"),
            ["A shift is not the cause", "0.66 to 0.74", "trained on the calibration rows", "outcome"],
        ),
        (
            judged("below", verdict="no overlap", effective_size=2.0, outside_support=0.6),
            ["beyond what the source can answer", "effective size 2 of 400", "60.0 % of the target"],
        ),
        (
            judged("below"),
            ["look like the target of the fit", "the outcome depends on the features in another way"],
        ),
        (judged("above", infinite=0.2), ["20.0 % of the thresholds are infinite", "effective size 150"]),
        (judged("above"), ["may vary less here", "Nothing must be done"]),
        (judged("above", mean_here=0.0), [UNLIKE, "a averages 0 here, 1 in that target"]),
    ],
)
def test_each_cause_comes_with_its_evidence(result: Evaluation, said: list[str]) -> None:
    found = causes(result)
    assert len(found) == 1
    assert all(words in found[0] for words in said)


def test_two_causes_are_two_sentences_and_no_more() -> None:
    unlike, overlap = causes(judged("below", outside_support_here=0.9, verdict="no overlap"))
    assert unlike.startswith(UNLIKE)
    assert overlap.startswith("The shift is beyond")


@pytest.mark.parametrize(
    "result", [judged("compatible"), judged("compatible", outside_support_here=0.9, verdict="no overlap")]
)
def test_a_promise_that_was_kept_needs_no_cause(result: Evaluation) -> None:
    assert causes(result) == []


def test_a_difference_by_chance_is_no_cause() -> None:
    """Means and shares of 400 rows differ by so much with rows drawn alike."""
    (only,) = causes(judged("below", mean_here=1.1, outside_support_here=0.02))
    assert "look like the target of the fit" in only


@pytest.mark.parametrize("few", [False, True])
def test_calibration_rows_are_recognized_by_file_and_by_score(folder: Path, *, few: bool) -> None:
    source = folder / "source.csv"
    if few:
        source = write(folder, again=table(200, seed=1).sample(90, random_state=0))["again"]
    found = lrqr("evaluate", folder / "model", source, "--format", "json").json
    assert found["known_file"] == ("" if few else "source")
    assert found["known_rows"] == 1.0
    assert len(found["causes"]) == 1
    assert found["causes"][0].startswith(COPIED)
    assert COPIED in " ".join(lrqr("evaluate", folder / "model", source).out.split())


def test_fresh_rows_with_common_scores_are_not_taken_for_calibration_rows(tmp_path: Path) -> None:
    """Errors of ratings take few values: every fresh row has the score of some calibration row."""
    frames = {
        "source": table(200, seed=1),
        "target": table(200, 0.5, seed=2),
        "test": table(200, 0.5, seed=3),
    }
    paths = write(tmp_path, **{name: frame.round({"y": 0, "yhat": 0}) for name, frame in frames.items()})
    model = tmp_path / "model"
    assert lrqr("fit", paths["source"], paths["target"], *NUMBERS, *GIVEN, "-o", model).code == 0
    found = lrqr("evaluate", model, paths["test"], "--format", "json").json
    assert found["known_rows"] is None
    assert not any(sentence.startswith(COPIED) for sentence in found["causes"])


def test_a_model_trained_on_the_calibration_rows_is_suspected_where_there_is_no_shift(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    source = table(300, seed=1)
    source["yhat"] = source["y"] + 0.05 * rng.normal(size=300)
    paths = write(tmp_path, source=source, target=table(200, seed=2), test=table(300, seed=3))
    model = tmp_path / "model"
    ran = lrqr("fit", paths["source"], paths["target"], *NUMBERS, "--method", "split", "-o", model)
    assert ran.code == 0
    text = " ".join(lrqr("evaluate", model, paths["test"]).out.split())
    assert "trained on the calibration rows" in text
    assert "--method lrqr" not in text


def test_rows_unlike_the_target_of_the_fit_are_named_before_the_outcome_is(tmp_path: Path) -> None:
    paths = files(tmp_path)
    far = write(tmp_path, far=table(300, 3.0, seed=4))["far"]
    model = tmp_path / "model"
    fit = lrqr("fit", paths["source"], paths["target"], *NUMBERS, "--feature-map", "constant", "-o", model)
    assert fit.code == 0
    found = lrqr("evaluate", model, far, "--report", tmp_path / "report.html", "--format", "json").json
    assert found["coverage"]["verdict"] == "below"
    assert found["causes"][0].startswith(UNLIKE)
    assert f"{100 * found['shift']['outside_support_here']:.1f} % of them" in found["causes"][0]
    assert UNLIKE in (tmp_path / "report.html").read_text()


def test_predictions_that_had_moved_at_the_fit_are_the_cause() -> None:
    said = "The features look alike, but the predictions differ: another model or another unit?"
    assert causes(judged("below", predictions=said)) == [f"Said at the fit: {said}"]
    assert causes(judged("compatible", predictions=said)) == []
