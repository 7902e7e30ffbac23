"""What a report is made of: the dictionaries of ``evaluate``, ``compare`` and ``diagnose``, checked.

Shares (coverage, infinite, ...) are fractions of 1. ``None`` stands for what could not be computed,
infinity for what is infinite (also as the string "inf", since JSON has no infinity). Keys that are not
listed here are kept in the JSON and the CSV, but the page does not know them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lrqr.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping

Number = float | None


class _Row(BaseModel):
    model_config = ConfigDict(extra="allow", protected_namespaces=())


class Coverage(_Row):
    """Share of labeled target rows inside their set, with its exact (Clopper–Pearson) interval."""

    value: float
    low: float
    high: float
    verdict: str = ""  # "below", "compatible" or "above"


class WeightedCoverage(_Row):
    """Importance-weighted share of source rows inside their set: never to be called coverage."""

    value: float
    se: Number = None


class Histogram(_Row):
    """Counts between ``edges``; one longer than ``counts``."""

    edges: list[float]
    counts: list[float]


class Size(_Row):
    """Length of the intervals (units of the outcome) or number of classes in the sets."""

    mean: Number = None
    median: Number = None
    quantiles: dict[str, Number] = Field(default_factory=dict)  # {"0.05": 1.2, ...}
    infinite: Number = None
    empty: Number = None
    full: Number = None
    singleton: Number = None
    histogram: Histogram | None = None  # of the finite ones


class Group(_Row):
    """A subset of the test rows: a group of a column, or a bin of set sizes."""

    name: str
    n: int
    coverage: Number = None
    low: Number = None
    high: Number = None
    verdict: str = ""
    size: Number = None
    small: bool = False  # too few rows to say anything


class WorstSlab(_Row):
    """Least covered slab of feature space, found on one part of the rows and measured on another."""

    coverage: float
    low: Number = None
    high: Number = None
    n: int | None = None
    share: Number = None  # the least share of rows that a slab must hold


class Level(_Row):
    """Coverage reached when this nominal level was asked for."""

    nominal: float
    coverage: float
    low: Number = None
    high: Number = None


class Feature(_Row):
    """How one feature differs between source and target."""

    name: str
    standardized_difference: Number = None
    coefficient: Number = None
    mean_source: Number = None
    mean_target: Number = None


class Overlap(_Row):
    """Histograms of the out-of-fold domain log-odds over common ``edges``."""

    edges: list[float]
    source: list[float]
    target: list[float]


class Concentration(_Row):
    """The heaviest ``rows`` (shares of the source rows) carry ``weight`` (shares of the weight)."""

    rows: list[float]
    weight: list[float]


class Schema(_Row):
    """What differs between the columns of source and target."""

    only_source: list[str] = Field(default_factory=list)
    only_target: list[str] = Field(default_factory=list)
    changed_types: list[dict[str, str]] = Field(default_factory=list)  # name, source, target
    unseen_categories: list[dict[str, Any]] = Field(default_factory=list)  # name, categories, rows


class Shift(_Row):
    """The keys of ``diagnose --format json``, and two pictures of the weights."""

    n_source: int
    n_target: int
    auc: Number = None
    auc_low: Number = None
    auc_high: Number = None
    effective_size: Number = None
    largest_weight: Number = None
    outside_support: Number = None
    outside_support_here: Number = None  # share of the rows of `evaluate` that lie outside
    negative_mass: Number = None
    verdict: str = ""
    promise: str = ""
    remark: str | None = None  # of `evaluate`, where labels say what the fit could not promise
    features: list[Feature] = Field(default_factory=list)
    overlap: Overlap | None = None
    concentration: Concentration | None = None
    columns: Schema | None = None


class Profile(_Row):
    """Thresholds of test rows against one feature: medians (and quartiles) in bins of the feature."""

    feature: str
    x: list[float]
    threshold: list[Number]
    low: list[Number] = Field(default_factory=list)
    high: list[Number] = Field(default_factory=list)


class Candidate(_Row):
    """A row of the cross-validation table: one (ridge, regularization)."""

    regularization: float
    ridge: Number = None
    criterion: Number = None
    standard_error: Number = None  # of the criterion, over folds
    chosen: bool = False


class Method(_Row):
    """One method's row: over splits with standard errors, or on one test set with an interval."""

    name: str
    coverage: Number = None
    coverage_se: Number = None
    low: Number = None
    high: Number = None
    size: Number = None  # mean over all rows: infinite if one is
    size_se: Number = None
    size_clipped: Number = None  # infinite thresholds replaced by the largest calibration score
    size_clipped_se: Number = None
    infinite: Number = None
    seconds: Number = None
    coverage_difference: Number = None  # paired, to the reference method
    coverage_difference_se: Number = None
    size_difference: Number = None
    size_difference_se: Number = None

    @model_validator(mode="before")
    @classmethod
    def _tell_sizes_apart(cls, row: Any) -> Any:
        """Read runs of ``reproduce``, which call the clipped size ``size``, as the paper does."""
        if not isinstance(row, dict) or "size_allow" not in row or "size_clipped" in row:
            return row
        clipped = {"size_clipped": row.get("size"), "size_clipped_se": row.get("size_se")}
        size = row["size_allow"]
        return (
            row | clipped | {"size": size, "size_se": None if size != row.get("size") else row.get("size_se")}
        )

    @property
    def finite_size(self) -> tuple[Number, Number]:
        """The clipped size where there is one, else the size, and its standard error: it can be drawn."""
        if self.size_clipped is not None:
            return self.size_clipped, self.size_clipped_se
        return self.size, self.size_se


