"""The options that commands share, each defined once, and their defaults from a TOML file.

The options of columns are made from `lrqr.data.roles`, where column roles are declared.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import tomllib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from lrqr import plugins
from lrqr.data.roles import SPELLINGS, as_bounds
from lrqr.errors import UsageError
from lrqr.plugins import BASES, ENGINES, FEATURE_MAPS, GUARANTEES, INFINITE, ON_MISSING, SIDES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Command = TypeVar("Command", bound="Callable[..., Any]")

FORMATS = ("table", "json", "csv")

CONFIG = "lrqr.study.config"
"""Key in ``Context.meta`` for the path of the configuration file, which messages name."""


class Name(click.ParamType):  # type: ignore[type-arg]  # generic only since click 8.4
    """One of a list of names; a misspelt one gets "did you mean"."""

    def __init__(self, kind: str, choices: Iterable[str] | str) -> None:
        self.name = kind
        self._choices = choices

    @property
    def choices(self) -> tuple[str, ...]:
        """The names: given, or those of a plug-in package."""
        return plugins.names(self._choices) if isinstance(self._choices, str) else tuple(self._choices)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name if it is one."""
        try:
            plugins.check_choice(self.name, value, self.choices)
        except UsageError as error:
            raise click.BadParameter(str(error), ctx, param) from None
        return str(value)

    def get_metavar(self, *_: Any, **__: Any) -> str | None:
        """Show the names."""
        return f"[{'|'.join(self.choices)}]"

    def shell_complete(self, *arguments: Any) -> list[CompletionItem]:
        """Complete to the names."""
        incomplete = arguments[-1]
        return [CompletionItem(name) for name in self.choices if name.startswith(incomplete)]


class AutoFloat(click.ParamType):  # type: ignore[type-arg]  # generic only since click 8.4
    """A number, or ``auto``."""

    name = "auto|FLOAT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """Return the number, or ``"auto"``."""
        if value == "auto":
            return "auto"
        try:
            return float(value)
        except (TypeError, ValueError):
            raise click.BadParameter(f"{value!r} is neither a number nor 'auto'", ctx, param) from None


class Level(click.ParamType):  # type: ignore[type-arg]  # generic only since click 8.4
    """A share strictly between 0 and 1; a percentage gets "did you mean"."""

    name = "float"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the share."""
        level = float(click.FLOAT.convert(value, param, ctx))
        if 0.0 < level < 1.0:
            return level
        hint = f"; did you mean {level / 100:g}?" if 1.0 < level < 100.0 else ""
        message = f"must lie strictly between 0 and 1, got {level:g}{hint}"
        raise click.BadParameter(message, ctx, param)


