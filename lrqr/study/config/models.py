"""What an experiment file may say: the models of its parts."""

from __future__ import annotations

import inspect
import itertools
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from lrqr import plugins
from lrqr.errors import LrqrError
from lrqr.plugins import Base, FeatureMap, OnMissing

if TYPE_CHECKING:
    from collections.abc import Iterable

Fraction = Annotated[float, Field(gt=0.0, lt=1.0)]
Count = Annotated[int, Field(ge=1)]
METRICS = ("coverage", "size", "infinite", "empty")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Shift(_Strict):
    """How one table becomes a source and a target; exactly one of the four ways.

    ``source`` and ``target`` name values of ``column``; ``at`` is a number or "median" and rows whose
    ``column`` is at most that are the source; ``tilt`` draws the target from the same rows with weights
    proportional to exp(sum of coefficient × column); ``soft`` assigns each row to the target with probability
    sigmoid(slope × standardized sum of coefficient × standardized column).
    """

    column: str | None = None
    source: list[str | int | float] = []
    target: list[str | int | float] = []
    at: float | Literal["median"] | None = None
    tilt: dict[str, float] = {}
    soft: dict[str, float] = {}
    slope: float = 1.5

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        groups = bool(self.source or self.target)
        ways = {
            "source and target": groups,
            "at": self.at is not None,
            "tilt": bool(self.tilt),
            "soft": bool(self.soft),
        }
        given = [name for name, present in ways.items() if present]
        if len(given) != 1:
            raise ValueError(f"give exactly one of {', '.join(ways)}; got {', '.join(given) or 'none'}")
        if groups and not (self.source and self.target):
            raise ValueError("source and target must both list values of the column")
        if (groups or self.at is not None) != (self.column is not None):
            raise ValueError("column goes with source and target, or with at, and only with them")
        return self


class Table(_Strict):
    """A task on the user's own files: three files, or one file and a shift.

    Paths are relative to the TOML file, or to the data folder.
    """

    name: str
    path: str | None = None
    source: str | None = None
    target: str | None = None
    test: str | None = None
    outcome: str | None = None
    prediction: list[str] = []
    probability: str | None = None
    score_column: str | None = None
    features: list[str] = []
    exclude: list[str] = []
    categorical: list[str] = []
    classify: bool = False
    log: list[str] = []
    on_missing: OnMissing = "error"
    shift: Shift | None = None
    base: Base | None = None
    train_share: Fraction = 0.5
    source_rows: int = 0
    target_rows: int = 0

    @model_validator(mode="after")
    def _files(self) -> Self:
        three = [self.source, self.target, self.test]
        if self.path is None and None in three:
            raise ValueError("give path and shift, or all of source, target and test")
        if self.path is not None and any(three):
            raise ValueError("path is one table to be split: leave out source, target and test")
        if (self.path is None) != (self.shift is None):
            raise ValueError("shift goes with path: it says how the one table becomes source and target")
        if self.outcome is None and self.score_column is None:
            raise ValueError("give outcome, or score_column for scores made elsewhere")
        return self


class Data(_Strict):
    """Which data set (a file of ``lrqr.study.datasets``, or "tables"), which of its shifts, with which options."""

    kind: str
    shifts: list[str] = []
    options: dict[str, Any] = {}
    tables: list[Table] = []

    @model_validator(mode="after")
    def _known(self) -> Self:
        module = _plugin("study.datasets", self.kind)
        if (self.kind == "tables") != bool(self.tables):
            raise ValueError('[[data.tables]] goes with kind = "tables", and only with it')
        known = [table.name for table in self.tables] if self.tables else module.SHIFTS
        _require_known(self.shifts, known, f"shift of {self.kind}")
        options = [
            name for name in inspect.signature(module.split).parameters if name not in ("shift", "seed")
        ]
        _require_known(self.options, [] if self.tables else options, f"option of {self.kind}")
        if len(set(known)) < len(known):
            raise ValueError("two tables have the same name")
        return self

    def chosen(self) -> list[str]:
        """Return the names of the shifts: those listed, or all."""
        known = [table.name for table in self.tables] or plugins.load("study.datasets", self.kind).SHIFTS
        return self.shifts or list(known)


class Ratio(_Strict):
    """Parameters of the one likelihood ratio that all methods of a split share."""

    classifier: Literal["logistic", "hist-gradient-boosting"] = "logistic"
    cross_fit: int = 5
    C: float | Literal["cv"] = "cv"
    clip: tuple[float, float] | None = None
    normalize: bool = True


