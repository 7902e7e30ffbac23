"""The typed result of every command: the one contract that text, JSON, CSV, Markdown, figures and HTML read.

A command builds its result from these classes and returns it; `lrqr.show` turns a result into everything a
user sees, and reads nothing else. docs/cli.md lists the keys from the descriptions below.

How to use them
---------------
* Results are frozen. Building one with a key that is not declared here, or without a required one, is an
  error, so the declaration stays complete.
* A part that does not apply is left out, and then it is in neither the JSON nor the CSV; a part that applies
  and could not be computed is given as None, and is ``null`` there. `Result.to_dict` returns what was given.
* Results that were written by another version or by hand are read with `parse` (or
  ``SomeResult.read(values)``): keys that are not declared here are kept, absent ones get their defaults.

Units
-----
Shares (coverage, infinite, ...) are fractions of 1. None is what could not be computed, infinity what is
infinite; JSON has no infinity, so it is written and read as the string ``"inf"``.

**Size** always means the mean length of intervals, in units of the outcome, or the mean number of classes in
sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lrqr.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Number = float | None
"""A number, or None for what could not be computed or does not apply."""


class Result(BaseModel):
    """A frozen record of a result."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        """Read what was stored, perhaps by another version: unknown keys are kept, absent ones defaulted."""
        return cls.model_validate(dict(values), extra="allow")

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Show numbers and words; lists are to be asked for, or they fill the screen."""
        for name, value in super().__repr_args__():
            if value not in (None, "") and not isinstance(value, list | dict):
                yield name, float(f"{value:.4g}") if isinstance(value, float) else value

    def to_dict(self) -> dict[str, Any]:
        """Return what was given, parts within parts, as dictionaries, lists and plain values."""
        given = [name for name in type(self).model_fields if name in self.model_fields_set]
        values = {name: getattr(self, name) for name in given} | (self.model_extra or {})
        return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


# ------------------------------------------------------------------------------------------ parts


class Coverage(Result):
    """Share of labeled target rows whose outcome is in their interval or set, with its exact interval."""

    value: Number
    """Share of rows; null without rows."""
    low: float
    """Lower end of the Clopper–Pearson interval."""
    high: float
    """Upper end of the Clopper–Pearson interval."""
    verdict: Literal["", "below", "compatible", "above"] = ""
    """`below`, `compatible` or `above`: where that interval lies with respect to the nominal level."""


class WeightedCoverage(Result):
    """Covered share of the calibration rows, weighted by likelihood ratios: 1-α by construction."""

    value: Number
    """Weighted share of source rows; null if all weights are zero."""
    se: Number = None
    """Its standard error."""


class Certificate(Result):
    """What may be promised without target labels, if only the features shifted; asymptotic."""

    lower_bound: float
    """With that confidence, at least this share of the target is covered."""
    estimate: Number = None
    """One-step estimate of the share."""
    confidence: float = 0.95
    """Confidence of the bound."""
    sensitivity: Number = None
    """Γ*, the factor by which the likelihood ratios may be off while the share stays at `at_least`."""
    at_least: Number = None
    """The share that the sensitivity is about."""
    pareto_k: Number = None
    """Tail index of the ratios; above 0.7 they cannot be trusted. `"-inf"` where all are equal."""
    effective_size: Number = None
    """Number of equally weighted source rows that the weighted ones are worth."""
    answered: Number = None
    """`--abstain`: the share of the target rows that it is about; absent without it."""


class Histogram(Result):
    """Counts between edges."""

    edges: list[float]
    """Ends of the bins, one more than counts."""
    counts: list[int]
    """Number of rows in each bin."""


class Distribution(Result):
    """Summary of a number per row."""

    mean: Number = None
    """Mean of the finite ones; infinite without any."""
    median: Number = None
    """Median over all rows."""
    quantiles: dict[str, Number] = Field(default_factory=dict)
    """Quantiles over all rows by their level, such as `"0.05"`."""
    infinite: Number = None
    """Share of rows with an infinite threshold."""


