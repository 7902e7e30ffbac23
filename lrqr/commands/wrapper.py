"""Any regressor or classifier with conformal intervals or sets around it, as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from lrqr import plugins
from lrqr.arrays import as_matrix, as_vector, check_seed
from lrqr.calibrate.base import training_rows
from lrqr.calibrate.calibrate import Options, calibrate, overlap, overlap_warning, two_values
from lrqr.calibrate.regions import Regions
from lrqr.calibrate.rows import Rows
from lrqr.commands.fit import LEVELS, companions_of, packed, provenance
from lrqr.commands.given import (
    at_door,
    belonging,
    fitted_encoder,
    frame,
    is_frame,
    outcomes,
    untransformed,
    without_options,
)
from lrqr.commands.inputs import sided
from lrqr.data.encoder import TableEncoder
from lrqr.data.roles import Roles, as_bounds, ends_of
from lrqr.errors import DataError, LrqrWarning, UsageError
from lrqr.methods.estimator import as_ratio, check_coverage
from lrqr.plugins import check_choice
from lrqr.stats.diagnosis import diagnose
from lrqr.stats.folds import as_groups
from lrqr.stats.ratio import LikelihoodRatio

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import ModuleType

    import pandas as pd
    from matplotlib.figure import Figure

    from lrqr.arrays import BoolArray, FloatArray, IntArray
    from lrqr.calibrate.model import CalibratedModel
    from lrqr.calibrate.threshold import ThresholdModel
    from lrqr.plugins import FeatureMap, Guarantee, Infinite, Side
    from lrqr.stats.certificate import Certificate

_SHOWN = 5
_COVERAGE = 0.9
_PLAIN = {"base learner", "rows left out", "outcome", "prediction"}  # what a notebook need not say

_PARAMETERS = """coverage : float, default=0.9
        The promised share of target rows whose outcome is in the %(answer)s, 1-α. Not used when ``method`` is
        an estimator, which brings its own.
    alpha : float, optional
        The same promise the other way round: ``alpha=0.1`` is ``coverage=0.9``. Give one of the two.
    conformity_score : str, default="%(score)s"
        How far an outcome is from a prediction: a %(task)s score of ``lrqr.scores``.
    method : str or estimator, default="lrqr"
        How scores become thresholds: a name or an estimator of ``lrqr.methods``.
    prefit : bool, default=False
        True: ``estimator`` is fitted already, on other rows than those passed to `fit`. It need not be
        scikit-learn's: any object with ``%(output)s`` will do.
    calibration_share : float, default=0.5
        Otherwise, the share of the rows of `fit` held out for calibration.
    feature_map : {"auto", "given", "learned", "constant"}, default="auto"
        What the threshold is a function of; see `ThresholdModel`.
    infinite : {"allow", "clip", "error"}, default="allow"
        What to do where only %(everything)s keeps the promise.
    random_state : int, default=0
        Seed of everything random.
    at_least : float, optional
        The coverage that the certificate's ``sensitivity`` is about; by default 1-α-0.05.
    guarantee : {"marginal", "pac"}, default="marginal"
        Whether coverage is promised on average or, with 95 %% confidence, as a lower bound.
    abstain : bool, default=False
        Whether rows that the source cannot speak for get %(everything)s; ``abstains`` tells which."""

_NOTES = """Preprocessing belongs inside:
    ``%(name)s(make_pipeline(StandardScaler(), %(model)s()))``.
    As the last step of a pipeline this class would see transformed ``X`` but untransformed ``X_target``,
    which looks like a shift; where it can be told from one, `fit` warns. (With metadata routing,
    ``Pipeline(steps, transform_input=["X_target"])`` transforms both, for a model whose
    ``set_fit_request(X_target=True)`` was called.)

    Without ``X_target``, and without known ratios, `fit` takes it that there is no shift, whatever the
    method: also ``"lrqr"`` then promises coverage only for rows like those of ``X``.

    ``score`` is the %(measure)s of ``estimator``'s predictions, and says nothing of the %(answer)ss: it suits
    a `GridSearchCV` over parameters of ``estimator``, not over ``coverage``, ``method``, ``feature_map`` or
    ``conformity_score``, which it does not depend on. Methods are compared by `lrqr.compare`."""


def _documented(**words: str) -> Callable[[type], Any]:
    """Fill the parameters and notes that both wrappers share into the docstring of one."""

    def fill(wrapper: type) -> type:
        text = wrapper.__doc__ or ""
        wrapper.__doc__ = text.replace("<parameters>", _PARAMETERS % words).replace("<notes>", _NOTES % words)
        return wrapper

    return fill


class ConformalModel(MetaEstimatorMixin, BaseEstimator):
    """Base of `ConformalRegressor` and `ConformalClassifier`."""

    TASK: ClassVar[str]
    OUTPUT: ClassVar[str]

    def __init__(
        self,
        estimator: Any,
        *,
        coverage: float = _COVERAGE,
        alpha: float | None = None,
        conformity_score: str = "absolute",
        method: Any = "lrqr",
        prefit: bool = False,
        calibration_share: float = 0.5,
        feature_map: FeatureMap = "auto",
        infinite: Infinite = "allow",
        random_state: int | None = 0,
        at_least: float | None = None,
        guarantee: Guarantee = "marginal",
        abstain: bool = False,
        side: Side = "both",
        bounds: Any = None,
    ) -> None:
        self.estimator = estimator
        self.coverage = coverage
        self.alpha = alpha
        self.conformity_score = conformity_score
        self.method = method
        self.prefit = prefit
        self.calibration_share = calibration_share
        self.feature_map = feature_map
        self.infinite = infinite
        self.random_state = random_state
        self.at_least = at_least
        self.guarantee = guarantee
        self.abstain = abstain
        self.side = side
        self.bounds = bounds

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        X_target: Any = None,
        X_source: Any = None,
        ratio: Any = None,
        labeled_target: tuple[Any, Any] | None = None,
        groups: Any = None,
        **others: Any,
    ) -> Self:
        """Fit the model on one part of the rows (unless ``prefit``) and calibrate it on the other.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Features of labeled source rows. With ``prefit=True`` all of them calibrate, so they must not be
            rows that ``estimator`` was fitted on.
        y : array-like of shape (n,)
        X_target : array-like or data frame of shape (n2, d), optional
            Unlabeled rows from where the model will be used. None means that there is no shift.
        X_source : array-like or data frame of shape (n3, d), optional
            Further unlabeled source rows. None means the calibration rows themselves.
        ratio : array-like of shape (n,), optional
            Known likelihood ratios of the rows of ``X``, for the methods that weigh rows.
        labeled_target : (X, y), optional
            20 or more labeled rows from where the model will be used, as a pair like that of the source rows.
            They test whether only the features shifted (``threshold_model_.labeled_.evidence``) and correct
            the thresholds; judge the result on other rows. Not together with ``ratio``.
        groups : array-like of shape (n,), optional
            Names of clusters of rows that are not independent: visits of a patient, parts of a document. No
            split or fold divides one, and calibration leaves room for the whole cluster of a new row. Copies
            of a row are kept together without being named.
        **others
            Refused by name; of ``sample_weight`` the reason is given.

        Warns
        -----
        LrqrWarning
            If there are too few calibration rows for the coverage, or known ratios worth too few, if more
            than α of the rows of ``X_target`` lie where the source cannot support a finite threshold, or if
            something that was passed is of no use or looks wrong: ``X_source``, two quantiles, two-valued
            outcomes of a regression, an ``X_target`` that a pipeline has not transformed as it has ``X``.
        """
        _refuse(others)
        # before anything is fitted, and with the user's number: methods are fitted at other levels too
        promised = self._promised()
        check_seed(self.random_state)
        self._score_module()
        self._regions()
        self._check_estimator()
        X, X_target = at_door(X), at_door(X_target)
        n = np.shape(X)[0]
        y = outcomes(y, n)
        message = untransformed(X, X_target, f"{type(self).__name__}(make_pipeline(...))")
        if message:
            warnings.warn(message, LrqrWarning, stacklevel=2)
        self._check_outcome(y)
        known = None if ratio is None else as_ratio(ratio, n)
        clusters = None if groups is None else as_groups(groups, n)
        grouped, notes = belonging(X, y, X_target, clusters)
        if self.prefit:
            self.estimator_ = self.estimator
        else:
            X_train, X, train, held = self._split(X, n, grouped)
            self.estimator_ = clone(self.estimator).fit(X_train, y[train])
            y, known, clusters = (part if part is None else part[held] for part in (y, known, clusters))
        self.n_features_in_ = np.shape(X)[1]
        self._encoder = fitted_encoder(X, X_target)
        named = getattr(self.estimator_, "feature_names_in_", X.columns) if self._encoder is not None else []
        self._columns = list(named)
        self._after_model(X)
        source = Rows(self._features(X, "X"), self._outcome(y), self._prediction(X), known, clusters)
        target = (
            None
            if X_target is None
            else Rows(self._features(X_target, "X_target"), prediction=self._prediction(X_target))
        )
        options = Options(
            self._regions().score,
            self.method,
            promised,
            self.feature_map,
            self.random_state,
            certify=True,
            at_least=self.at_least,
            guarantee=self.guarantee,
            abstain=self.abstain,
        )
        found = overlap(source, target, options, getattr(self._encoder, "names_", None))
        samples: dict[str, Any] = {
            "diagnosis": found,
            "unlabeled": None if X_source is None else self._features(X_source, "X_source"),
            "labeled": self._labeled(labeled_target, ratio),
        }
        self.threshold_model_ = calibrate(source, target, options, **samples, stacklevel=3)
        self._given: tuple[Any, ...] = (source, target, options, samples)
        self._packed: CalibratedModel | None = None
        self._levels = {self.threshold_model_.coverage_: self.threshold_model_}
        apart = None if target is None else overlap_warning(self.threshold_model_, found, target.features)
        for message in filter(None, (*notes, self._doubt(source), apart)):
            warnings.warn(message, LrqrWarning, stacklevel=2)
        return self

    @property
    def certificate_(self) -> Certificate | None:
        """What may be promised without target labels, once fitted."""
        check_is_fitted(self, "threshold_model_")
        return self.threshold_model_.certificate_

    def predict(self, X: Any) -> Any:
        """Return the estimator's own predictions, shape (n,)."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict(self._ordered(X))

    def predict_threshold(
        self,
        X: Any,
        *,
        ratio: Any = None,
        coverage: float | Sequence[float] | None = None,
        alpha: float | Sequence[float] | None = None,
    ) -> FloatArray:
        """Thresholds in score units, shape (n,), or (n, L) at L levels.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        ratio : array-like of shape (n,), optional
            Known likelihood ratios of these rows, if `fit` was given known ratios.
        coverage, alpha : float or sequence of L floats, optional
            Other levels than the promised one, as shares covered or missed. At its first use a level is
            calibrated on the rows of `fit`, as if it had been promised.
        """
        check_is_fitted(self, "threshold_model_")
        levels = _asked(coverage, alpha)
        X = at_door(X)
        features = self._features(X, "X")
        found = []
        for level in [self.threshold_model_.coverage_] if levels is None else np.atleast_1d(levels).tolist():
            model = self._at(level)
            hints = None if model.learned_ is None else self._prediction(X)
            found.append(model.predict(features, ratio=ratio, prediction=hints, infinite=self.infinite))
        thresholds: FloatArray = found[0] if levels is None or np.ndim(levels) == 0 else np.stack(found, -1)
        return thresholds

    def calibrated(self) -> CalibratedModel:
        """Return the calibration as `lrqr fit` makes it: with certificate, diagnosis, other methods.

        The estimator is not in it: its output is the column ``prediction`` (for the score ``"cqr"`` ``lower``
        and ``upper``; for classes ``p_<class>``) of the tables that it answers, as `table` makes them.
        """
        check_is_fitted(self, "threshold_model_")
        if self._packed is None:
            self._packed = self._pack()
        return self._packed

    def save(self, path: Any, *, force: bool = False) -> Path:
        """Write the calibration as a model directory, for `lrqr.load` and for the command line.

        Parameters
        ----------
        path : path
        force : bool
            Replace an existing model.

        Notes
        -----
        The estimator is not stored: see `calibrated` for the columns that take its place.
        """
        return self.calibrated().save(path, force=force)

    def table(
        self, X: Any, y: Any = None, *, ratio: Any = None, group: Any = None
    ) -> tuple[pd.DataFrame, str | None]:
        """Return a table that the saved model reads, and the name of its column of groups.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        y : array-like of shape (n,), optional
            Outcomes, in the column ``outcome``.
        ratio : array-like of shape (n,), optional
            Known likelihood ratios, if `fit` was given known ratios.
        group : str or array-like of shape (n,), optional
            A column of X, or its values.
        """
        import pandas as pd

        X, model = at_door(X), self.calibrated()
        roles, named = model.roles, is_frame(X) and self._encoder is not None
        columns = self._columns if named else list(model.encoder.columns_)
        found = {
            str(name): np.asarray(X[name]) if named else as_matrix(X, "X")[:, k]
            for k, name in enumerate(columns)
        }
        found |= dict(zip(roles.prediction, self._prediction(X).T, strict=True))
        if y is not None:
            y = outcomes(y, np.shape(X)[0])
            found[str(roles.outcome)] = (
                np.array(list(map(str, y.tolist()))) if self.TASK == "classification" else y
            )
        if ratio is not None and roles.weight:
            found[roles.weight] = as_ratio(ratio, np.shape(X)[0])
        if group is not None and not isinstance(group, str):
            group, found["group"] = "group", np.asarray(group)
        elif group is not None and group not in found:
            found[group] = np.asarray(X[group])
        return pd.DataFrame(found), group

    def plot(self, X: Any, y: Any = None, *, figure: str | None = None, group: Any = None) -> Figure:
        """Draw a figure of the report on these rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Rows that took no part in the fit.
        y : array-like of shape (n,), optional
            Their outcomes; without them there is no figure of coverage.
        figure : str, optional
            Its name, such as ``"intervals"``, ``"calibration"``, ``"sizes"``, ``"groups"``, ``"overlap"``,
            ``"methods-coverage"`` or ``"methods-size"``; by default the first of the report.
        group : str or array-like of shape (n,), optional
            A column of X, or its values, for ``"groups"``.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from lrqr.commands.evaluate import evaluate
        from lrqr.show import page

        drawn = {
            picture.name: picture.drawing
            for pictures in page.draw(evaluate(self, X, y, group=group)).values()
            for picture in pictures
        }
        name = next(iter(drawn)) if figure is None else figure
        check_choice("figure", name, drawn)
        return drawn[name]

    def _repr_html_(self) -> str:
        shown = super()._repr_html_
        return str(shown()) + self._card()

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._card()
        return bundle

    def _card(self) -> str:
        """Return promise, chosen rule, verdict and thresholds as an HTML table; nothing before `fit`."""
        from lrqr.commands.inspect import describe
        from lrqr.show import page, text

        if not hasattr(self, "threshold_model_"):
            return ""
        found = text.chosen(describe(self.calibrated()))
        return page.card([(name, value) for name, value in found if name not in _PLAIN])

    def _pack(self) -> CalibratedModel:
        source, target, options, samples = self._given
        target = source.unlabeled() if target is None else target
        encoder = self._encoder or TableEncoder().fit(source.features)
        ratio = LikelihoodRatio(random_state=options.seed).fit(source.features, target.features)
        diagnosis = diagnose(
            source.features,
            target.features,
            names=encoder.names_,
            coverage=self.threshold_model_.coverage_,
            random_state=options.seed or 0,
            ratio=ratio,
            clusters=source.groups,
        )
        threshold, how = self.threshold_model_, replace(options, coverage=self.threshold_model_.coverage_)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if options.seed is not None and isinstance(options.method, str):  # the same again, and more of it
                more = replace(how, certify=True, levels=tuple(x for x in LEVELS if x != how.coverage))
                threshold = calibrate(source, self._given[1], more, **samples)
            companions = companions_of(
                threshold.method_, how, source, target, {"unlabeled": samples["unlabeled"]}
            )
        return packed(
            threshold,
            (source, target),
            (diagnosis, ratio),
            companions,
            encoder=encoder,
            roles=self._roles(encoder, known=source.ratio is not None),
            score=self._regions().score,
            base=None,
            columns={},
            dropped=0,
            provenance=provenance(options.seed, "error"),
        )

    def _roles(self, encoder: TableEncoder, *, known: bool) -> Roles:
        """Return the names of the columns of a saved model's tables."""
        classes = tuple(map(str, getattr(self, "classes_", ())))
        prediction = tuple(f"p_{name}" for name in classes) or self._score_module().INPUTS
        given: dict[str, Any] = {
            "outcome": "outcome",
            "prediction": prediction,
            "weight": "ratio" if known else None,
        }
        twice = {"outcome", "ratio", *prediction} & {*encoder.columns_}
        if twice:
            raise UsageError(f"rename the feature {min(twice)!r}: a saved model needs that name for itself")
        return Roles(
            **given,
            features=encoder.columns_,
            categorical=encoder.categorical_,
            probability=bool(classes),
            classes=classes,
            bounds=self.bounds,
        )

    def _promised(self) -> float:
        """Return the promised level, 1-α."""
        if not isinstance(self.method, str):
            return check_coverage(getattr(self.method, "coverage", self.coverage))
        if self.alpha is None:
            return check_coverage(self.coverage)
        if self.coverage != _COVERAGE:
            raise UsageError(f"coverage={self.coverage!r} and alpha={self.alpha!r} were both given; give one")
        return _covered(self.alpha)

    def _at(self, level: float) -> ThresholdModel:
        """Return the thresholds at a level, calibrated when it is first asked for."""
        if level not in self._levels:
            source, target, options, samples = self._given
            method = options.method
            if not isinstance(method, str):
                method = clone(method).set_params(coverage=level)
            self._levels[level] = calibrate(
                source,
                target,
                replace(options, coverage=level, method=method, certify=False),
                **samples,
                stacklevel=5,
            )
        return self._levels[level]

    def abstains(self, X: Any, *, ratio: Any = None) -> BoolArray:
        """Return which rows (n,) get an infinite threshold because the source cannot speak for them."""
        return np.isposinf(self.predict_threshold(X, ratio=ratio))

    def _labeled(self, pair: tuple[Any, Any] | None, ratio: Any) -> Rows | None:
        """Return labeled target rows with their predictions."""
        if pair is None:
            return None
        if ratio is not None:
            raise UsageError(
                "labeled_target and ratio cannot go together: the labeled rows have no known ratio"
            )
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise UsageError("labeled_target must be a pair (X, y) of labeled target rows")
        X = at_door(pair[0])
        y = outcomes(pair[1], np.shape(X)[0], "labeled_target: ")
        self._check_outcome(y)
        return Rows(self._features(X, "labeled_target"), self._outcome(y), self._prediction(X))

    def _region(self, X: Any, ratio: Any, coverage: Any, alpha: Any) -> Any:
        threshold = self.predict_threshold(X, ratio=ratio, coverage=coverage, alpha=alpha)
        region, prediction = self._regions().of, self._prediction(X)
        if threshold.ndim == 1:
            return region(prediction, threshold)
        return np.stack([region(prediction, column) for column in threshold.T], axis=-1)

    def _check_estimator(self) -> None:
        kind = type(self.estimator).__name__
        if not hasattr(self.estimator, self.OUTPUT):
            raise UsageError(
                f"{type(self).__name__} with score {self.conformity_score!r} needs an estimator with "
                f"{self.OUTPUT}(); {kind} has none"
            )
        if self.prefit and isinstance(self.estimator, BaseEstimator):  # others lack scikit-learn's marks
            check_is_fitted(self.estimator)
        if not self.prefit and not hasattr(self.estimator, "fit"):
            raise UsageError(f"{kind} has no fit(): if it is fitted already, pass prefit=True")

    def _score_module(self) -> ModuleType:
        module = plugins.load("scores", self.conformity_score)
        if module.TASK != self.TASK:
            names = plugins.names("scores")
            fitting = [name for name in names if plugins.load("scores", name).TASK == self.TASK]
            raise UsageError(
                f"score {self.conformity_score!r} is for {module.TASK}, not for {self.TASK}; "
                f"choose one of: {', '.join(fitting)}"
            )
        return module

    def _regions(self) -> Regions:
        return Regions(sided(self.conformity_score, self.side), as_bounds(self.bounds))

    def _split(self, X: Any, n: int, groups: IntArray | None) -> Any:
        """Return the rows of X to fit on and to calibrate on, and the numbers of both."""
        if not 0.0 < self.calibration_share < 1.0:
            raise UsageError(f"calibration_share must lie between 0 and 1, got {self.calibration_share}")
        if n < 2:
            raise DataError(
                f"{n} rows (n_samples={n}) cannot be split into a part to fit and a part to calibrate on"
            )
        if groups is not None:
            mask = training_rows(n, self.random_state, share=1.0 - self.calibration_share, groups=groups)
            parts = np.flatnonzero(mask), np.flatnonzero(~mask)
            return *(_safe_indexing(X, rows) for rows in parts), *parts
        return train_test_split(
            X, np.arange(n), test_size=self.calibration_share, random_state=self.random_state
        )

    def _features(self, X: Any, name: str) -> FloatArray:
        X = at_door(X)
        if self._encoder is None:
            return as_matrix(X, name, columns=self.n_features_in_)
        try:
            features: FloatArray = self._encoder.transform(frame(X))
        except DataError as error:
            raise without_options(error, name) from error
        return features

    def _prediction(self, X: Any) -> FloatArray:
        """Return the model's output of shape (n, k), also for no rows at all."""
        X = at_door(X)
        if np.shape(X)[0] == 0:
            return np.empty((0, self._width()))
        matrix = self._answer(X)
        if matrix.shape[1] != self._width():
            raise DataError(
                f"score {self.conformity_score!r} needs {self._width()} column(s) from {self.OUTPUT}(), "
                f"got {matrix.shape[1]}"
            )
        return matrix

    def _answer(self, X: Any) -> FloatArray:
        """Return what the model says of rows, one or more, as it says it: shape (n, k)."""
        output = np.asarray(getattr(self.estimator_, self.OUTPUT)(self._ordered(X)), dtype=np.float64)
        matrix: FloatArray = output[:, None] if output.ndim == 1 else output
        return matrix

    def _ordered(self, X: Any) -> Any:
        """Return the columns of a data frame as they were at fit: by name, in that order."""
        X = at_door(X)
        if self._encoder is None or not is_frame(X):
            return X
        missing = [name for name in self._columns if name not in list(X.columns)]
        if missing:
            raise DataError(f"X lacks the columns {', '.join(map(str, missing))}")
        return X[self._columns]

    def _width(self) -> int:
        """Return how many columns the score takes: one for each class, or its inputs."""
        return len(getattr(self, "classes_", self._score_module().INPUTS))

    def _after_model(self, X: Any) -> None:
        """Learn from the fitted model what calibration needs."""

    def _check_outcome(self, y: Any) -> None:
        """Raise where no model can be fitted on these outcomes (n,)."""
        self._outcome(y)

    def _outcome(self, y: Any) -> Any:
        """Return the outcomes (n,) as the score takes them."""
        values = as_vector(y, "y")
        low, high = ends_of(as_bounds(self.bounds))
        beyond = np.flatnonzero((values < low) | (values > high))
        if beyond.size:
            shown = ", ".join(map(str, beyond[:_SHOWN])) + (", ..." if beyond.size > _SHOWN else "")
            raise DataError(
                f"y lies beyond bounds={self.bounds!r} in {beyond.size} of {len(values)} rows (rows {shown}, "
                f"counted from 0; the first is {values[beyond[0]]:g}); correct these values or the bounds"
            )
        return values

    def _doubt(self, rows: Rows) -> str | None:  # noqa: ARG002 - for those who have one
        """Return what looks wrong with the outcomes of the calibration rows."""
        return None


