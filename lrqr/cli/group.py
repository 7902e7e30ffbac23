"""The command ``lrqr`` itself: global options, and how errors and warnings of all commands are shown."""

from __future__ import annotations

import io
import os
import sys
import traceback
import warnings
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from lrqr import __version__, plugins
from lrqr.cli.options import CONFIG
from lrqr.errors import LrqrError, LrqrWarning, UsageError
from lrqr.show.terminal import say, warn

if TYPE_CHECKING:
    from collections.abc import Iterator

_INTERRUPTED = 130  # 128 + the number of the signal, as shells count: SIGINT
_BROKEN_PIPE = 141  # SIGPIPE
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def _note(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    """Take ``--verbose`` or ``--quiet``, before the command or after it, into ``ctx.obj``."""
    ctx.obj = ctx.obj or {"verbose": False, "quiet": False}
    ctx.obj[param.name] |= value
    if all(ctx.obj.values()):
        raise click.UsageError("--verbose and --quiet contradict each other", ctx)


def _volume() -> list[click.Option]:
    """Make the options that say how much is said."""
    texts = {"verbose": "Say more about what is done.", "quiet": "Say nothing but warnings and errors."}
    return [
        click.Option(
            [f"-{name[0]}", f"--{name}"], is_flag=True, expose_value=False, callback=_note, help=text
        )
        for name, text in texts.items()
    ]


class Command(click.Command):
    """A command that takes ``-v`` and ``-q`` as the group does: people put them at either place."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.params += _volume()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse an option that takes one value and is given twice: one of them would be lost."""
        if any(param.name == "output_format" for param in self.params):
            args = ["--format=json" if argument == "--json" else argument for argument in args]
        if not ctx.resilient_parsing:
            given = Counter(id(param) for param in self.make_parser(ctx).parse_args(list(args))[2])
            for param in self.params:
                single = isinstance(param, click.Option) and not (param.multiple or param.is_flag)
                if single and given[id(param)] > 1:
                    raise click.UsageError(
                        f"{param.opts[-1]} was given {given[id(param)]} times; it takes one value", ctx
                    )
        return super().parse_args(ctx, args)


class Commands(click.Group):
    """A group of commands with one error boundary and "did you mean"."""

    command_class = Command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; every error becomes one message and an exit code."""
        try:
            with _shown_warnings():
                return super().invoke(ctx)
        except (click.exceptions.Exit, click.ClickException, click.Abort):
            raise
        except KeyboardInterrupt:
            say("Interrupted")
            ctx.exit(_INTERRUPTED)
        except BrokenPipeError:  # the reader, such as head, has enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(_BROKEN_PIPE)
        except Exception as error:  # noqa: BLE001 - the boundary: no traceback, unless asked for
            if ctx.find_root().params.get("debug"):
                traceback.print_exc()
            message, code = _explain(error)
            if CONFIG in ctx.meta and isinstance(error, UsageError):
                message += f" (options were read from {ctx.meta[CONFIG]} too)"
            say(f"Error: {message}")
            ctx.exit(code)

    def main(self, *arguments: Any, **settings: Any) -> Any:
        """Run; where the encoding of a stream lacks a letter, a question mark stands in its place."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        return super().main(*arguments, **settings)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one may have been meant."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            hint = plugins.suggest(args[0], self.commands)
            ctx.fail(f"no such command {args[0]!r}{hint}; the commands are: {', '.join(self.commands)}")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """List the commands in the order in which they are used."""
        return list(self.commands)


@click.group(cls=Commands, context_settings=_SETTINGS, no_args_is_help=True)
@click.version_option(__version__, "--version", message="lrqr %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def cli(*, debug: bool) -> None:
    """Conformal prediction that keeps its coverage where the model will be used.

    You have a model, labeled rows from where it was built (SOURCE) and unlabeled rows from where it will be
    used (TARGET). `fit` calibrates thresholds on them, `predict` gives intervals or sets, `evaluate` says
    whether the promise was kept.
    """


cli.params[1:1] = _volume()


def _explain(error: Exception) -> tuple[str, int]:
    """Return what to say of an error, and the exit code."""
    if isinstance(error, LrqrError):
        return str(error), error.exit_code
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else str(error), 1
    return (
        f"something unforeseen went wrong ({type(error).__name__}: {error}). This is a fault of lrqr: run "
        "`lrqr --debug` with the same command to see where, and please report it."
    ), 1


@contextmanager
def _shown_warnings() -> Iterator[None]:
    """Show warnings of lrqr and of convergence as messages on stderr, each once; hide those of libraries."""
    shown: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        own = issubclass(category, LrqrWarning) or category.__name__ == "ConvergenceWarning"
        if own and str(message) not in shown:
            shown.add(str(message))
            warn(message)

    with warnings.catch_warnings():
        warnings.simplefilter("default" if not sys.warnoptions else "always")
        warnings.simplefilter("always", LrqrWarning)
        warnings.showwarning = show
        yield