class Size(Distribution):
    """Length of each interval, in units of the outcome, or number of classes in each set.

    Of one bound alone, how far it is from the prediction; negative where it is on the other side of it.
    """

    empty: Number = None
    """Share of empty intervals or sets."""
    full: Number = None
    """Share of sets that hold all classes, or intervals of all possible outcomes."""
    singleton: Number = None
    """Share of sets of one class, or intervals of one point."""
    of: Literal["interval", "distance", "set", "threshold"] = "interval"
    """What was measured: `interval`, `set`, `distance` (of one bound from the prediction), or
    `threshold` for a score of your own."""
    histogram: Histogram | None = None
    """Of the finite ones; absent without any."""


class Group(Result):
    """Some of the judged rows: those of one value of the group column, or of one range of sizes."""

    name: str
    """The value, or the range."""
    n: int
    """Number of rows."""
    coverage: Number = None
    """Share of covered rows."""
    low: Number = None
    """Lower end of an interval that holds for all groups at once (Holm)."""
    high: Number = None
    """Upper end of that interval."""
    verdict: str = ""
    """As for the coverage of all rows, with that interval."""
    p_value: Number = None
    """Of the hypothesis that the group is covered as promised."""
    p_adjusted: Number = None
    """The same, for all groups at once (Holm)."""
    small: bool = False
    """Whether it has fewer than 30 rows: its interval says little."""
    size: Number = None
    """Mean size of the finite ones."""
    smallest: Number = None
    """Smallest size in a range of sizes."""
    largest: Number = None
    """Largest size in a range of sizes."""


class WorstSlab(Result):
    """Least covered slab of feature space, found on one half of the rows and measured on the other."""

    coverage: float
    """Share of covered rows in the slab."""
    low: Number = None
    """Lower end of its exact interval."""
    high: Number = None
    """Upper end of its exact interval."""
    n: int | None = None
    """Number of held-out rows in the slab."""
    share: Number = None
    """The least share of the rows that a slab had to hold."""


class Level(Result):
    """Coverage reached at another nominal level."""

    nominal: float
    """The level."""
    coverage: float
    """Share of covered rows."""
    low: Number = None
    """Lower end of its exact interval."""
    high: Number = None
    """Upper end of its exact interval."""


class Feature(Result):
    """How one feature differs between source and target."""

    name: str
    """The feature."""
    standardized_difference: Number = None
    """Target mean minus source mean, in pooled standard deviations."""
    coefficient: Number = None
    """Log-odds of being a target row per pooled standard deviation; null for trees."""
    mean_source: Number = None
    """Mean in the source."""
    mean_target: Number = None
    """Mean in the target."""
    mean_here: Number = None
    """`evaluate`: mean in the judged rows."""


class Overlap(Result):
    """Histograms of the out-of-fold domain log-odds of source and target rows."""

    edges: list[float]
    """Ends of the bins of both."""
    source: list[float]
    """Number of source rows in each bin."""
    target: list[float]
    """Number of target rows in each bin."""


class Concentration(Result):
    """Which share of the weight the heaviest source rows carry."""

    rows: list[float]
    """Shares of the source rows, heaviest first."""
    weight: list[float]
    """Share of the weight that they carry."""


class Schema(Result):
    """What differs between the columns of source and target."""

    only_source: list[str] = Field(default_factory=list)
    """Columns that only the source has."""
    only_target: list[str] = Field(default_factory=list)
    """Columns that only the target has."""
    changed_types: list[dict[str, str]] = Field(default_factory=list)
    """Columns of another type in each: `name`, `source`, `target`."""
    unseen_categories: list[dict[str, Any]] = Field(default_factory=list)
    """Categories that the source does not have: column `name`, first `categories`, target `rows`."""