@_documented(
    name="ConformalRegressor",
    answer="interval",
    score="absolute",
    task="regression",
    output="predict",
    everything="the whole line",
    model="Ridge",
    measure="R²",
)
class ConformalRegressor(RegressorMixin, ConformalModel):
    """A regression model whose intervals keep their coverage where the model will be used.

    Parameters
    ----------
    estimator : regressor
        Its ``predict`` returns (n,) for the score ``"absolute"``, (n, 2) lower and upper quantiles for
        ``"cqr"``, (n, 2) prediction and spread for ``"normalized"``. May be a pipeline.
    <parameters>
    side : {"both", "upper", "lower"}, default="both"
        Intervals, or one bound alone, of which the other end is infinite; for the score ``"absolute"``.
    bounds : (float or None, float or None), optional
        The lowest and the highest possible outcome, as in ``(0, None)``. Intervals are cut there, at no cost
        in coverage; an outcome beyond is an error.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model; with ``prefit=True`` the one that was given.
    threshold_model_ : ThresholdModel
        What turns features into thresholds, and what was chosen for it.
    certificate_ : Certificate or None
        What may be promised without target labels; see `lrqr.stats.certificate`.
    n_features_in_ : int
        Number of columns of X.

    Notes
    -----
    <notes>

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from lrqr import ConformalRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, X_new = rng.normal(size=(400, 2)), rng.normal(0.5, 1.0, size=(200, 2))
    >>> y = X[:, 0] + (0.3 + abs(X[:, 1])) * rng.normal(size=400)
    >>> model = ConformalRegressor(Ridge(), coverage=0.9).fit(X, y, X_target=X_new)
    >>> model.predict_interval(X_new).shape
    (200, 2)

    With preprocessing, which source and target then pass through alike:

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> inside = ConformalRegressor(make_pipeline(StandardScaler(), Ridge()), method="weighted")
    >>> inside.fit(X, y, X_target=X_new).predict_interval(X_new).shape
    (200, 2)
    """

    TASK: ClassVar[str] = "regression"
    OUTPUT: ClassVar[str] = "predict"

    def predict_interval(
        self,
        X: Any,
        *,
        ratio: Any = None,
        coverage: float | Sequence[float] | None = None,
        alpha: float | Sequence[float] | None = None,
    ) -> FloatArray:
        """Lower and upper bounds, (n, 2), or (n, 2, L) at L levels; an empty interval is ``(+inf, -inf)``.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        ratio : array-like of shape (n,), optional
            Known likelihood ratios of these rows, if `fit` was given known ratios.
        coverage, alpha : float or sequence of L floats, optional
            Other levels than the promised one; see `predict_threshold`.
        """
        bounds: FloatArray = self._region(X, ratio, coverage, alpha)
        return bounds

    def _doubt(self, rows: Rows) -> str | None:
        return two_values(rows, "y", "ConformalClassifier")


