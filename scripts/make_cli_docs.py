"""Write docs/cli.md from the program itself; tests/test_docs.py checks that it is up to date."""

from __future__ import annotations

import ast
import inspect
import itertools
import typing
from pathlib import Path
from typing import Any

import click

from lrqr import results
from lrqr.cli import cli

PATH = Path(__file__).parents[1] / "docs" / "cli.md"

_HEAD = """\
# Command line

<!-- made by scripts/make_cli_docs.py (`make docs`); do not edit by hand -->

Data go to stdout, messages and progress to stderr; progress is shown on a terminal only, and `NO_COLOR` is
honored. `-q` and `-v` may stand before the command or after it, `lrqr help COMMAND` is `lrqr COMMAND --help`.
Every error is one message: what is wrong, the value, where, and what to do; `lrqr --debug` before the command
shows the traceback as well.

| Exit code | Meaning |
|---|---|
| 0 | done |
| 1 | an error in the data or in the model directory |
| 2 | an option, or a combination of options, that makes no sense |
| 3 | a check failed: `--fail-under`, `--check`, `--strict` without overlap, `datasets verify` |
| 4 | not converged, with `--strict` |
| 130 | stopped by Ctrl-C |
| 141 | the reader of the output left early, such as `head` |
| 143 | stopped by SIGTERM, as by a batch system; half-written files are removed |

**Columns** are found by name; where several may be given, repeat the option, separate names by commas, or
use a pattern such as `'p_*'`. Features are all columns that source and target have and that play no other
part.

**Configuration.** `-c FILE.toml` holds defaults for the options of a command, under their own names; a flag
wins over the file. A key at the top serves every command that has the option, a key in a table named after a
command serves that command:

```toml
coverage = 0.95
seed = 1

[fit]
outcome = "y"
prediction = "yhat"
exclude = ["id", "date"]
```

**Shell completion.** `eval "$(_LRQR_COMPLETE=bash_source lrqr)"` (or `zsh_source`, or
`_LRQR_COMPLETE=fish_source lrqr | source`) completes commands, options and the names of methods and scores.
"""

_OUTPUTS = """\
## What comes out

`lrqr predict` writes the identifier (or `row`, the row number from 0), the columns of `--keep` as they stand
in the input, `threshold`, then

* regression: `lower`, `upper`; an empty interval is `inf`, `-inf`;
* classification: one boolean `in_<class>` for every class, and `size`;
* a score of your own (`--score-column`): nothing more;

and `outside_support`: whether the row lies where the source has none, so that nothing can be promised.

`--format json` prints strict JSON: infinity is the string `"inf"`, unknown is `null`, and a part that does
not apply is left out. `--format csv` prints one row for each method, column, experiment or data set, or else
the columns `key` and `value`, with paths such as `groups.0.coverage`; a report's CSV calls them `quantity`
and `value`. Shares (coverage, infinite, ...) are fractions of 1. **Size** means the mean length of intervals,
in units of the outcome, or the mean number of classes in sets. First the results of the commands, then their
parts.
"""

_MODEL = """\
## The model directory

`artifact.json` holds the state as JSON, `arrays.npz` its arrays and trees, `base.skops` a learner of `--base`
(older models: `estimators.skops` their trees). Every part is checked against its sha256 before it is
used, arrays are read with `allow_pickle=False` and skops builds trusted types only: loading a model runs no
code of the model. The same input gives the same bytes. The directory is written under a temporary name and
then renamed, so a killed run leaves the old model whole.
"""


def reference() -> str:
    """Return the whole page."""
    root = click.Context(cli, info_name="lrqr", help_option_names=["-h", "--help"])
    pages = [_section(cli, root)]
    for name, command in cli.commands.items():
        context = click.Context(command, info_name=name, parent=root)
        pages.append(_section(command, context))
        if isinstance(command, click.Group):
            pages += [
                _section(inner, click.Context(inner, info_name=label, parent=context))
                for label, inner in command.commands.items()
            ]
    return "\n".join([_HEAD, *pages, _OUTPUTS, *_results(), _MODEL])


def _section(command: click.Command, context: click.Context) -> str:
    context.max_content_width = context.terminal_width = 100
    return f"## `{context.command_path}`\n\n```\n{command.get_help(context)}\n```\n"


def _results() -> list[str]:
    """Return a table of the keys of each command's result, then of each part that results are made of."""
    module = ast.parse(Path(results.__file__).read_text(encoding="utf-8"))
    texts: dict[str, dict[str, str]] = {"Result": {}}
    pages: list[tuple[bool, str]] = []
    for item in module.body:
        if not isinstance(item, ast.ClassDef) or item.name == "Result":
            continue
        declared = getattr(results, item.name)
        texts[item.name] = texts[declared.__base__.__name__] | {
            field.target.id: text.value.value
            for field, text in itertools.pairwise(item.body)
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
        }
        rows = [
            f"| `{name}` | {texts[item.name][name]}{_part(field.annotation)} |"
            for name, field in declared.model_fields.items()
        ]
        head = [f"### {item.name}", "", inspect.cleandoc(declared.__doc__), "", "| Key | |", "|---|---|"]
        pages.append((not declared.__doc__.startswith("`"), "\n".join([*head, *rows, ""])))
    return [page for _, page in sorted(pages, key=lambda entry: entry[0])]


def _part(annotation: Any) -> str:
    """Return a link to the part that a field holds, if it holds one."""
    inner = [annotation, *typing.get_args(annotation)]
    parts = [kind.__name__ for kind in inner if isinstance(kind, type) and issubclass(kind, results.Result)]
    return f" See [{parts[0]}](#{parts[0].lower()})." if parts else ""


if __name__ == "__main__":
    PATH.write_text(reference(), encoding="utf-8")