class Shift(Result):
    """How far source and target are apart, and what may be promised."""

    n_source: int
    """Number of source rows."""
    n_target: int
    """Number of target rows."""
    auc: Number = None
    """Area under the ROC curve of a cross-fitted classifier of source and target; 0.5 without a shift."""
    auc_low: Number = None
    """Lower end of its 95 % interval."""
    auc_high: Number = None
    """Upper end of its 95 % interval."""
    effective_size: Number = None
    """Number of equally weighted source rows that the weighted ones are worth."""
    largest_weight: Number = None
    """Share of the total weight on one source row."""
    pareto_k: Number = None
    """Tail index of these weights; above 0.7 they cannot be trusted. `"-inf"` where all are equal."""
    outside_support: Number = None
    """Share of the target rows farther from the source than source rows are from one another."""
    negative_mass: Number = None
    """Negative share of the least-squares likelihood ratio."""
    verdict: str = ""
    """`no shift detected`, `shift within reach`, `little overlap` or `no overlap`."""
    features: list[Feature] = Field(default_factory=list)
    """The features, most shifted first."""
    overlap: Overlap | None = None
    """Histograms of the domain scores."""
    concentration: Concentration | None = None
    """How the weight is spread over source rows."""
    promise: str = ""
    """What may be promised, in a sentence."""
    columns: Schema | None = None
    """What differs between the columns."""
    outside_support_here: Number = None
    """`evaluate`: share of the judged rows outside the support."""
    remark: str | None = None
    """`evaluate`: what the labels say where the fit could not promise anything."""
    copies_source: int = 0
    """Source rows that are copies of earlier ones."""
    copies_target: int = 0
    """Target rows that are copies of earlier ones."""
    shared_rows: int = 0
    """Target rows that the source has too."""
    predictions: str = ""
    """How predictions differ between source and target as the features do not; empty if they do not."""


class Profile(Result):
    """Thresholds against one feature, over bins of about equal count."""

    feature: str
    """The feature."""
    x: list[float]
    """Median of the feature in each bin."""
    threshold: list[Number]
    """Median threshold in each bin."""
    low: list[Number] = Field(default_factory=list)
    """First quartile."""
    high: list[Number] = Field(default_factory=list)
    """Third quartile."""


class Examples(Result):
    """Some judged rows, in the order of the middle of their intervals."""

    outcome: list[float]
    """The outcome of each row."""
    lower: list[Number]
    """Lower end of its interval."""
    upper: list[Number]
    """Upper end of its interval."""


class Candidate(Result):
    """One row of the cross-validation table."""

    ridge: Number = None
    """Ridge of the candidate."""
    regularization: float
    """Regularization λ of the candidate."""
    criterion: Number = None
    """What the selection minimizes."""
    standard_error: Number = None
    """Of the criterion, over folds."""
    chosen: bool = False
    """Whether this candidate was chosen."""


class Labels(Result):
    """What labeled target rows said of the thresholds fitted without them, and how they corrected these."""

    n: int
    """Number of labeled target rows."""
    coverage: Number
    """Share of them that the thresholds fitted without them cover."""
    low: Number
    """Lower end of its Clopper–Pearson interval."""
    high: Number
    """Upper end of its Clopper–Pearson interval."""
    p_coverage: Number
    """Exact two-sided p-value of that share against the promised coverage."""
    p_scores: Number
    """Two-sample test of their scores against the source's, given the learned features: p-value."""
    contradicted: bool
    """Whether twice the smaller p-value is below 5 %: then more than the features shifted."""
    drop: float
    """A lower coverage,"""
    power: Number
    """and the chance that the exact test sees it with so many labels."""
    target_mass: Number = None
    """Weight of the labeled target rows in the offset; the rest is the source's."""
    share: Number = None
    """Weight of the source's threshold in the shape; the rest is a constant's."""
    offset: Number = None
    """What is added to that shape, in score units."""


