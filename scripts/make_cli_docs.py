# ruff: noqa: INP001 - a script: it is in no package
"""Write docs/cli.md from the program itself; tests/test_docs.py checks that it is up to date."""

from __future__ import annotations

from pathlib import Path

import click

from lrqr.cli import cli

PATH = Path(__file__).parents[1] / "docs" / "cli.md"

_HEAD = """\
# Command line

<!-- made by scripts/make_cli_docs.py (`make docs`); do not edit by hand -->

Data go to stdout, messages and progress to stderr; progress is shown on a terminal only, and `NO_COLOR`
is honored. Every error is one message: what is wrong, the value, where, and what to do; `lrqr --debug` before
the command shows the traceback as well.

| Exit code | Meaning |
|---|---|
| 0 | done |
| 1 | an error in the data or in the model directory |
| 2 | an option, or a combination of options, that makes no sense |
| 3 | a check failed: `--fail-under`, `--check`, `--strict` without overlap, `datasets verify` |
| 4 | not converged, with `--strict` |

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

_TAIL = """\
## What comes out

`lrqr predict` writes the identifier (or `row`, the row number from 0), `threshold`, then

* regression: `lower`, `upper`; an empty interval is `inf`, `-inf`;
* classification: one boolean `in_<class>` for every class, and `size`;
* a score of your own (`--score-column`): nothing more;

and `outside_support`: whether the row lies where the source has none, so that nothing can be promised.

`--format json` prints strict JSON (infinity is the string `"inf"`, unknown is `null`):

* `evaluate`: `n`, `nominal`, `coverage` (`value`, `low`, `high`, `verdict`: `below`, `compatible` or `above`;
  `null` without outcomes), `weighted_coverage` (`value`, `se`: source coverage weighted towards the target),
  `size` (`mean` of the finite ones, infinite without any, `median`, `quantiles`, shares `infinite`, `empty`,
  `full`, `singleton`), `interval_score`, `groups`, `by_size` (empty where all sizes are equal), `worst_slab`
  (`null` with fewer than 50 held-out rows in it), `levels` (coverage reached at 50 to 95 %; for the methods
  `lrqr` and `split` only, since others would store the calibration rows once more for each level), `shift`
  (of the fit, as `diagnose` says it), `methods` (the same rows by other methods; `size` is infinite if one
  row's is, and `size_clipped` then counts infinite thresholds as the largest calibration score), `profiles`,
  `selection` (the cross-validation table) and its `criterion`, `model`, `provenance`.
* `compare`: `methods` (`name`, `coverage`, `coverage_se`, `size`, `size_se`, `size_clipped`, `infinite`,
  `seconds`, and paired differences to the `reference`), `nominal`, `splits`, `runs`. In
  `size_clipped` infinite thresholds count as the largest calibration score.
* `diagnose`: `n_source`, `n_target`, `auc`, `auc_low`, `auc_high`, `effective_size`, `largest_weight`,
  `outside_support`, `negative_mass`, `verdict`, `promise`, `features`, `columns`.
* `inspect`: of a model `score`, `roles`, `features`, `coefficients`, `fit` (with the certificate `gap` and
  the cross-validation table `selection`), `shift`, `provenance`; of a file `rows` and `columns`.

## The model directory

`artifact.json` holds the state as JSON, `arrays.npz` its arrays, `base.skops` a base learner of `--base`,
`estimators.skops` any other scikit-learn estimator. Every part is checked against its sha256 before it is
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
    return "\n".join([_HEAD, *pages, _TAIL])


def _section(command: click.Command, context: click.Context) -> str:
    context.max_content_width = context.terminal_width = 100
    return f"## `{context.command_path}`\n\n```\n{command.get_help(context)}\n```\n"


if __name__ == "__main__":
    PATH.write_text(reference(), encoding="utf-8")