@_documented(
    name="ConformalClassifier",
    answer="set",
    score="lac",
    task="classification",
    output="predict_proba",
    everything="the set of all classes",
    model="LogisticRegression",
    measure="accuracy",
)
class ConformalClassifier(ClassifierMixin, ConformalModel):
    """A classifier whose prediction sets keep their coverage where the model will be used.

    Parameters
    ----------
    estimator : classifier
        Has ``predict_proba``, and ``classes_`` unless its classes are 0 to K-1. May be a pipeline.
    <parameters>

    Attributes
    ----------
    estimator_ : estimator
        The fitted model; with ``prefit=True`` the one that was given.
    classes_ : array of shape (K,)
        The classes in the order of the columns of `predict_set`.
    threshold_model_ : ThresholdModel
        What turns features into thresholds, and what was chosen for it.
    certificate_ : Certificate or None
        What may be promised without target labels; see `lrqr.stats.certificate`.
    n_features_in_ : int
        Number of columns of X.

    Notes
    -----
    <notes>

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from lrqr import ConformalClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, X_new = rng.normal(size=(400, 2)), rng.normal(0.5, 1.0, size=(200, 2))
    >>> y = np.where(X[:, 0] + rng.normal(size=400) > 0, "yes", "no")
    >>> model = ConformalClassifier(LogisticRegression(), coverage=0.9).fit(X, y, X_target=X_new)
    >>> model.predict_set(X_new).shape
    (200, 2)

    With preprocessing, which source and target then pass through alike:

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> inside = ConformalClassifier(make_pipeline(StandardScaler(), LogisticRegression()), method="weighted")
    >>> inside.fit(X, y, X_target=X_new).predict_set(X_new).shape
    (200, 2)
    """

    TASK: ClassVar[str] = "classification"
    OUTPUT: ClassVar[str] = "predict_proba"

    def __init__(
        self,
        estimator: Any,
        *,
        coverage: float = _COVERAGE,
        alpha: float | None = None,
        conformity_score: str = "lac",
        method: Any = "lrqr",
        prefit: bool = False,
        calibration_share: float = 0.5,
        feature_map: FeatureMap = "auto",
        infinite: Infinite = "allow",
        random_state: int | None = 0,
        at_least: float | None = None,
        guarantee: Guarantee = "marginal",
        abstain: bool = False,
    ) -> None:
        super().__init__(
            estimator,
            coverage=coverage,
            alpha=alpha,
            conformity_score=conformity_score,
            method=method,
            prefit=prefit,
            calibration_share=calibration_share,
            feature_map=feature_map,
            infinite=infinite,
            random_state=random_state,
            at_least=at_least,
            guarantee=guarantee,
            abstain=abstain,
        )

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the estimator's own probabilities, shape (n, K)."""
        check_is_fitted(self, "estimator_")
        return self._prediction(X)

    def predict_set(
        self,
        X: Any,
        *,
        ratio: Any = None,
        coverage: float | Sequence[float] | None = None,
        alpha: float | Sequence[float] | None = None,
    ) -> BoolArray:
        """Which classes are in each row's set, (n, K), or (n, K, L) at L levels; columns as in ``classes_``.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        ratio : array-like of shape (n,), optional
            Known likelihood ratios of these rows, if `fit` was given known ratios.
        coverage, alpha : float or sequence of L floats, optional
            Other levels than the promised one; see `predict_threshold`.
        """
        inside: BoolArray = self._region(X, ratio, coverage, alpha)
        return inside

    def _after_model(self, X: Any) -> None:
        if hasattr(self.estimator_, "classes_"):
            self.classes_ = np.asarray(self.estimator_.classes_)
        else:
            self.classes_ = np.arange(self._answer(X).shape[1])

    def _check_outcome(self, y: Any) -> None:
        import pandas as pd

        missing = np.flatnonzero(pd.isna(y))
        if missing.size:
            shown = ", ".join(map(str, missing[:_SHOWN])) + (", ..." if missing.size > _SHOWN else "")
            raise DataError(
                f"y is missing in {missing.size} of {len(y)} rows (rows {shown}, counted from 0); "
                "drop these rows"
            )
        text = np.array([isinstance(label, str) for label in y.tolist()], dtype=bool)
        if text.any() and not text.all():
            one, other = int(np.argmax(text)), int(np.argmin(text))
            raise DataError(
                f"y mixes texts and other labels: {y[one]!r} in row {one}, {y[other]!r} in row {other} "
                "(counted from 0); make them one type, for example with y.astype(str)"
            )

    def _outcome(self, y: Any) -> Any:
        position = {label: index for index, label in enumerate(self.classes_.tolist())}
        unknown = [row for row, label in enumerate(y.tolist()) if label not in position]
        if unknown:
            raise DataError(
                f"y holds {len(unknown)} label(s) that the model does not know, first {str(y[unknown[0]])!r} "
                f"in row {unknown[0]} (counted from 0); its classes are: {', '.join(map(str, self.classes_))}"
            )
        return np.array([position[label] for label in y.tolist()], dtype=np.int64)


def _refuse(given: dict[str, Any]) -> None:
    """Refuse what `fit` does not take."""
    names = [name for name, value in given.items() if value is not None]
    if "sample_weight" in names:
        raise UsageError(
            "sample_weight is refused: conformal ranks count calibration rows, and weights of the training "
            "loss are no likelihood ratios. Known likelihood ratios are ratio=; to train the estimator with "
            "weights, fit it yourself on other rows and pass prefit=True"
        )
    if names:
        raise UsageError(f"fit has no keyword {names[0]!r}")


def _asked(coverage: Any, alpha: Any) -> Any:
    """Return the levels asked for, one or a list, or None."""
    if coverage is not None and alpha is not None:
        raise UsageError(f"coverage={coverage!r} and alpha={alpha!r} were both given; give one")
    asked, level = (coverage, check_coverage) if alpha is None else (alpha, _covered)
    if asked is None:
        return None
    return level(asked) if np.ndim(asked) == 0 else [level(one) for one in asked]


def _covered(alpha: float) -> float:
    """Return the level 1-α."""
    if not 0.0 < float(alpha) < 1.0:
        raise UsageError(f"alpha must lie strictly between 0 and 1, got {alpha!r}")
    return round(1.0 - float(alpha), 12)