class Fit(Result):
    """What a fit came to. Which of the solver's facts there are depends on the method and the feature map."""

    score: str | None = None
    """The score (in `evaluate`; `inspect` has it beside)."""
    base: str | None = None
    """The base learner (in `evaluate`; `inspect` has it beside)."""
    method: str
    """The method."""
    coverage: Number = None
    """The coverage that was promised."""
    n_source: int | None = None
    """Number of rows that it was calibrated on."""
    n_target: int | None = None
    """Number of target rows."""
    n_features: int | None = None
    """Number of features after encoding."""
    feature_map: str | None = None
    """`given`, `learned` or `constant`."""
    unanswered: Number = None
    """Share of the target that a learned ratio would have left without a finite threshold."""
    floor: Number = None
    """Split conformal's threshold, below which none is for want of overlap; absent elsewhere."""
    answered: Number = None
    """`--abstain`: share of the target rows with an answer; absent without it."""
    guarantee: str = "marginal"
    """`marginal` or `pac`."""
    level: Number = None
    """`pac`: the level that the promised coverage took."""
    price: Number = None
    """`pac`: how many times larger that makes the answers to the target rows; null if not known."""
    largest_score: Number = None
    """Largest calibration score."""
    regularization: Number = None
    """Chosen regularization λ."""
    ridge: Number = None
    """Chosen ridge."""
    beta: Number = None
    """Multiplier β of the likelihood-ratio term."""
    objective: Number = None
    """Value of the objective."""
    gap: Number = None
    """Duality gap: the certificate of the solution."""
    n_iter: int | None = None
    """Number of iterations."""
    converged: bool | None = None
    """Whether the solver reached its tolerance."""
    branch: str | None = None
    """Which case of the solution applies."""
    score_scale: Number = None
    """The unit of the scores inside the method."""
    score_offset: Number = None
    """What was taken off the scores inside the method."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Parameters of the method."""
    thresholds: Distribution | None = None
    """Thresholds on the target rows; null where they depend on ratios known only at `predict`."""
    selection: list[Candidate] = Field(default_factory=list)
    """The cross-validation table (in `inspect`; `evaluate` has it beside)."""
    dropped: int | None = None
    """Number of source rows left out for missing values."""
    training_rows: int | None = None
    """The most rows that one tree model or logistic ratio was trained on: more are sampled."""
    labeled: Labels | None = None
    """What labeled target rows said; absent without them."""


class Method(Result):
    """One method's row: on one set of rows with exact intervals, or over splits with standard errors."""

    name: str
    """The method, or its label in an experiment."""
    coverage: Number = None
    """Share of covered test rows."""
    low: Number = None
    """Lower end of its exact interval."""
    high: Number = None
    """Upper end of its exact interval."""
    size: Number = None
    """Mean size, infinite if one is; in runs of `reproduce`, which have `size_allow`, as `size_clipped`."""
    size_allow: Number = None
    """`reproduce`: mean size, infinite if one is."""
    infinite: Number = None
    """Share of rows with an infinite threshold."""
    empty: Number = None
    """Share of empty intervals or sets."""
    seconds: Number = None
    """Time to fit and predict."""
    regularization: Number = None
    """Regularization λ, mean over splits."""
    ridge: Number = None
    """Ridge, mean over splits."""
    coverage_sd: Number = None
    """Standard deviation of the coverage over splits."""
    coverage_se: Number = None
    """Standard error of the mean coverage over splits."""
    size_sd: Number = None
    """Standard deviation of `size` over splits."""
    size_se: Number = None
    """Standard error of `size`."""
    coverage_difference: Number = None
    """Coverage minus that of the reference method, in the same splits."""
    coverage_difference_se: Number = None
    """Its standard error."""
    size_difference: Number = None
    """`size` minus that of the reference method, in the same splits."""
    size_difference_se: Number = None
    """Its standard error."""
    size_clipped: Number = None
    """Mean size with infinite thresholds counted as the largest calibration score."""
    size_clipped_se: Number = None
    """Its standard error."""
    size_matched: Number = None
    """Mean size, clipped, over that of the constant threshold that would have kept the promise there."""
    contradicted: Number = None
    """`reproduce`: share of the splits in which the labeled target rows contradict the fit without them."""
    published_coverage: Number = None
    """`reproduce`: the paper's coverage."""
    published_coverage_sd: Number = None
    """`reproduce`: the paper's standard deviation over splits."""
    published_size: Number = None
    """`reproduce`: the paper's size."""

    @property
    def mean_size(self) -> tuple[Number, Number]:
        """Mean size, infinite if one is, and its standard error."""
        if self.size_allow is None or self.size_allow == self.size:
            return self.size, self.size_se
        return self.size_allow, None

    @property
    def finite_size(self) -> tuple[Number, Number]:
        """Mean size with infinite ones clipped, where that is known, and its standard error."""
        if self.size_clipped is None:
            return self.size, self.size_se
        return self.size_clipped, self.size_clipped_se

    @property
    def clipped(self) -> bool:
        """Whether `finite_size` is known to count infinite thresholds as the largest score."""
        return self.size_clipped is not None or self.size_allow is not None


