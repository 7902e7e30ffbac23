"""Measure what docs/selection.md and docs/certificate.md say of the default and no experiment compares.

``python scripts/measure_default.py few-rows -o FILE.csv``: learned and given features, a constant, and split
conformal on 200 + 100 to 600 + 300 rows of the same splits (when does learning begin to pay?).
``certificate``: the coverage of the default beside its certified lower bound.
``slope``: the default with its log-odds times the slope of a logistic regression of the domain on them, out
of fold, and divided by the slope of the estimated on the true log-ratios, which only a made shift can know.

One row per split, size and variant is appended to the file as soon as it is there, and what the file holds is
not measured again; then the means are printed. ``--seed`` other than an experiment's own makes fresh splits.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from lrqr.calibrate.calibrate import Options, calibrate, scores_of, thresholds_of
from lrqr.calibrate.threshold import cap_infinite
from lrqr.plugins import load
from lrqr.stats.metrics import region_size
from lrqr.stats.quantiles import conformal_quantile, order_statistic, tolerant_ceil
from lrqr.study import config, run
from lrqr.study.split import predict_with_base, seed_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lrqr.study.datasets import Rows, ShiftData

COLUMNS = [
    "split",
    "method",
    "ridge",
    "coverage",
    "size",
    "infinite",
    "shift",
    "n_source",
    "n_target",
    "size_matched",
]
SIZES = ((200, 100), (300, 150), (400, 200), (600, 300))


def main() -> None:
    """Measure what is missing in the file, then print the means."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--experiment", default="selection", help="whose tasks are taken")
    parser.add_argument("--tasks", default="", help="a comma between names; all without")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--seed", type=int, default=301)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    job = run.job_of(config.load(run.find(given.experiment)))
    tasks = given.tasks.split(",") if given.tasks else list(job.bases)
    measure, extra = STUDIES[given.study]
    header = COLUMNS + extra
    if not given.output.exists():
        given.output.write_text(",".join(header) + "\n", encoding="utf-8")
    found = pd.read_csv(given.output)
    done = set(zip(found["shift"], found["split"], strict=True))
    for number in range(given.splits):
        for task in tasks:
            if (task, number) not in done:
                data, score, seed = drawn(job, task, number, given.seed)
                rows = [{"split": number, "shift": task} | row for row in measure(data, score, seed)]
                with given.output.open("a", encoding="utf-8", newline="") as file:
                    csv.DictWriter(file, header, restval="", lineterminator="\n").writerows(rows)
    print(means(pd.read_csv(given.output), extra).to_string())


def drawn(job: run.Job, task: str, number: int, seed: int) -> tuple[ShiftData, str, int]:
    """Return the rows of a split with predictions, the score, and the seed of all that is random."""
    own = seed_of(seed, task, number)
    data, base = job.draw(task, own), job.bases[task]
    if base is not None and data.source.prediction is None:
        data = predict_with_base(data, base, own)
    score = ("lac" if data.classes else "absolute") if job.score == "auto" else job.score
    return data, score, own


def few_rows(data: ShiftData, score: str, seed: int) -> Iterator[dict[str, Any]]:
    """Judge four thresholds at every size; smaller samples are the first rows of larger ones."""
    rng = np.random.default_rng(seed)
    source, target = (
        rows.take(rng.permutation(len(rows))) for rows in (replace(data.source, ratio=None), data.target)
    )
    test = replace(data.test, ratio=None)
    for n_source, n_target in SIZES:
        some = source.take(np.arange(min(n_source, len(source))))
        unlabeled = target.take(np.arange(min(n_target, len(target))))
        size = {"n_source": n_source, "n_target": n_target}
        for name in ("learned", "constant", "given"):
            model = calibrate(some, unlabeled, Options(score, "lrqr", 0.9, name, seed))
            yield size | {"method": name} | judged(test, score, thresholds_of(model, test), some)
        scores = scores_of(some, score)
        split = np.full(len(test), conformal_quantile(scores, 0.9))
        yield size | {"method": "split"} | judged(test, score, split, some)


