"""What several commands ask for, and the reading of their files."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lrqr import plugins
from lrqr.calibrate import model as models
from lrqr.calibrate.model import PRECOMPUTED
from lrqr.calibrate.rows import Rows
from lrqr.data import doubts, tables
from lrqr.data.encoder import TableEncoder
from lrqr.data.formats import is_path, open_table
from lrqr.data.roles import READING, TRUTH, Roles
from lrqr.errors import DataError, LrqrWarning, UsageError
from lrqr.plugins import FEATURE_MAPS, SIDES, check_choice

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from lrqr.arrays import IntArray
    from lrqr.calibrate.model import CalibratedModel
    from lrqr.data.formats import Data as Source
    from lrqr.data.tables import Sample
    from lrqr.plugins import FeatureMap


@dataclass(frozen=True)
class Choices:
    """What `fit` and `compare` are asked for; the fields are their options."""

    roles: Roles
    coverage: float = 0.9
    score: str | None = None
    base: str | None = None
    on_missing: str = "error"
    seed: int = 0
    side: str = "both"


def read(
    data: Source,
    roles: Roles,
    choices: Choices,
    *,
    need: Sequence[str] = ("features",),
    optional: Sequence[str] = ("id",),
    most: int | None = None,
) -> Sample:
    """Read the needed columns of a file or a table, and the optional ones where they exist."""
    how: dict[str, Any] = {"on_missing": choices.on_missing, "most": most, "seed": choices.seed}
    return tables.read(data, roles, need=need, optional=optional, **how)


def read_all(wanted: Sequence[tuple[Source, dict[str, Any]]], roles: Roles, choices: Choices) -> list[Sample]:
    """Read source, target and further files, each with its keywords of `read`; raise all faults together."""
    samples, faults = [], []
    for data, how in wanted:
        try:
            samples.append(read(data, roles, choices, **how))
        except DataError as error:
            faults.append(str(error))
    if faults:
        faults += _beside(wanted[:2], roles, replace(choices, on_missing="impute"))
        raise DataError("\n".join(dict.fromkeys(faults)))
    return samples


def _beside(wanted: Sequence[tuple[Source, dict[str, Any]]], roles: Roles, choices: Any) -> list[str]:
    """Return what would be refused next, were missing features filled in: it is said in the same round."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frames = [read(data, roles, choices, **how).features for data, how in wanted]
            TableEncoder().fit(*frames, categorical=roles.categorical, on_missing=choices.on_missing)
    except DataError as error:
        return [str(error)]
    return []


def resolve(choices: Choices, source: Source, *others: Source) -> tuple[Roles, str]:
    """Find the columns of all roles, the score, and the classes; refuse options that do not go together."""
    given = (source, *others)
    kinds = set(map(is_path, given))
    if len(kinds) > 1:
        raise UsageError("pass the paths of files, or data frames, not some of each")
    roles = tables.resolve(choices.roles, *given, where=() if True in kinds else ("source", "target", "test"))
    score = sided(choices.score or _default_score(choices, roles, source), choices.side)
    check(choices, roles, score)
    module = plugins.load("scores", score)
    if choices.base and module.TASK == "classification":
        roles = replace(roles, classes=_classes(source, roles))
    if roles.probability and len(roles.prediction) == 1 and roles.outcome:
        roles = replace(roles, classes=_two_classes(source, roles))
    must = getattr(module, "POSITIVE", ())
    if must:
        pairs = zip(roles.prediction, module.INPUTS, strict=False)
        roles = replace(roles, positive=tuple(column for column, name in pairs if name in must))
    return roles, score


def sided(score: str, side: str) -> str:
    """Return the score that gives this side of the intervals of ``score``."""
    check_choice("side", side, SIDES)
    if side in ("both", score):
        return score
    if score != "absolute":
        raise UsageError(
            f"--side {side} bounds a number from one point prediction, in place of the score absolute; it "
            f"does not go with score {score!r} (leave out --score, --probability and --score-column)"
        )
    return side


def opened(model: Any) -> CalibratedModel:
    """Return a calibrated model: one itself, a fitted estimator's, or that of a model directory."""
    if is_path(model):
        return models.load(model)
    found: CalibratedModel = model.calibrated() if hasattr(model, "calibrated") else model
    return found