class Run(Result):
    """One method on one split."""

    method: str
    """The method."""
    split: int
    """Number of the split, from 0."""
    coverage: float
    """Share of covered test rows."""
    size: Number = None
    """Mean size with infinite thresholds counted as the largest calibration score."""


class Panel(Result):
    """Methods side by side on one task, such as one shift of an experiment."""

    name: str = ""
    """The task."""
    nominal: float
    """The coverage that was promised."""
    splits: int | None = None
    """Number of random splits."""
    methods: list[Method]
    """The methods."""


class Check(Result):
    """A recorded claim of an experiment and what was found."""

    claim: str
    """What was claimed."""
    expected: str = ""
    """The interval that was expected."""
    found: str = ""
    """What was found."""
    verdict: str = ""
    """`holds` or `fails`."""
    reason: str = ""
    """Why it is expected."""


class Column(Result):
    """A column of a file as it would be read."""

    name: str
    """The column."""
    kind: str
    """How its values would be read."""
    missing: int
    """Number of missing values."""
    examples: list[str]
    """Some of its values."""


class Plan(Result):
    """What a run of an experiment would do."""

    name: str
    """Name of the experiment."""
    title: str
    """Its title."""
    paper: str = ""
    """Its place in the paper."""
    shifts: list[str]
    """Names of the shifts."""
    methods: list[str]
    """Labels of the methods."""
    splits: int
    """Number of random splits."""
    fits: int
    """Number of fits: shifts times methods times splits."""
    expectations: int = 0
    """Number of recorded expectations."""


class DataFile(Result):
    """A file of a data set."""

    name: str
    """Its path in the data folder."""
    sha256: str
    """Its recorded digest."""
    size: int
    """Its length in bytes."""


class FileStatus(Result):
    """Whether the files of a data set are as recorded."""

    name: str
    """The data set."""
    status: str
    """`ok`, or what is wrong."""


# ---------------------------------------------------------------------------- results of commands


