"""The documents hold together: their Python runs, their links lead somewhere, their commands exist."""

from __future__ import annotations

import re
import shlex
import warnings
from pathlib import Path

import click
import pytest

from lrqr.cli import cli
from lrqr.errors import LrqrWarning

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "data" / "README.md"])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^```python\n(.*?)^```(?:\n\n^```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d+(?:\.\d+)?")
RUNNABLE = [path for path in DOCUMENTS if "```python" in path.read_text(encoding="utf-8")]


def _print_warning(message: Warning, category: type[Warning], *_: object) -> None:
    print(f"{category.__name__}: {message}")  # noqa: T201 - read by capsys


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _blocks(path: Path, language: str) -> list[str]:
    return [body for kind, body in BLOCK.findall(path.read_text(encoding="utf-8")) if kind == language]


@pytest.mark.slow
@pytest.mark.parametrize("path", RUNNABLE, ids=_name)
def test_python_blocks_run_from_top_to_bottom(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As from the repository's root, but what they write stays outside it.

    A block of text that follows is what the code prints and warns of; numbers may differ a little between
    versions of libraries.
    """
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    warnings.simplefilter("always", LrqrWarning)
    monkeypatch.setattr(warnings, "showwarning", _print_warning)
    space: dict[str, object] = {"__name__": "__main__"}
    for block, printed in PRINTED.findall(path.read_text(encoding="utf-8")):
        exec(compile(block, _name(path), "exec"), space)  # noqa: S102 - our own documents
        out = capsys.readouterr().out
        assert printed or "LrqrWarning" not in out
        if printed:
            assert NUMBER.sub("#", out).split() == NUMBER.sub("#", printed).split()
            found, said = (list(map(float, NUMBER.findall(text))) for text in (out, printed))
            assert found == pytest.approx(said, rel=0.05, abs=0.002)


def test_the_tutorial_prints_what_it_says() -> None:
    """The numbers of its comparison stand in the page, and so are checked by the test above."""
    printed = "".join(text for _, text in PRINTED.findall((ROOT / "docs" / "tutorial.md").read_text()))
    assert all(name in printed for name in ("split conformal:", "LR-QR:", "weighted"))


@pytest.mark.parametrize("path", DOCUMENTS, ids=_name)
def test_relative_links_lead_to_files(path: Path) -> None:
    text = BLOCK.sub("", path.read_text(encoding="utf-8"))
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) + re.findall(r'(?:src|href)="([^"#]+)"', text)
    missing = [
        target for target in targets if "://" not in target and not (path.parent / target).resolve().exists()
    ]
    assert not missing


@pytest.mark.parametrize("path", DOCUMENTS, ids=_name)
def test_commands_in_sh_blocks_exist(path: Path) -> None:
    for block in _blocks(path, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words and words[0] == "lrqr":
                _check(words[1:], line)


def _check(words: list[str], line: str) -> None:
    command: click.Command = cli
    known = {flag for parameter in cli.params for flag in parameter.opts} | {"-h", "--help"}
    for word in words:
        if word.startswith("-"):
            assert word.split("=")[0] in known, f"unknown option {word} in: {line}"
        elif isinstance(command, click.Group):
            found = command.get_command(click.Context(command), word)
            assert found is not None, f"unknown command {word} in: {line}"
            command = found
            known |= {
                flag for parameter in found.params for flag in (*parameter.opts, *parameter.secondary_opts)
            }