def read_config(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:  # noqa: ARG001 - click's signature
    """Make the values of a TOML file the defaults of this command's options."""
    if value is None:
        return None
    try:
        with value.open("rb") as file:
            raw = tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{value} is not valid TOML: {error}", ctx) from error
    ctx.default_map = {**(ctx.default_map or {}), **config_defaults(raw, value, ctx)}
    ctx.meta[CONFIG] = value
    return value


def config_defaults(raw: Mapping[str, Any], path: Path, ctx: click.Context) -> dict[str, Any]:
    """Return the defaults that a configuration file holds for one command, by the names of its options.

    A key at the top of the file applies to every command that has the option; a key in a table named after
    the command, such as ``[fit]``, applies to that command and comes first.

    Raises
    ------
    UsageError
        One message with all keys that no command has and all values that their option does not accept.
    """
    own = _by_flag(ctx.command)
    group = ctx.parent.command if ctx.parent else ctx.command
    commands = group.commands if isinstance(group, click.Group) else {}
    every = {flag for command in commands.values() for flag in _by_flag(command)} | own.keys()
    name = ctx.info_name or ""
    table = raw.get(name, {})
    if not isinstance(table, dict):
        raise click.UsageError(f"{path}: {name!r} must be a table of options, [{name}], got {table!r}", ctx)
    top = {key: value for key, value in raw.items() if not (isinstance(value, dict) and key in commands)}
    problems: list[str] = []
    values: dict[str, Any] = {}
    for where, keys, known in (("", top, every), (f" in [{name}]", table, own)):
        for key, value in keys.items():
            flag = key.replace("_", "-")
            if flag not in known:
                problems.append(f"unknown key {key!r}{where}{plugins.suggest(key, known)}")
            elif flag in own:
                option = own[flag]
                try:
                    values[str(option.name)] = _as_typed(option, value)
                    option.type_cast_value(ctx, values[str(option.name)])
                except click.BadParameter as error:
                    problems.append(f"key {key!r}{where}: {error.message.rstrip('.')}")
    if problems:
        raise click.UsageError(f"{path}: {'; '.join(problems)}", ctx)
    return values


def _as_typed(option: click.Option, value: Any) -> Any:
    """Return a value of a file as it would be typed, so that it is read by the same rules."""
    if isinstance(value, dict) or (isinstance(value, list) and not option.multiple):
        raise click.BadParameter(f"takes one value, got {value!r}")
    if option.multiple:
        return [str(item) for item in (value if isinstance(value, list) else [value])]
    return value if option.is_flag and isinstance(value, bool) else str(value)


def _by_flag(command: click.Command) -> dict[str, click.Option]:
    return {
        flag.removeprefix("--"): option
        for option in command.params
        if isinstance(option, click.Option) and option.expose_value
        for flag in option.opts
        if flag.startswith("--")
    }


def resolve_level(ctx: click.Context, coverage: float | None, alpha: float | None) -> float:
    """Turn ``--coverage`` and ``--alpha`` into one coverage; a flag wins over the configuration file.

    Raises
    ------
    UsageError
        If both are given.
    """
    if coverage is not None and alpha is not None:
        flags = [
            ctx.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE
            for name in ("coverage", "alpha")
        ]
        if flags == [True, False]:
            alpha = None
        elif flags == [False, True]:
            coverage = None
        else:
            raise UsageError(
                "--coverage and --alpha say the same thing (alpha = 1 - coverage): pass one of them"
            )
    if alpha is not None:
        if alpha > 0.5:
            click.echo(
                f"Warning: --alpha {alpha:g} asks for a coverage of only {100 * (1 - alpha):.3g} %; "
                f"did you mean --coverage {alpha:g}?",
                err=True,
            )
        return round(1.0 - alpha, 12)
    return 0.9 if coverage is None else coverage


def combine(*decorators: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Apply option decorators so that ``--help`` lists them in the given order."""

    def decorate(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def column(role: str) -> Callable[[Any], Any]:
    """Make the option of a column role as `lrqr.data.roles` declares it."""
    flag, _, text, multiple, metavar = SPELLINGS[role]
    split = split_names if multiple else None
    return click.option(flag, role, metavar=metavar, multiple=multiple, callback=split, help=text)


def split_names(_ctx: click.Context, _param: click.Parameter, values: Iterable[str]) -> tuple[str, ...]:
    """Flatten ``--features a,b --features c`` to names, in order and without repeats."""
    names = [name.strip() for value in values for name in value.split(",")]
    return tuple(dict.fromkeys(name for name in names if name))


_STDIN = "lrqr.stdin"
_STARTS = {b"PAR1": ".parquet", b"ARROW1": ".feather", b"PK": ".npz", b"\x1f\x8b": ".csv.gz", b"{": ".jsonl"}


class DataFile(click.Path):
    """A file that exists; ``-`` is what stdin holds, kept in a temporary file while the command runs."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        if "://" in str(value):
            self.fail(f"{value} is an address, not a file: download it first (curl -LO {value})", param, ctx)
        if str(value) != "-" or ctx is None:
            return super().convert(value, param, ctx)
        if _STDIN in ctx.meta:
            self.fail("only one file can be - (stdin)", param, ctx)
        content = sys.stdin.buffer.read()
        suffix = next((end for start, end in _STARTS.items() if content.startswith(start)), ".csv")
        folder = Path(tempfile.mkdtemp())
        ctx.meta[_STDIN] = folder
        ctx.call_on_close(partial(shutil.rmtree, folder))
        path = folder / f"stdin{suffix}"
        path.write_bytes(content)
        return path


PATH = click.Path(path_type=Path)
EXISTING = DataFile(path_type=Path, exists=True)

config = click.option(
    "-c",
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    callback=read_config,
    is_eager=True,
    expose_value=False,
    help="TOML file of defaults for the options below (a flag wins over it).",
)
seed = click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="Seed of everything random.",
)
force = click.option("--force", is_flag=True, help="Replace what is at the output already.")
strict = click.option("--strict", is_flag=True, help="Exit 3 if there is no overlap, 4 if not converged.")
level = combine(
    click.option(
        "--coverage", type=Level(), help="The promised share of covered target rows.  [default: 0.9]"
    ),
    click.option("--alpha", type=Level(), help="Another way to say it: 1 - coverage."),
)
at_least = click.option(
    "--at-least",
    type=Level(),
    help="Say how far the likelihood ratios may be off until less than this share of the target is covered "
    "(docs/certificate.md).  [default: coverage - 0.05]",
)
guarantee = click.option(
    "--guarantee",
    type=Name("guarantee", GUARANTEES),
    default="marginal",
    show_default=True,
    help="Promise the coverage on average, or 'pac': with 95 % confidence at least so much, if only the "
    "features shifted. Answers are larger for it.",
)
abstain = click.option(
    "--abstain",
    is_flag=True,
    help="Give rows that the source cannot speak for no finite answer; promise, certificate and 'evaluate' "
    "are then about the answered rows.",
)
output_format = click.option(
    "--format",
    "output_format",
    type=Name("format", FORMATS),
    default="table",
    show_default=True,
    help="How to print; --json is short for --format json.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
infinite = click.option(
    "--infinite",
    type=Name("policy", INFINITE),
    default="allow",
    show_default=True,
    help="Where no finite answer keeps the promise: keep infinity, cut to the largest score, or stop.",
)
on_missing = click.option(
    "--on-missing",
    type=Name("policy", ON_MISSING),
    default="error",
    show_default=True,
    help="Missing values: stop, drop their rows, or impute features.",
)
on_missing_as_fit = click.option(
    "--on-missing",
    type=Name("policy", ON_MISSING),
    help="Missing values: stop, drop their rows, or impute features.  "
    "[default: impute if the fit did, else error]",
)
missing_values = click.option(
    "--missing-values",
    metavar="WORDS",
    callback=lambda _ctx, _param, value: value if value is None else tuple(filter(None, value.split(","))),
    help='Texts that say that a value is missing, such as "NA,?"; "" for none.  [default: NA, None, ...]',
)
marks = combine(
    click.option(
        "--separator",
        metavar="MARK",
        callback=lambda _ctx, _param, value: "\t" if value in ("tab", "\\t") else value,
        help="What stands between columns of text files: , ; | or tab.  [default: what is recognized]",
    ),
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        help="What stands before decimals in text files.  [default: what is recognized]",
    ),
)
group = column("group")
cluster = column("cluster")
identifier = column("id")
place = combine(
    click.option(
        "--engine",
        type=Name("engine", ENGINES),
        default="local",
        show_default=True,
        help="Where to work: this machine, or a Dask cluster (docs/scale.md).",
    ),
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Of the Dask cluster.  [default: one is started here]",
    ),
    click.option("--jobs", type=int, default=1, show_default=True, help="Processes on this machine."),
)