class Evaluation(Result):
    """`evaluate`: whether a model kept its promise on the rows of a file."""

    title: str = "Evaluation"
    """Method and file."""
    task: Literal["regression", "classification"] = "regression"
    """`regression` or `classification`."""
    outcome: str = ""
    """The outcome's column, or the score's."""
    n: int
    """Number of judged rows: those with an answer."""
    abstained: int | None = None
    """Number of further rows for which a model of `--abstain` has no answer; absent without it."""
    nominal: float
    """The coverage that was promised."""
    confidence: float = 0.95
    """Confidence of the intervals."""
    coverage: Coverage | None = None
    """Coverage; null without outcomes."""
    clusters: int | None = None
    """Clusters that the rows come in, if they were named: the interval takes account of them."""
    causes: list[str] = Field(default_factory=list)
    """Why the coverage is not as promised, as far as the data say, with their evidence."""
    known_file: str = ""
    """The input that this file is (sha256): `source`, `target`, `unlabeled_source`, `labeled_target`."""
    known_rows: Number = None
    """Share of the rows with exactly the score of a calibration row; null where scores repeat, or unknown."""
    known_labels: int | None = None
    """Number of rows that the fit had as labeled target rows; absent if it had none."""
    weighted_coverage: WeightedCoverage | None = None
    """Weighted coverage of the calibration rows: 1-α by construction, no evidence. See `certificate`."""
    certificate: Certificate | None = None
    """What the fit certified without target labels; null where it did not."""
    size: Size
    """How large the intervals or sets are."""
    groups: list[Group] = Field(default_factory=list)
    """The groups of `--group`."""
    group_column: str = ""
    """The column of the groups."""
    by_size: list[Group] = Field(default_factory=list)
    """Rows by their size; empty where all sizes are equal."""
    worst_slab: WorstSlab | None = None
    """Least covered slab of feature space; null with fewer than 50 held-out rows in it."""
    interval_score: Number = None
    """Winkler's interval score, mean of the finite ones."""
    shift: Shift | None = None
    """The shift at the fit, as `diagnose` says it."""
    levels: list[Level] = Field(default_factory=list)
    """Coverage reached at 50 to 95 %, for the methods `lrqr` and `split`."""
    methods: list[Method] = Field(default_factory=list)
    """The model and other methods on the same rows."""
    examples: Examples | None = None
    """Outcomes and intervals of at most 60 random rows; null for sets and without outcomes."""
    profiles: list[Profile] = Field(default_factory=list)
    """Thresholds against the most shifted features."""
    selection: list[Candidate] = Field(default_factory=list)
    """The cross-validation table."""
    criterion: str = ""
    """What the selection minimized."""
    model: Fit | None = None
    """What the model is."""
    provenance: dict[str, Any] = Field(default_factory=dict)
    """Versions, seed and digests of the files of the fit."""
    warnings: list[str] = Field(default_factory=list)
    """What a reader should be warned of."""


class Comparison(Result):
    """`compare`: methods on the same rows; `reproduce`: the same, with one panel a shift."""

    title: str = "Comparison"
    """What was compared."""
    paper: str = ""
    """`reproduce`: place in the paper."""
    nominal: float = 0.9
    """The coverage that was promised."""
    splits: int | None = None
    """Number of random splits."""
    reference: str = "lrqr"
    """The method that paired differences are taken to."""
    methods: list[Method] = Field(default_factory=list)
    """The methods."""
    runs: list[Run] = Field(default_factory=list)
    """The methods on each split."""
    panels: list[Panel] = Field(default_factory=list)
    """`reproduce`: the methods on each shift."""
    checks: list[Check] = Field(default_factory=list)
    """`reproduce`: recorded claims."""
    notes: list[str] = Field(default_factory=list)
    """What a reader should know."""
    provenance: dict[str, Any] = Field(default_factory=dict)
    """Seed, and the share of the rows that a split draws."""
    warnings: list[str] = Field(default_factory=list)
    """What a reader should be warned of."""

    def all_panels(self) -> list[Panel]:
        """Return the panels; the methods of the run itself come first, as a panel without a name."""
        if not self.methods:
            return self.panels
        own = Panel(nominal=self.nominal, splits=self.splits, methods=self.methods)
        return [own, *self.panels]


class LabelsNeeded(Result):
    """How many labeled target rows would tell how much (exact binomial, 95 % intervals)."""

    drop: float
    """A coverage below the promise."""
    to_tell: int
    """Rows from which on `evaluate` finds such a coverage below the promise in 4 of 5 cases."""
    spread: Number
    """Standard deviation of the coverage that the effective size leaves."""
    to_halve: int
    """Rows that leave half of that, if they alone calibrate."""


class Diagnosed(Shift):
    """`diagnose`: how far two files are apart and what may be promised."""

    title: str = "How far are source and target apart?"
    """Title of the report."""
    nominal: float = 0.9
    """The coverage that the verdict is about."""
    labels: LabelsNeeded | None = None
    """How many labeled target rows would tell how much."""
    certificate: Certificate | None = None
    """With `--model`: what its fit certified."""
    provenance: dict[str, Any] = Field(default_factory=dict)
    """Where the numbers come from."""
    warnings: list[str] = Field(default_factory=list)
    """What a reader should be warned of."""