class Method(_Strict):
    """A method with its parameters.

    ``grid`` lists several values of some parameters and makes one entry of each combination.
    ``ratio = "true"`` gives the method the true likelihood ratio in place of the estimated one, and
    fails where the data set does not know it; ``ratio = "best"`` takes the true one where it is known.
    """

    name: str
    label: str = ""
    features: FeatureMap = "given"
    ratio: Literal["estimated", "true", "best"] = "estimated"
    parameters: dict[str, Any] = {}
    grid: dict[str, list[Any]] = {}

    @model_validator(mode="after")
    def _known(self) -> Self:
        accepted = inspect.signature(_plugin("methods", self.name).ESTIMATOR).parameters
        own = [name for name in accepted if name not in ("coverage", "random_state")]
        _require_known([*self.parameters, *self.grid], own, f"parameter of {self.name}")
        twice = sorted(set(self.parameters) & set(self.grid))
        if twice:
            raise ValueError(f"{', '.join(twice)}: in parameters and in grid")
        return self

    def expand(self) -> list[Method]:
        """Return one method without a grid for every combination, labeled by its values."""
        if not self.grid:
            return [self.model_copy(update={"label": self.label or self.name})]
        made = []
        for values in itertools.product(*self.grid.values()):
            chosen = dict(zip(self.grid, values, strict=True))
            suffix = ", ".join(f"{name}={value}" for name, value in chosen.items())
            label = f"{self.label or self.name} ({suffix})"
            parameters = self.parameters | chosen
            made.append(self.model_copy(update={"label": label, "parameters": parameters, "grid": {}}))
        return made


class Expectation(_Strict):
    """A recorded claim: the mean over splits of a metric (or of a paired difference) lies in an interval.

    ``method`` is a label. With ``minus`` the metric is the paired difference to that method, with ``over``
    the quotient of the two means. Without ``shift`` the claim is made for every shift.
    """

    method: str
    metric: Literal["coverage", "size", "infinite", "empty"] = "coverage"
    shift: str | None = None
    minus: str | None = None
    over: str | None = None
    low: float = float("-inf")
    high: float = float("inf")
    reason: str

    @model_validator(mode="after")
    def _interval(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low {self.low} is above high {self.high}")
        if self.minus and self.over:
            raise ValueError("give minus or over, not both")
        return self


class Published(_Strict):
    """A number of the paper, to be printed beside ours."""

    method: str
    shift: str | None = None
    coverage: float | None = None
    coverage_sd: float | None = None
    size: float | None = None


class Figure(_Strict):
    """What to draw: coverage and size of each method, or coverage along a grid of λ."""

    kind: Literal["methods", "path"] = "methods"
    title: str = ""
    size_label: str = "mean size"
    columns: Count = 4


class Experiment(_Strict):
    """Everything that ``lrqr reproduce`` needs to run methods × shifts × splits.

    ``score = "auto"`` is lac for classes and absolute for numbers; ``base`` is fitted where the data bring no
    predictions.
    """

    title: str
    paper: str = ""
    splits: Count = 20
    coverage: Fraction = 0.9
    seed: Annotated[int, Field(ge=0)] = 0
    score: str = "absolute"
    base: Base | None = None
    reference: str = "lrqr"
    data: Data
    ratio: Ratio = Ratio()
    methods: list[Method] = Field(min_length=1)
    figure: Figure = Figure()
    expect: list[Expectation] = []
    published: list[Published] = []

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.score != "auto":
            _plugin("scores", self.score)
        labels = [method.label for method in self.expanded()]
        if len(set(labels)) < len(labels):
            raise ValueError(f"two methods have the same label: {', '.join(labels)}; set label")
        named = [claim.method for claim in self.expect]
        named += [other for claim in self.expect for other in (claim.minus, claim.over) if other]
        _require_known([*named, *(row.method for row in self.published)], labels, "method label")
        shifts = [claim.shift for claim in self.expect if claim.shift]
        _require_known(shifts, self.data.chosen(), "shift in expect")
        if self.reference != "lrqr":
            _require_known([self.reference], labels, "reference")
        return self

    def expanded(self) -> list[Method]:
        """Return the methods with their grids written out."""
        return [entry for method in self.methods for entry in method.expand()]


def _plugin(package: str, name: str) -> Any:
    """Load a plug-in; its UsageError becomes the ValueError that pydantic collects."""
    try:
        return plugins.load(package, name)
    except LrqrError as error:
        raise ValueError(str(error)) from error


def _require_known(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Raise one ValueError that names everything in ``given`` that is not ``known``."""
    known = list(known)
    wrong = [f"{name!r}{plugins.suggest(name, known)}" for name in given if name not in known]
    if wrong:
        raise ValueError(f"unknown {what} {'; '.join(wrong)} (known: {', '.join(known) or 'none'})")
