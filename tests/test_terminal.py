"""What a terminal shows: nothing is wider than it, names and numbers stay whole, pipes get plain lines."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from commands import lrqr
from hypothesis import given
from hypothesis import strategies as st

from lrqr.results import Comparison, Group, Method
from lrqr.show import terminal
from lrqr.show import text as printing
from lrqr.show.words import cell

if TYPE_CHECKING:
    from pathlib import Path

WORDS = st.lists(st.text("abcé—", min_size=1, max_size=15), min_size=1, max_size=40)


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Make stdout and stderr a terminal of 80 columns without colors."""
    screen = Screen()
    monkeypatch.setattr(terminal, "sys", SimpleNamespace(stdout=screen, stderr=screen))
    for name, value in {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    return screen


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (121234.5, "121234"),
        (-121234.5, "-121234"),
        (9999.7, "10000"),
        (1234.5, "1234"),
        (0.0123456, "0.01235"),
        (3, "3"),
        (1.5e22, "1.5e+22"),
        (float("inf"), "∞"),
    ],
)
def test_prices_are_written_whole(value: float, shown: str) -> None:
    assert cell(value) == shown


def test_models_and_fits_are_shown_in_plain_words(shared: Path, learned: Path) -> None:
    """What only the solver's author knows is in the JSON."""
    for model in (shared / "model", learned):
        said = lrqr("inspect", model).out
        assert "solver" in said
        assert not any("_" in line.split("  ")[1] for line in said.splitlines() if line.startswith("  "))
        assert not any(word in said for word in ("branch", "infinity", "n iter", "offset", "beta"))
        found = lrqr("inspect", model, "--format", "json").json["fit"]
        assert {"branch", "n_iter", "score_offset", "gap"} <= set(found)


@given(WORDS)
def test_piped_text_is_one_line(words: list[str]) -> None:
    text = " ".join(words)
    assert terminal.wrapped(text, first="  name  ", rest="    ") == f"  name  {text}"


@pytest.mark.usefixtures("narrow")
def test_long_lines_break_between_words() -> None:
    words = [f"word{k}" for k in range(60)]
    lines = terminal.wrapped(" ".join(words), first="  name  ", rest=" " * 8).split("\n")
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("  name  word0 ")
    assert all(line.startswith(" " * 8) for line in lines[1:])
    assert " ".join(lines).split() == ["name", *words]
    assert terminal.wrapped("", first="  name  ") == "  name"


def test_messages_break_and_keep_their_indents(narrow: Screen) -> None:
    terminal.say("short\n   indented\n" + "word " * 30)
    lines = narrow.getvalue().splitlines()
    assert lines[:2] == ["short", "   indented"]
    assert max(map(len, lines)) <= 80
    assert " ".join(lines).split().count("word") == 30


@pytest.mark.usefixtures("narrow")
def test_tables_keep_names_and_numbers_whole() -> None:
    name = "a-name-of-21-letters-"
    rows = [(name, "some words " * 12, 12345678.0, 7)]
    text = terminal.table(("name", "title", "large", "n"), rows)
    assert max(map(len, text.splitlines())) <= 80
    assert name in text
    assert "12345678" in text
    assert text.split().count("some") == 12


@pytest.mark.usefixtures("narrow")
def test_lists_fit_a_narrow_terminal() -> None:
    from lrqr.study.datasets import catalog

    sets = catalog()
    text = printing.render(sets, "table")
    assert max(map(len, text.splitlines())) <= 80
    assert all(entry.name in text.split() for entry in sets.datasets)


def _compared() -> Comparison:
    row = {
        "name": "robust-weighted", "coverage": 0.98134, "coverage_se": 0.0061, "size": 1.178,
        "size_se": 0.042, "infinite": 0.696, "coverage_difference": 0.07483, "coverage_difference_se": 0.009,
        "size_difference": 0.6207, "size_difference_se": 0.029, "seconds": 0.2053,
    }  # fmt: skip
    return Comparison(
        title="Methods calibrated on source.csv", nominal=0.9, splits=3, reference="lrqr",
        methods=[Method.model_validate(row | {"name": "lrqr"}), Method.model_validate(row)],
    )  # fmt: skip


@pytest.mark.usefixtures("narrow")
def test_a_comparison_fits_a_narrow_terminal() -> None:
    text = printing.render(_compared(), "table")
    assert max(map(len, text.splitlines())) <= 80
    for whole in (" 98.13 % ±0.61 ", " 1.178 ±0.042 ", " 69.6 % ", " +7.483 ±0.9", " Δ coverage"):
        assert whole in text
    assert "of coverage in percentage points" in " ".join(text.split())
    assert "For want of room without matched, Δ size, seconds" in text
    own = next(line for line in text.splitlines() if line.startswith(" lrqr"))
    assert own.count("–") == 1  # the reference is not compared with itself


def test_piped_a_comparison_is_whole() -> None:
    text = printing.render(_compared(), "table")
    assert "+7.483 ±0.9 " in text
    assert "+0.6207 ±0.029" in text
    assert "0.2053" in text
    assert "For want of room" not in text


def test_of_many_groups_the_first_are_shown() -> None:
    row = {"n": 9, "coverage": 0.9, "low": 0.8, "high": 1.0, "verdict": "compatible", "size": 1.0}
    rows = [Group.model_validate(row | {"name": f"group-{k}"}) for k in range(23)]
    text = printing._groups("by group", rows)
    assert "group-19" in text
    assert "group-20" not in text
    assert text.endswith("and 3 more: --format json has them all.")
    assert "more:" not in printing._groups("by group", rows[:20])


def test_long_jobs_show_a_line_now_and_then_off_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = iter([0.0, 1.0, 9.0, 12.0, 15.0, 30.0])
    monkeypatch.setattr(terminal, "monotonic", lambda: next(times))
    with terminal.progress(quiet=False) as step:
        for name in "abcde":
            step(name)
    assert capsys.readouterr() == ("", "after 12 s: c\nafter 30 s: e\n")
    with terminal.progress(quiet=True) as step:
        step("f")
    assert capsys.readouterr() == ("", "")