def take_place(flags: dict[str, Any]) -> Any:
    """Take the options of `place` out of ``flags`` and return what they say."""
    from lrqr.commands.engine import Place

    return Place(*(flags.pop(name) for name in ("engine", "scheduler", "jobs")))


keep = click.option(
    "--keep",
    metavar="COLUMN",
    multiple=True,
    callback=split_names,
    help="Column of the input to write as well, such as the prediction; patterns and commas work.",
)
report = click.option("--report", type=PATH, help="Write a self-contained HTML report here.")
method = click.option(
    "--method",
    type=Name("method", "methods"),
    default="lrqr",
    show_default=True,
    help="How scores become thresholds (docs/choosing.md).",
)
methods = click.option(
    "--method",
    "methods",
    type=Name("method", "methods"),
    multiple=True,
    help="How scores become thresholds (docs/choosing.md). May be repeated.  [default: all, on "
    "many rows without conditional]",
)
score = click.option(
    "--score",
    type=Name("score", "scores"),
    help="How far an outcome is from a prediction (docs/choosing.md).  "
    "[default: absolute; lac with probabilities]",
)
side = combine(
    click.option(
        "--side",
        type=Name("side", SIDES),
        default="both",
        show_default=True,
        help="Give an interval, or one bound alone: the upper or the lower one, for a point prediction.",
    ),
    click.option(
        "--bounds",
        metavar="LOW,HIGH",
        callback=lambda _ctx, _param, value: as_bounds(value),
        help="What the outcome can be, such as 0, or 0,100: intervals are cut there, at no cost in coverage.",
    ),
)
columns = combine(
    *map(column, ("outcome", "prediction", "probability", "score_column")),
    click.option(
        "--base",
        type=Name("base", BASES),
        help="You have no model: fit this one on half of the source and calibrate on the other half.",
    ),
)
features = combine(
    *map(column, ("features", "exclude", "categorical", "cluster", "weight")), missing_values, marks
)
feature_map = click.option(
    "--feature-map",
    type=Name("feature map", FEATURE_MAPS),
    default="auto",
    show_default=True,
    help="What the threshold is computed from: 'given', the features as they are; 'learned', two features "
    "learned from them; 'constant', one threshold for all rows; 'auto', 'learned' for intervals and "
    "'constant' for sets, but 'given' if rows are few or λ is chosen.",
)
tuning = combine(
    click.option(
        "--regularization",
        type=AutoFloat(),
        default="auto",
        show_default=True,
        help="λ of LR-QR, in units of scaled scores.",
    ),
    click.option("--ridge", type=AutoFloat(), default="auto", show_default=True, help="Ridge μ of LR-QR."),
    click.option(
        "--selection",
        metavar="RULE",
        default="auto",
        show_default=True,
        help="Rule that chooses λ and the ridge (docs/selection.md).",
    ),
)