class Model(Result):
    """`inspect` of a model, and what `fit` sums up."""

    kind: Literal["model"] = "model"
    """`model`."""
    score: str
    """The score."""
    base: str | None
    """The base learner, if one was fitted."""
    roles: dict[str, Any]
    """The columns that play a part."""
    features: list[str]
    """The features after encoding."""
    coefficients: dict[str, float] | None
    """Of a threshold that is linear in given features, in score units per unit of the feature; else null."""
    fit: Fit
    """What the fit came to."""
    weighted_coverage: dict[str, Number]
    """Weighted coverage of the calibration rows, 1-α by construction: `value`, `standard_error`."""
    certificate: Certificate | None = None
    """What may be promised without target labels; null where the fit did not say."""
    shift: Shift
    """The shift at the fit, without the parts that only the report shows."""
    compared_with: list[str]
    """Methods that were calibrated beside it."""
    provenance: dict[str, Any]
    """Versions, seed and digests of the files."""


class Facts(Fit):
    """What a model directory says of its fit."""

    parameters: dict[str, Any]
    """Of the method."""
    selection: list[Candidate]
    """The cross-validation table."""


class Source(Result):
    """A file that a model was fitted on."""

    name: str
    """Its name."""
    sha256: str
    """Its digest."""


class Provenance(Result):
    """Where a model comes from, besides versions."""

    on_missing: str
    """What was done with missing values."""
    inputs: dict[str, Source]
    """The files."""


class Details(Result):
    """What a model directory holds besides what predicts."""

    fit: Facts
    """What the fit came to."""
    weighted_coverage: dict[str, Number]
    """Weighted coverage of the calibration rows."""
    certificate: Certificate | None = None
    """What may be promised without target labels."""
    shift: Shift
    """The shift at the fit."""
    provenance: Provenance
    """Where the model comes from."""


class Table(Result):
    """`inspect` of a file."""

    kind: Literal["table"] = "table"
    """`table`."""
    rows: int
    """Number of rows."""
    columns: list[Column]
    """The columns."""


class Predicted(Result):
    """`predict`: how many rows were written, and what is remarkable about them."""

    rows: int
    """Number of rows."""
    infinite: int
    """Rows with an infinite threshold."""
    empty: int
    """Rows with an empty interval or set."""
    outside: int
    """Rows outside the source's support."""
    abstained: int = 0
    """`--abstain`: rows without an answer."""


class Experiments(Result):
    """`reproduce --list` and `--dry-run`."""

    experiments: list[Plan]
    """The experiments."""


class DataSet(Result):
    """`datasets show`: one data set."""

    name: str
    """Its name."""
    title: str
    """What it is."""
    source: str
    """Where it comes from."""
    license: str
    """Its license."""
    shifts: list[str]
    """Names of its shifts."""
    files: list[DataFile]
    """Its files."""


class DataSets(Result):
    """`datasets list`."""

    datasets: list[DataSet]
    """The data sets."""


class Verification(Result):
    """`datasets verify`."""

    files: list[FileStatus]
    """The data sets."""


Reported = Evaluation | Comparison | Diagnosed
"""Results that a report can be made of."""

_KINDS: dict[str, type[Reported]] = {
    "size": Evaluation,
    "panels": Comparison,
    "methods": Comparison,
    "n_source": Diagnosed,
}


def parse(results: Mapping[str, Any]) -> Reported:
    """Return stored results as the type that they belong to.

    Raises
    ------
    DataError
        If they belong to none, or lack or mistype a key; the message lists every such key.
    """
    kind = next((model for key, model in _KINDS.items() if key in results), None)
    if kind is None:
        raise DataError(
            "these results come from none of evaluate, compare, reproduce and diagnose: "
            f"their keys are {', '.join(map(repr, results)) or 'missing'}"
        )
    try:
        return kind.read(results)
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(map(str, item['loc']))}: {item['msg'].lower()}" for item in error.errors()
        )
        raise DataError(f"cannot report on these results: {wrong}") from error
