"""An experiment as a file: TOML to validated models, every mistake reported at once.

The format is documented in docs/experiments.md; ``configs/*.toml`` are the examples.
"""

from __future__ import annotations

import inspect
import itertools
import tomllib
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lrqr import plugins
from lrqr.errors import LrqrError, LrqrWarning, UsageError
from lrqr.plugins import Base, FeatureMap, OnMissing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Fraction = Annotated[float, Field(gt=0.0, lt=1.0)]
Count = Annotated[int, Field(ge=1)]


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
    """A task on the user's own files (three files, or one file and a shift), or a shift of another data set.

    Paths are relative to the TOML file, or to the data folder. ``options`` goes with ``dataset``: keyword
    arguments of its ``split``, among them ``shift``.
    """

    name: str
    path: str | None = None
    source: str | None = None
    target: str | None = None
    test: str | None = None
    dataset: str | None = None
    options: dict[str, Any] = {}
    outcome: str | None = None
    prediction: list[str] = []
    probability: str | None = None
    score_column: str | None = None
    features: list[str] = []
    exclude: list[str] = []
    categorical: list[str] = []
    classify: bool = False
    log: list[str] = []
    divide: dict[str, str] = {}
    cycle: dict[str, float] = {}
    drop_first: bool = False
    on_missing: OnMissing = "error"
    shift: Shift | None = None
    base: Base | None = None
    train_share: Fraction = 0.5
    train_rows: int = 0
    source_rows: int = 0
    target_rows: int = 0
    test_rows: int = 0

    @model_validator(mode="after")
    def _files(self) -> Self:
        three = [self.source, self.target, self.test]
        if self.dataset is not None:
            shift = str(self.options.get("shift"))
            _check_options(self.dataset, [shift], [name for name in self.options if name != "shift"])
            if self.model_fields_set - {"name", "dataset", "options"}:
                raise ValueError("with dataset give name and options only")
            return self
        if self.options:
            raise ValueError("options goes with dataset")
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
    """A data set (a file of ``lrqr.study.datasets``, or "tables"), which of its shifts, with what options."""

    kind: str
    shifts: list[str] = []
    options: dict[str, Any] = {}
    tables: list[Table] = []

    @model_validator(mode="after")
    def _known(self) -> Self:
        if (self.kind == "tables") != bool(self.tables):
            raise ValueError('[[data.tables]] goes with kind = "tables", and only with it')
        known = [table.name for table in self.tables]
        _check_options(self.kind, self.shifts, self.options, known)
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
    ``feature_map`` is that of `lrqr.calibrate.threshold.ThresholdModel`, with the same default as everywhere.
    ``ratio = "true"`` gives the method the true likelihood ratio in place of the estimated one, and
    fails where the data set does not know it; ``ratio = "best"`` takes the true one where it is known.
    ``labels`` rows of the target bring their outcomes to the fit; ``labels_alone`` calibrates on them alone.
    ``abstain`` gives rows outside the source's support an infinite threshold.
    """

    name: str
    label: str = ""
    feature_map: FeatureMap = "auto"
    ratio: Literal["estimated", "true", "best"] = "estimated"
    labels: Annotated[int, Field(ge=0)] = 0
    labels_alone: bool = False
    abstain: bool = False
    parameters: dict[str, Any] = {}
    grid: dict[str, list[Any]] = {}

    @model_validator(mode="before")
    @classmethod
    def _renamed(cls, values: Any) -> Any:
        """Take the old name of ``feature_map``, and warn of the new one."""
        if not isinstance(values, dict) or "features" not in values or "feature_map" in values:
            return values
        warnings.warn(
            f"features = {values['features']!r} of a method is now feature_map = {values['features']!r}",
            LrqrWarning,
            stacklevel=2,
        )
        return {"feature_map" if key == "features" else key: value for key, value in values.items()}

    @model_validator(mode="after")
    def _known(self) -> Self:
        estimator = _plugin("methods", self.name).ESTIMATOR
        accepted = inspect.signature(estimator).parameters
        own = [name for name in accepted if name not in ("coverage", "random_state")]
        _require_known([*self.parameters, *self.grid], own, f"parameter of {self.name}")
        twice = sorted(set(self.parameters) & set(self.grid))
        if twice:
            raise ValueError(f"{', '.join(twice)}: in parameters and in grid")
        if self.labels_alone and (estimator.USES_RATIO or not self.labels):
            raise ValueError("labels_alone goes with labels, and with methods that use no likelihood ratio")
        return self

    def expand(self) -> list[Method]:
        """Return one method without a grid for every combination, labeled by its values."""
        made = []
        for values in itertools.product(*self.grid.values()):
            chosen = dict(zip(self.grid, values, strict=True))
            suffix = ", ".join(f"{name}={value}" for name, value in chosen.items())
            label = (self.label or self.name) + (f" ({suffix})" if suffix else "")
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
    """What to draw: coverage and size of each method, or coverage along a grid of λ (``logarithmic``)."""

    kind: Literal["methods", "path"] = "methods"
    title: str = ""
    size_label: str = "mean size"
    columns: Count = 4
    logarithmic: bool = False


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


def parse(text: str, *, origin: str = "the configuration") -> Experiment:
    """Read an experiment from TOML text.

    Raises
    ------
    UsageError
        One message with everything that is wrong in ``origin``: the place, the value, what to do.
    """
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{origin} is not TOML: {error}") from error
    try:
        return Experiment.model_validate(raw)
    except ValidationError as error:
        problems = [_explain(item) for item in error.errors(include_url=False)]
        raise UsageError(f"{origin}: {len(problems)} problem(s)\n  " + "\n  ".join(problems)) from error


def load(path: str | Path) -> Experiment:
    """Read an experiment from a TOML file; see :func:`parse`."""
    file = Path(path)
    if not file.is_file():
        raise UsageError(f"there is no experiment file {file}")
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not TOML: {error}") from error
    experiment = parse(text, origin=str(file))
    tables = [_anchored(table, file.parent) for table in experiment.data.tables]
    return experiment.model_copy(update={"data": experiment.data.model_copy(update={"tables": tables})})


def _anchored(table: Table, folder: Path) -> Table:
    """Make those paths of a table absolute that exist beside the TOML file; others are in the data folder."""
    paths = {name: getattr(table, name) for name in ("path", "source", "target", "test")}
    beside = {name: folder / path for name, path in paths.items() if path and (folder / path).exists()}
    return table.model_copy(update={name: str(path.resolve()) for name, path in beside.items()})


# the model that each key holds, for the names that are known there
_MODELS: dict[Any, type[BaseModel]] = {
    "data": Data,
    "tables": Table,
    "shift": Shift,
    "ratio": Ratio,
    "methods": Method,
    "expect": Expectation,
    "published": Published,
    "figure": Figure,
}


def _explain(item: Any) -> str:
    place = ".".join(str(part) for part in item["loc"]) or "the file"
    if item["type"] == "extra_forbidden":
        inside = [part for part in item["loc"][:-1] if part in _MODELS]
        fields = list((_MODELS[inside[-1]] if inside else Experiment).model_fields)
        hint = plugins.suggest(str(item["loc"][-1]), fields)
        return f"{place}: unknown key{hint} (known: {', '.join(fields)})"
    if item["type"] == "missing":
        return f"{place}: missing"
    message = str(item["msg"]).removeprefix("Value error, ")
    value = item["input"]
    shown = "" if isinstance(value, dict | list | BaseModel) else f" (got {value!r})"
    return f"{place}: {message}{shown}"


def _plugin(package: str, name: str) -> Any:
    """Load a plug-in; its UsageError becomes the ValueError that pydantic collects."""
    try:
        return plugins.load(package, name)
    except LrqrError as error:
        raise ValueError(str(error)) from error


def _check_options(kind: str, shifts: list[str], options: Iterable[str], tables: Sequence[str] = ()) -> None:
    """Raise ValueError unless a data set has these shifts (the tables, where there are any) and options."""
    module = _plugin("study.datasets", kind)
    _require_known(shifts, tables or module.SHIFTS, f"shift of {kind}")
    accepted = [name for name in inspect.signature(module.split).parameters if name not in ("shift", "seed")]
    _require_known(options, [] if tables else accepted, f"option of {kind}")


def _require_known(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Raise one ValueError that names everything in ``given`` that is not ``known``."""
    known = list(known)
    wrong = [f"{name!r}{plugins.suggest(name, known)}" for name in given if name not in known]
    if wrong:
        raise ValueError(f"unknown {what} {'; '.join(wrong)} (known: {', '.join(known) or 'none'})")
