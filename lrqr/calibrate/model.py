"""A calibrated model: all that turns rows of a table into thresholds, intervals or sets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lrqr import plugins
from lrqr.arrays import Stored, agree, by_name, nested, one_of, record
from lrqr.calibrate import store as artifact
from lrqr.calibrate.base import BaseLearner
from lrqr.calibrate.regions import Regions
from lrqr.calibrate.threshold import ThresholdModel
from lrqr.data import tables
from lrqr.data.encoder import TableEncoder
from lrqr.data.roles import Roles
from lrqr.errors import ArtifactError, UsageError
from lrqr.results import Details
from lrqr.stats.support import Support

if TYPE_CHECKING:
    import os
    from collections import Counter

    from lrqr.arrays import BoolArray, FloatArray
    from lrqr.data.tables import Sample
    from lrqr.plugins import Infinite

PRECOMPUTED = "precomputed"
"""The score that the user computes: its regions are sets of scores, not of outcomes."""


@dataclass(frozen=True)
class Answer:
    """What the model says of some rows.

    Attributes
    ----------
    features : array of shape (n, d)
        Encoded features.
    prediction : array of shape (n, k)
        What the score takes.
    threshold : array of shape (n,)
        In score units.
    region : float array of shape (n, 2) or bool array of shape (n, K)
        Intervals or sets; for a score of the user's own, all scores up to the threshold.
    learned : array of shape (n, 1 or 2) or None
        Learned features of the model's own method, which its other levels share.
    """

    features: FloatArray
    prediction: FloatArray
    threshold: FloatArray
    region: Any
    learned: FloatArray | None = None


@dataclass(frozen=True)
class CalibratedModel(Stored):
    """What `lrqr fit` makes and `lrqr.load` gives back.

    Attributes
    ----------
    roles : Roles
        Which column is what, as plain names.
    score : str
    encoder : TableEncoder
    threshold : ThresholdModel
    companions : dict of str to ThresholdModel
        Other methods calibrated on the same rows, for comparison.
    base : BaseLearner or None
    support : Support
        Flags rows that lie where the source has none.
    details : dict
        Fit summary, diagnosis and provenance, as JSON values.
    """

    STATE: ClassVar[dict[str, Any]] = {
        "roles": record(Roles),
        "score": one_of(*plugins.names("scores")),
        "encoder": nested(TableEncoder, d="d"),
        "threshold": nested(ThresholdModel, d="d"),
        "companions": by_name(nested(ThresholdModel, d="d")),
        "base": nested(BaseLearner, d="d") | None,
        "support": nested(Support, d="d"),
        "details": record(Details, plain=True),
    }

    roles: Roles
    score: str
    encoder: TableEncoder
    threshold: ThresholdModel
    base: BaseLearner | None
    support: Support
    companions: dict[str, ThresholdModel] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)

    def _complete(self, sizes: dict[str, Any]) -> None:
        agree(sizes, "columns", self.encoder.columns_, "encoder.columns")
        agree(sizes, "columns", self.roles.features, "roles.features")

    @property
    def task(self) -> str:
        """``"regression"``, ``"classification"`` or ``"any"``."""
        return str(plugins.load("scores", self.score).TASK)

    @property
    def regions(self) -> Regions:
        """What makes thresholds intervals or sets."""
        return Regions(self.score, self.roles.bounds)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, in the order of the columns of `predict_set`."""
        return self.roles.classes

    @property
    def coverage(self) -> float:
        """The promised coverage, 1-α."""
        return self.threshold.coverage_

    @property
    def largest_score(self) -> float:
        """The largest calibration score."""
        return self.threshold.largest_score_

    def __repr__(self) -> str:
        """Say what it is in one line."""
        return (
            f"CalibratedModel(method={self.threshold.method_!r}, score={self.score!r}, "
            f"coverage={self.coverage:g}, features={len(self.encoder.names_)}, "
            f"calibrated on {self.threshold.n_source_} rows)"
        )

    def predict_threshold(self, frame: Any, *, infinite: Infinite = "allow") -> FloatArray:
        """Thresholds of shape (n,), in score units, for the rows of a pandas or polars frame."""
        return self.answer(self._sample(frame), infinite=infinite).threshold

    def predict_interval(self, frame: Any, *, infinite: Infinite = "allow") -> FloatArray:
        """Lower and upper bounds of shape (n, 2) for the rows of a pandas or polars frame."""
        if self.task == "classification":
            raise UsageError(f"score {self.score!r} gives sets: use predict_set")
        bounds: FloatArray = self.answer(self._sample(frame), infinite=infinite).region
        return bounds

    def predict_set(self, frame: Any, *, infinite: Infinite = "allow") -> BoolArray:
        """Which classes are in each row's set, shape (n, K), columns as in ``classes``."""
        if self.task != "classification":
            raise UsageError(f"score {self.score!r} gives intervals: use predict_interval")
        inside: BoolArray = self.answer(self._sample(frame), infinite=infinite).region
        return inside

    def answer(
        self,
        sample: Sample,
        *,
        infinite: Infinite = "allow",
        by: ThresholdModel | None = None,
        unseen: Counter[tuple[str, str]] | None = None,
    ) -> Answer:
        """Thresholds and regions for a sample, by the model's own method or by one of its companions.

        ``unseen`` takes the counts of categories that the fit has not seen, instead of a warning.
        """
        features = self.encoder.transform(sample.features, row=sample.row, unseen=unseen)
        prediction = self.prediction(sample, features)
        learned = (by or self.threshold).features(features, prediction)
        seen = Answer(features, prediction, np.empty(0), None, learned)
        found = self.answer_again(sample, seen, infinite=infinite, by=by)
        if (by or self.threshold).support_ is None:
            return found
        threshold = np.where(self.encoder.novel(sample.features), np.inf, found.threshold)
        region = self.regions.of(prediction, threshold)
        return replace(found, threshold=threshold, region=region)

    def answer_again(
        self,
        sample: Sample,
        seen: Answer,
        *,
        infinite: Infinite = "allow",
        by: ThresholdModel | None = None,
    ) -> Answer:
        """Answer the same rows by another level or method, from features that are ``seen`` already."""
        threshold = self.thresholds_again(sample, seen, infinite=infinite, by=by)
        region = self.regions.of(seen.prediction, threshold)
        return replace(seen, threshold=threshold, region=region)

    def thresholds_again(
        self,
        sample: Sample,
        seen: Answer,
        *,
        infinite: Infinite = "allow",
        by: ThresholdModel | None = None,
    ) -> FloatArray:
        """Return the thresholds (n,) of `answer_again`, without its regions, which take longer."""
        method = by or self.threshold
        return method.predict(
            seen.features,
            ratio=sample.weight if method.known_ratio_ else None,
            prediction=seen.prediction,
            infinite=infinite,
            learned=seen.learned,
        )

    def outside(self, sample: Sample, answer: Answer) -> BoolArray:
        """Return which rows (n,) lie where the source has none, or hold what the fit never met."""
        return self.support.outside(answer.features) | self.encoder.novel(sample.features)

    def prediction(self, sample: Sample, features: FloatArray) -> FloatArray:
        """Return what the score takes, shape (n, k): from the base learner, or the user's columns."""
        if self.score == PRECOMPUTED:
            return np.empty((len(sample), 0))
        return sample.prediction if self.base is None else self.base.predict(features)

    def scores(self, sample: Sample, prediction: FloatArray) -> FloatArray | None:
        """Scores of labeled rows, shape (n,); None where the sample has no outcomes."""
        outcome: Any = sample.score if self.score == PRECOMPUTED else sample.outcome
        if outcome is None:
            return None
        scores: FloatArray = plugins.load("scores", self.score).score(prediction, outcome)
        return scores

    @property
    def on_missing(self) -> str:
        """How to treat missing values of rows that all need an answer: fill them in if the fit learned to."""
        return "impute" if self.details["provenance"]["on_missing"] == "impute" else "error"

    def needed(self, *more: str) -> tuple[str, ...]:
        """Roles without which a file cannot be scored, and ``more``."""
        prediction = ("prediction",) if self.base is None and self.score != PRECOMPUTED else ()
        weight = ("weight",) if self.threshold.known_ratio_ else ()
        return ("features", *prediction, *weight, *more)

    def _sample(self, frame: Any) -> Sample:
        roles = replace(self.roles, group=None, id=None)
        return tables.read(frame, roles, need=self.needed(), on_missing=self.on_missing, keep_rows=True)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write a model directory (see `lrqr.calibrate.store`)."""
        return artifact.save(self.to_state(), path, force=force)


def load(path: str | os.PathLike[str]) -> CalibratedModel:
    """Read a model directory that `lrqr fit` or `CalibratedModel.save` wrote.

    Raises
    ------
    ArtifactError
        If it is missing, damaged, changed, or of an unknown version.
    """
    state = artifact.load(path)
    try:
        return CalibratedModel.from_state(state)
    except ArtifactError as error:
        raise ArtifactError(f"{Path(path) / artifact.STATE_FILE}: {error}; fit the model again") from error
