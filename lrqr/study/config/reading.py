"""From TOML to a validated experiment, every mistake reported at once."""

from __future__ import annotations

import tomllib
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from lrqr import plugins
from lrqr.errors import UsageError
from lrqr.study.config.models import Experiment, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


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


def _explain(item: Any) -> str:
    place = ".".join(str(part) for part in item["loc"]) or "the file"
    if item["type"] == "extra_forbidden":
        fields = list(_model_at(item["loc"][:-1]).model_fields)
        hint = plugins.suggest(str(item["loc"][-1]), fields)
        return f"{place}: unknown key{hint} (known: {', '.join(fields)})"
    if item["type"] == "missing":
        return f"{place}: missing"
    message = str(item["msg"]).removeprefix("Value error, ")
    value = item["input"]
    shown = "" if isinstance(value, dict | list | BaseModel) else f" (got {value!r})"
    return f"{place}: {message}{shown}"


def _model_at(location: Iterable[Any]) -> type[BaseModel]:
    """Return the model to which a location of a validation error belongs."""
    model: type[BaseModel] = Experiment
    for part in location:
        if isinstance(part, str) and part in model.model_fields:
            model = _inner_model(model.model_fields[part].annotation) or model
    return model


def _inner_model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found: Callable[[Any], type[BaseModel] | None] = _inner_model
    return next((model for model in map(found, typing.get_args(annotation)) if model), None)