class Evaluation(_Row):
    """``evaluate --format json``. Without target labels ``coverage`` is None."""

    title: str = "Evaluation"
    task: Literal["regression", "classification"] = "regression"
    outcome: str = ""  # the outcome's name, for axis labels
    n: int
    nominal: float
    confidence: float = 0.95
    coverage: Coverage | None = None
    weighted_coverage: WeightedCoverage | None = None
    size: Size
    interval_score: Number = None
    groups: list[Group] = Field(default_factory=list)
    group_column: str = ""
    by_size: list[Group] = Field(default_factory=list)
    worst_slab: WorstSlab | None = None
    levels: list[Level] = Field(default_factory=list)
    shift: Shift | None = None
    methods: list[Method] = Field(default_factory=list)
    profiles: list[Profile] = Field(default_factory=list)
    selection: list[Candidate] = Field(default_factory=list)
    criterion: str = ""  # what the selection minimised
    model: dict[str, Any] = Field(default_factory=dict)
    provenance: dict[str, Any] = Field(default_factory=dict)
    warnings: list[str] = Field(default_factory=list)


class Run(_Row):
    """Coverage and size of one method on one split."""

    method: str
    split: int
    coverage: float
    size: Number = None


class Line(_Row):
    """One line of a curve, with standard errors where known."""

    name: str
    x: list[float]
    y: list[Number]
    se: list[Number] = Field(default_factory=list)
    marked: Number = None  # an x to mark: the chosen λ


class Curve(_Row):
    """A figure of lines, such as coverage against λ."""

    title: str
    x_label: str
    y_label: str
    lines: list[Line]
    log_x: bool = False
    reference: Number = None  # a horizontal line: the nominal level


class Panel(_Row):
    """Methods side by side on one task."""

    name: str = ""
    nominal: float
    splits: int | None = None
    methods: list[Method]
    runs: list[Run] = Field(default_factory=list)


class Check(_Row):
    """A claim, what was found, and whether they agree."""

    claim: str
    expected: str = ""
    found: str = ""
    verdict: str = ""


class Comparison(_Row):
    """``compare --format json``, or a run of ``reproduce`` with one panel a task."""

    title: str = "Comparison"
    nominal: float = 0.9
    splits: int | None = None
    reference: str = "lrqr"
    spread: str = "standard error"  # what coverage_se and size_se are
    methods: list[Method] = Field(default_factory=list)
    runs: list[Run] = Field(default_factory=list)
    panels: list[Panel] = Field(default_factory=list)
    curves: list[Curve] = Field(default_factory=list)
    checks: list[Check] = Field(default_factory=list)
    shift: Shift | None = None
    notes: list[str] = Field(default_factory=list)
    provenance: dict[str, Any] = Field(default_factory=dict)
    warnings: list[str] = Field(default_factory=list)

    def all_panels(self) -> list[Panel]:
        """Return the panels; the methods of the run itself come first, as a panel of their own."""
        if not self.methods:
            return self.panels
        own = Panel(nominal=self.nominal, splits=self.splits, methods=self.methods, runs=self.runs)
        return [own, *self.panels]


class Diagnosed(Shift):
    """``diagnose --format json`` as a page of its own."""

    title: str = "How far are source and target apart?"
    nominal: float = 0.9
    provenance: dict[str, Any] = Field(default_factory=dict)
    warnings: list[str] = Field(default_factory=list)


def parse(results: Mapping[str, Any]) -> Evaluation | Comparison | Diagnosed:
    """Check ``results`` and return them as the model they belong to.

    Raises
    ------
    DataError
        If they belong to none, or lack or mistype a key; the message lists every such key.
    """
    kinds: dict[str, type[Evaluation | Comparison | Diagnosed]] = {
        "size": Evaluation,
        "panels": Comparison,
        "methods": Comparison,
        "curves": Comparison,
        "n_source": Diagnosed,
    }
    kind = next((model for key, model in kinds.items() if key in results), None)
    if kind is None:
        raise DataError(
            "these results come from none of evaluate, compare, reproduce and diagnose: "
            f"their keys are {', '.join(map(repr, results)) or 'missing'}"
        )
    try:
        return kind.model_validate(dict(results))
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(map(str, item['loc']))}: {item['msg'].lower()}" for item in error.errors()
        )
        raise DataError(f"cannot report on these results: {wrong}") from error