def certificate(data: ShiftData, score: str, seed: int) -> Iterator[dict[str, Any]]:
    """Judge the default, and say what its certificate says."""
    source, test = replace(data.source, ratio=None), replace(data.test, ratio=None)
    model = calibrate(source, data.target, Options(score, "lrqr", 0.9, "auto", seed, certify=True))
    found = model.certificate_
    row = {"method": "default", "n_source": len(source), "n_target": len(data.target)}
    row |= judged(test, score, thresholds_of(model, test), source)
    yield row | {
        "lower_bound": found.lower_bound,
        "held": float(row["coverage"] >= found.lower_bound),
        "sensitivity": min(found.sensitivity, 1000.0),
        "effective_size": found.effective_size,
    }


def slope(data: ShiftData, score: str, seed: int) -> Iterator[dict[str, Any]]:
    """Judge the default with three scales of its log-odds in the offset; the shape stays as it is."""
    source, test = replace(data.source, ratio=None), replace(data.test, ratio=None)
    model = calibrate(source, data.target, Options(score, "lrqr", 0.9, "learned", seed))
    learned = model.learned_
    own, of_test = (
        np.log(learned.source_ratio_),
        np.log(learned.ratio(model.features(test.features, test.prediction))),
    )
    of_target = np.mean([ratio.target_log_odds_ for ratio in learned.ratios_], axis=0) - np.log(learned.norm_)
    truth = np.log(data.source.ratio)
    domain = np.repeat([0, 1], [len(own), len(of_target)])
    pooled = np.concatenate([own, of_target])[:, None]
    logistic = LogisticRegression(C=np.inf, class_weight="balanced").fit(pooled, domain).coef_[0, 0]
    on_true = np.polyfit(truth, own, 1)[0]
    of_true = np.polyfit(own, truth, 1)[0]
    before = thresholds_of(model, test) - model.offset_.lift(np.exp(of_test))
    facts = {"logistic": logistic, "on_true": on_true, "of_true": of_true}
    for name, factor in {"default": 1.0, "logistic": logistic, "divided": 1.0 / on_true}.items():
        norm = np.exp(factor * own).mean()
        offset = replace(model.offset_, ratios=np.exp(factor * own) / norm)
        row = {"method": name, "n_source": len(source), "n_target": len(data.target)} | facts
        yield row | judged(test, score, before + offset.lift(np.exp(factor * of_test) / norm), source)
    offset = replace(model.offset_, ratios=data.source.ratio / data.source.ratio.mean())
    row = {"method": "true ratio", "n_source": len(source), "n_target": len(data.target)} | facts
    yield row | judged(test, score, before + offset.lift(data.test.ratio / data.source.ratio.mean()), source)


def judged(test: Rows, score: str, thresholds: Any, source: Rows) -> dict[str, float]:
    """Return coverage and size, also relative to the constant that would just have kept the promise."""
    module, scores = load("scores", score), scores_of(test, score)
    clipped = cap_infinite(thresholds, "clip", float(scores_of(source, score).max()))
    constant = np.full(len(test), order_statistic(scores, tolerant_ceil(0.9 * len(scores))))
    size, best = (
        float(region_size(region=module.region(test.prediction, each)).mean()) for each in (clipped, constant)
    )
    return {
        "coverage": float((scores <= thresholds).mean()),
        "size": size,
        "infinite": float(np.isposinf(thresholds).mean()),
        "size_matched": size / best,
    }


def means(found: pd.DataFrame, extra: list[str]) -> pd.DataFrame:
    """Return distance and shortfall of the mean coverage of the tasks, and sizes, of each variant."""
    keys = ["n_source", "n_target", "method"] if "learned" in set(found["method"]) else ["method"]
    tasks = found.groupby([*keys, "shift"])[["coverage", "size_matched", *extra]].mean().reset_index()
    tasks["dev"], tasks["short"] = (tasks["coverage"] - 0.9).abs(), (0.9 - tasks["coverage"]).clip(lower=0)
    single = (found["coverage"] - 0.9).abs().groupby([found[key] for key in keys]).mean()
    averaged = tasks.groupby(keys)[["coverage", "dev", "short", "size_matched", *extra]].mean()
    return averaged.assign(worst=tasks.groupby(keys)["coverage"].min(), single=single).round(4)


STUDIES = {
    "few-rows": (few_rows, []),
    "certificate": (certificate, ["lower_bound", "held", "sensitivity", "effective_size"]),
    "slope": (slope, ["logistic", "on_true", "of_true"]),
}

if __name__ == "__main__":
    main()