def roles_of(name: str, function: Any, roles: Roles | None, columns: dict[str, Any]) -> Roles:
    """Return the roles that a function was given, as such or as further keywords."""
    known = [*Roles.__dataclass_fields__]
    unknown = [key for key in columns if key not in known]
    if unknown:
        near = plugins.suggest(unknown[0], [*known, *(function.__kwdefaults__ or ())])
        raise UsageError(f"{name} has no keyword {unknown[0]!r}{near}")
    if roles is not None and columns:
        raise UsageError(f"roles= and {next(iter(columns))}= were both given; put all into one")
    return Roles(**columns) if roles is None else roles


def without_map(roles: Roles, source: Source, feature_map: FeatureMap = "auto") -> tuple[Roles, FeatureMap]:
    """Read the name of a feature map among the features, where it stood once; warn of the new spelling.

    A column of that name in the source is a column.

    Raises
    ------
    UsageError
        If two maps are named.
    """
    words = [name for name in roles.features or () if name in FEATURE_MAPS]
    if words:
        there = open_table(source, roles).columns
        words = [name for name in words if name not in there]
    if not words:
        return roles, feature_map
    if len(words) > 1:
        raise UsageError(f"--features {' and --features '.join(words)} contradict each other")
    if feature_map not in ("auto", words[0]):
        raise UsageError(f"--feature-map {feature_map} and --features {words[0]} contradict each other")
    warnings.warn(
        f"--features {words[0]} names no column but a feature map: write --feature-map {words[0]} "
        f"(in Python feature_map={words[0]!r}); --features is for columns",
        LrqrWarning,
        stacklevel=4,
    )
    features = tuple(name for name in roles.features or () if name not in words)
    return replace(roles, features=features or None), cast("FeatureMap", words[0])


def needed(choices: Choices, roles: Roles, score: str) -> list[str]:
    """Roles that a labeled file must have."""
    own = score == PRECOMPUTED
    need = ["features", "score" if own else "outcome"]
    need += [] if choices.base or own else ["prediction"]
    return need + [name for name in ("weight", "cluster") if getattr(roles, name)]


def encode(
    samples: Sequence[Sample], roles: Roles, score: str, on_missing: str
) -> tuple[TableEncoder, list[Rows]]:
    """Fit the encoder on the first two samples, source and target; return it and the rows of all samples."""
    source, target = samples[0].features, samples[1].features
    encoder = TableEncoder().fit(source, target, categorical=roles.categorical, on_missing=on_missing)
    doubts.warn(encoder, source, target)
    own = score == PRECOMPUTED
    return encoder, [
        Rows(
            encoder.transform(sample.features, row=sample.row),
            sample.score if own else sample.outcome,
            sample.prediction if own or sample.prediction.shape[1] else None,
            sample.weight,
            clusters_of(sample),
        )
        for sample in samples
    ]


def clusters_of(sample: Sample) -> IntArray | None:
    """Return the number of each row's cluster; a row that names none stands alone."""
    if sample.cluster is None:
        return None
    alone = np.array([name is None for name in sample.cluster], dtype=np.bool_)
    numbers = np.unique(np.where(alone, "", sample.cluster).astype(str), return_inverse=True)[1]
    return np.where(alone, len(alone) + np.arange(len(alone)), numbers).astype(np.int64)


def check(choices: Choices, roles: Roles, score: str) -> None:
    """Refuse combinations of options that make no sense."""
    task, names = plugins.load("scores", score).TASK, plugins.load("scores", score).INPUTS
    asked, given = choices.roles, roles.prediction
    classes, numbers = task == "classification", task == "regression"
    mistakes = [
        (
            choices.base and (asked.prediction or asked.score_column),
            "--base fits a model for you: leave out --prediction, --probability and --score-column",
        ),
        (
            asked.score_column and (asked.prediction or score != PRECOMPUTED),
            "--score-column brings scores of your own: leave out --score and predictions",
        ),
        (
            score == PRECOMPUTED and not roles.score_column,
            "--score precomputed needs --score-column",
        ),
        (
            roles.probability and numbers,
            f"--probability is for classification, score {score!r} is for regression",
        ),
        (
            classes and given and not roles.probability,
            f"score {score!r} needs --probability, one column per class, instead of --prediction",
        ),
        (
            choices.base and numbers and len(names) != 1,
            f"--base predicts one number a row, which score {score!r} cannot use; use absolute",
        ),
        (
            asked.bounds and not numbers,
            f"--bounds cuts intervals of an outcome, of which score {score!r} gives none: leave it out",
        ),
        (
            numbers and given and len(given) != len(names),
            (
                f"score {score!r} needs {len(names)} prediction column(s) ({', '.join(names)}), "
                f"got {len(given)}: {', '.join(given)}"
            ),
        ),
    ]
    for mistaken, message in mistakes:
        if mistaken:
            raise UsageError(message)


def check_folder(folder: Path, paths: Iterable[Path], *, force: bool) -> None:
    """Refuse to write over the results of another run."""
    if folder.is_file():
        raise UsageError(f"{folder} is a file; pass a directory to -o")
    there = [str(path) for path in paths if path.exists()]
    if there and not force:
        raise UsageError(f"{', '.join(there)} exist already; pass --force to replace them")


def _default_score(choices: Choices, roles: Roles, source: Source) -> str:
    if roles.score_column and not roles.prediction and not choices.base:
        return PRECOMPUTED
    if roles.probability or choices.base == "logistic":
        return "lac"
    if choices.base == "hist-gradient-boosting" and roles.outcome:
        return "lac" if _is_text(source, roles.outcome, roles) else "absolute"
    return "absolute"


def _is_text(source: Source, name: str, roles: Roles) -> bool:
    return tables.schema(source, [name], roles)[0].kind == "categorical"


def _labels(source: Source, roles: Roles) -> list[str]:
    """Read the outcomes of the source as labels."""
    as_labels = Roles(group=roles.outcome, features=(), **{name: getattr(roles, name) for name in READING})
    group = read(source, as_labels, Choices(as_labels, on_missing="drop"), need=("group",)).group
    return [] if group is None else [label for label in group.tolist() if label is not None]


def _two_classes(source: Source, roles: Roles) -> tuple[str, str]:
    """Return the two classes of one column of probabilities; it is that of the second."""
    labels, (column,) = sorted(set(_labels(source, roles))), roles.prediction
    yes = [label for label in labels if TRUTH.get(label.lower()) is True] or ["1"]
    no = [label for label in labels if TRUTH.get(label.lower()) is False] or ["0"]
    if len(labels) == 2 and roles.classes[0] in labels:
        first, second = labels if roles.classes[0] == labels[1] else labels[::-1]
        return first, second
    if len(labels) <= 2 and {*labels} <= {yes[0], no[0]}:
        return no[0], yes[0]
    raise UsageError(
        f"one column of probabilities, {column!r}, for {len(labels)} classes ({', '.join(labels[:5])}): "
        + (
            "pass one column per class"
            if len(labels) > 2
            else f"which of them is it for? Call the column p_{(labels or ['yes'])[-1]} and pass "
            "--probability 'p_*', or pass one column per class"
        )
    )


def _classes(source: Source, roles: Roles) -> tuple[str, ...]:
    """Return the classes that a base learner will have to tell apart: the labels of the source."""
    if roles.outcome is None:
        raise UsageError("--base needs --outcome: which column is to be predicted?")
    labels = _labels(source, roles)
    classes = tuple(sorted(set(labels)))
    if len(classes) > max(2, len(labels) // 2):  # a class needs a row to learn from and one to calibrate on
        raise UsageError(
            f"--base is to tell classes apart, but the outcome {roles.outcome!r} takes {len(classes)} "
            f"different values in {len(labels)} rows; for numbers use --base ridge, or "
            "hist-gradient-boosting with --score absolute"
        )
    return classes


def digest(path: Path) -> str:
    """Return the sha256 of a file, or of all files of a directory and their names."""
    total = hashlib.sha256()
    files = [path] if path.is_file() else sorted(item for item in path.rglob("*") if item.is_file())
    for file in files:
        if path.is_dir():
            total.update(file.relative_to(path).as_posix().encode() + b"\0")
        with file.open("rb") as stream:
            hashlib.file_digest(stream, lambda: total)
    return total.hexdigest()
