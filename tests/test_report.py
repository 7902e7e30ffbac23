"""The report: all numbers are there, nothing else is needed to read it, and a browser agrees."""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
import subprocess
import sys
from collections import Counter
from functools import cache
from html import escape, unescape
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import matplotlib.image
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lrqr.errors import DataError, UsageError
from lrqr.results import Comparison, Diagnosed, Evaluation, Shift, parse
from lrqr.show import page as pages
from lrqr.show import text as texts
from lrqr.show.words import number, percent, plain
from lrqr.stats.diagnosis import diagnose

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "<script>alert(1)</script> $a$ \"b\" 'c' & ]]> %"
OBEYED = "\x1b[31mred\u202e=1\n"  # an escape sequence, a mark of direction, a new line


def shift() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(150, 3)), rng.normal([1.0, 0.0, 0.0], 1.0, size=(120, 3))
    found = diagnose(source, target, names=["age", HOSTILE, "income"])
    columns = {
        "only_source": ["city"],
        "only_target": [],
        "changed_types": [{"name": "zip", "source": "number", "target": "text"}],
        "unseen_categories": [{"name": "state", "categories": ["XX"], "rows": 12}],
    }
    return {**found.to_dict(pictures=True), "promise": found.promise, "columns": columns}


def evaluation() -> dict[str, Any]:
    group = {"low": 0.70, "high": 0.95, "size": 1.5, "small": False}
    return {
        "title": f"A model {HOSTILE}",
        "task": "regression",
        "outcome": "price, $",
        "n": 1234,
        "nominal": 0.9,
        "coverage": {"value": 0.9123, "low": 0.8951, "high": 0.9274, "verdict": "compatible"},
        "size": {
            "mean": math.inf,
            "median": 1.625,
            "quantiles": {"0.05": 0.84, "0.95": 3.375},
            "infinite": 0.003,
            "empty": 0.0,
            "full": None,
            "singleton": None,
            "histogram": {"edges": [0, 1, 2, 3], "counts": [3, 700, 531]},
        },
        "interval_score": 2.3175,
        "group_column": "region",
        "groups": [
            group | {"name": "north", "n": 700, "coverage": 0.93, "verdict": "compatible"},
            group | {"name": HOSTILE, "n": 524, "coverage": 0.8456, "verdict": "below"},
            group | {"name": "tiny", "n": 10, "coverage": 1.0, "verdict": "", "small": True},
        ],
        "by_size": [{"name": "0 to 1", "n": 600, "coverage": 0.9, "low": 0.87, "high": 0.93}],
        "worst_slab": {"coverage": 0.8125, "low": 0.7, "high": 0.9, "n": 104, "share": 0.2},
        "levels": [
            {"nominal": a, "coverage": a + 0.0123, "low": a - 0.03, "high": a + 0.03} for a in (0.5, 0.8)
        ],
        "shift": shift(),
        "methods": [
            {"name": "split", "coverage": 0.7012, "low": 0.66, "high": 0.74, "size": 1.375, "infinite": 0.0},
            {"name": "weighted", "coverage": 0.98, "size": math.inf, "size_clipped": 3.25, "infinite": 0.2},
            {"name": "lrqr", "coverage": 0.9123, "low": 0.8951, "high": 0.9274, "size": 1.7, "infinite": 0.0},
        ],
        "profiles": [
            {"feature": "age", "x": [1, 2, 3], "threshold": [1.0, 2.0, None], "low": [], "high": []}
        ],
        "selection": [
            {
                "regularization": lam,
                "ridge": ridge,
                "criterion": lam + 1 / ridge,
                "chosen": (lam, ridge) == (0.1, 10),
            }
            for lam in (0.0, 0.1, 1.0)
            for ridge in (1, 10)
        ],
        "criterion": "held-out pinball",
        "model": {"method": "lrqr", "parameters": {"ridge": "auto"}, "gap": 3e-9, "converged": True},
        "provenance": {"lrqr": "0.1.0", "inputs": {"source": {"sha256": "ab" * 32}}},
        "warnings": ["3 intervals are infinite"],
    }


def unlabeled() -> dict[str, Any]:
    labels = {"coverage", "groups", "by_size", "worst_slab", "interval_score", "levels", "methods"}
    results = {key: value for key, value in evaluation().items() if key not in labels}
    sets = {"mean": 2.5, "median": 2, "infinite": 0, "empty": 0.01, "full": 0.125, "singleton": 0.375}
    certificate = {
        "lower_bound": 0.8412, "estimate": 0.87, "confidence": 0.95, "sensitivity": 5.63, "at_least": 0.85,
        "pareto_k": 0.83, "effective_size": 312.4,
    }  # fmt: skip
    return results | {"task": "classification", "size": sets, "coverage": None, "certificate": certificate}


def comparison() -> dict[str, Any]:
    methods = [
        {
            "name": name, "coverage": 0.7 + place / 10, "coverage_se": 0.0123, "size": size, "size_se": 0.04,
            "size_clipped": 1.5, "infinite": 0.25 if size == math.inf else 0.0, "seconds": 0.0625,
            "coverage_difference": place / 10 - 0.2, "coverage_difference_se": 0.01,
            "size_difference": -0.375, "size_difference_se": 0.02,
        }
        for place, (name, size) in enumerate([("split", 1.0), ("dro", math.inf), ("lrqr", 1.25)])
    ]  # fmt: skip
    return {
        "title": "Two tasks",
        "nominal": 0.9,
        "splits": 20,
        "panels": [
            {"name": name, "nominal": 0.9, "splits": 20, "methods": methods} for name in ("one", "two")
        ],
        "checks": [{"claim": "it covers", "expected": "0.86 to 0.94", "found": "0.91", "verdict": "holds"}],
        "notes": ["The data differ from the paper's."],
    }


ALL = {"evaluation": evaluation, "unlabeled": unlabeled, "comparison": comparison, "diagnosis": shift}


def render(results: dict[str, Any]) -> str:
    return pages.render(parse(results))


def write(results: dict[str, Any], path: Path, *, force: bool = False) -> tuple[Path, Path, Path]:
    return pages.write(parse(results), path, force=force)


class Page(HTMLParser):
    """Tags, attributes and visible text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self._hidden = 0
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {key: value or "" for key, value in attrs}))
        self._hidden += tag in {"style", "defs"}

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {key: value or "" for key, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in {"style", "defs"}

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.text += f" {data.strip()}" if data.strip() else ""


@cache
def rendered(name: str) -> str:
    return render(ALL[name]())


@pytest.fixture(params=ALL)
def html(request: pytest.FixtureRequest) -> str:
    return rendered(request.param)


# ---- what is on the page


def test_evaluation_says_all_that_was_found() -> None:
    text = Page(rendered("evaluation")).text
    for said in (
        "91.2%", "89.5% to 92.7%", "compatible", "1,234", "promised 90%",  # coverage
        "∞", "1.625", "0.84", "3.375", "0.3%",  # size
        "of the finite ones", "2.317", "81.2%", "north", "84.6%", "below", "few rows", "region",  # groups
        "51.2%", "81.2%",  # levels
        "split", "70.1%", "1.375", "weighted", "98%", "3.25", "20%",  # methods
        "held-out pinball", "chosen", "3e−09",  # selection, model
        "parameters · ridge", "auto", "inputs · source · sha256", "ab" * 32,  # provenance
        "3 intervals are infinite",
    ):  # fmt: skip
        assert said in text, said


def test_shift_says_all_that_was_found() -> None:
    found = shift()
    text = Page(rendered("evaluation")).text
    assert found["verdict"] in text
    assert found["promise"] in text
    for key in ("auc", "effective_size"):
        assert number(found[key], 3) in text
    for key in ("largest_weight", "outside_support", "negative_mass"):
        assert percent(found[key]) in text
    for feature in found["features"]:
        assert number(feature["standardized_difference"], 3) in text
        assert number(feature["coefficient"], 3) in text
    for said in ("Only in the source: city", "zip: number in the source, text in the target", "XX"):
        assert said in text


def test_without_labels_nothing_is_called_coverage() -> None:
    text = Page(rendered("unlabeled")).text
    assert "There are no target labels, so coverage cannot be measured" in text
    assert "95 % sure: at least 84.1 % of the target is covered, if only the features shifted" in text
    assert "even if the likelihood ratios were off by a factor of 5.6, by estimate at least 85 %" in text
    assert "312 effective rows, Pareto k 0.83: too heavy a tail" in text
    assert not re.search(r"coverage\W+(is )?\d", text)
    assert "all classes 12.5%" in text
    assert "one class 37.5%" in text


def test_comparison_says_all_that_was_found() -> None:
    text = Page(rendered("comparison")).text
    for said in (
        "one", "two", "20 random splits", "70%", "± 1.23%", "1.25", "∞", "25%", "0.0625",
        "coverage − lrqr, points", "−20 ", "−0.375", "it covers", "0.86 to 0.94", "holds",
        "differ from the paper's",
    ):  # fmt: skip
        assert said in text, said


def test_a_few_intervals_are_drawn_with_the_outcomes_that_came() -> None:
    """The first picture: two of three outcomes inside, one of the intervals without an end."""
    examples = {"outcome": [1.0, 9.0, 5.0], "lower": [0.0, 2.0, "-inf"], "upper": [2.0, 4.0, "inf"]}
    html = render(evaluation() | {"examples": examples})
    assert (
        html.index("intervals-title") < html.index("methods-coverage-title") < html.index("calibration-title")
    )
    assert (
        "3 rows with their intervals; 2 outcomes lie inside and 1 outside, where 90% inside was promised."
        in html
    )
    assert "intervals-title" not in render(evaluation())


def test_control_characters_of_names_are_spelled_out() -> None:
    """In groups, features, titles and pictures; so a name can neither color a terminal nor reorder a line."""
    values = evaluation()
    values |= {"title": OBEYED, "outcome": OBEYED, "group_column": OBEYED}
    values["groups"] = [group | {"name": OBEYED} for group in values["groups"]]
    html, text = render(values), texts.render(parse(values), "table")
    for shown in (html, text):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert r"\x1b[31mred\u202e=1\n" in shown


@pytest.mark.parametrize("name", ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(1)", "\t=1"])
def test_cells_that_a_spreadsheet_would_run_are_quoted(name: str) -> None:
    values = evaluation()
    values["groups"] = [group | {"name": name, "coverage": -0.5} for group in values["groups"]]
    rows = dict(csv.reader(texts.render(parse(values), "csv").splitlines()))
    assert rows["groups.0.name"] == "'" + name
    assert rows["groups.0.coverage"] == "-0.5"


def test_infinite_sizes_are_drawn_as_the_largest_score_and_called_that() -> None:
    cut = {"name": "weighted", "coverage": 0.98, "size": math.inf, "size_clipped": 2.5, "infinite": 0.7}
    said = "∞ cut: infinite ones count as the largest calibration score"
    text = Page(render({"methods": [cut], "nominal": 0.9, "splits": 1})).text
    assert "∞ 2.5" in text
    assert said in text
    # sets are finite even where their threshold is not
    assert said not in render({"methods": [cut | {"size": 3.0}], "nominal": 0.9, "splits": 1})
    # a run of reproduce calls the clipped size "size"
    run = {"name": "weighted", "coverage": 0.98, "size": 2.5, "size_allow": math.inf, "infinite": 0.7}
    panels = [{"name": name, "nominal": 0.9, "methods": [run]} for name in ("one", "two")]
    text = Page(render({"panels": panels})).text
    assert "∞ 2.5" in text
    assert text.count("weighted 2.5 2.5") == 1  # both tasks at a glance
    assert said in text


def test_only_the_contract_is_needed() -> None:
    bare = {"n": 5, "nominal": 0.9, "size": {"mean": 1.0}, "coverage": {"value": 1, "low": 0.4, "high": 1}}
    assert "100%" in render(bare)
    assert "90% was promised" in render({"methods": [], "nominal": 0.9, "splits": 3})
    assert "no overlap" in render({"n_source": 2, "n_target": 3, "verdict": "no overlap"})


def test_results_are_told_apart() -> None:
    kinds = {
        "evaluation": Evaluation,
        "unlabeled": Evaluation,
        "comparison": Comparison,
        "diagnosis": Diagnosed,
    }
    for name, make in ALL.items():
        assert type(parse(make())) is kinds[name]


def test_wrong_results_are_told_all_at_once() -> None:
    wrong = {"n": "many", "size": {"mean": "wide"}}
    with pytest.raises(DataError) as error:
        render(wrong)
    for key in ("n:", "size.mean:", "nominal:"):
        assert key in str(error.value)
    with pytest.raises(DataError, match="none of evaluate, compare, reproduce and diagnose"):
        render({"a": 1})


def test_results_that_we_build_are_frozen_and_hold_declared_keys_only() -> None:
    shift = Shift(n_source=2, n_target=3)
    with pytest.raises(ValidationError, match="frozen"):
        shift.n_source = 3  # type: ignore[misc]
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        Shift.model_validate({"n_source": 2, "n_target": 3, "acu": 0.5})
    assert shift.to_dict() == {"n_source": 2, "n_target": 3}  # what was not given is left out


@pytest.mark.parametrize("name", ALL)
def test_stored_results_come_back_as_they_were(name: str) -> None:
    """Also with keys of another version, in the result and in its parts."""
    stored = ALL[name]() | {"of_another_version": [1, {"a": math.inf}]}
    parts = [value[0] if isinstance(value, list) and value else value for value in stored.values()]
    next(part for part in parts if isinstance(part, dict))["too"] = "kept"
    assert parse(stored).to_dict() == stored


# ---- one file, no network, valid, readable


def test_nothing_is_fetched_and_nothing_runs(html: str) -> None:
    page = Page(html)
    assert not {tag for tag, _ in page.tags} & {"script", "img", "iframe", "object", "embed", "image", "base"}
    for tag, attributes in page.tags:
        for key, value in attributes.items():
            assert not key.startswith("on"), (tag, key)
            if key in {"src", "href", "xlink:href", "srcset", "data"}:
                assert value.startswith(("#", "data:")), (tag, key, value)
    assert re.findall(r"url\((?!#)", html) == []
    assert "@import" not in html
    policies = [a["content"] for t, a in page.tags if t == "meta" and "http-equiv" in a]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]


def test_ids_are_unique_and_references_resolve(html: str) -> None:
    page = Page(html)
    counts = Counter(attributes["id"] for _, attributes in page.tags if "id" in attributes)
    assert [name for name, count in counts.items() if count > 1] == []
    used = set(re.findall(r"url\(#([^)]+)\)", html)) | set(re.findall(r'href="#([^"]+)"', html))
    for _, attributes in page.tags:
        used |= set(attributes.get("aria-labelledby", "").split())
    assert used <= set(counts)


def test_every_figure_has_a_text_alternative(html: str) -> None:
    figures = re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL)
    assert figures
    for svg in figures:
        assert 'role="img"' in svg
        title, description = re.search(r"<title[^>]*>(.*?)</title>\s*<desc[^>]*>(.*?)</desc>", svg).groups()  # type: ignore[union-attr]
        assert len(title) > 5
        assert len(description) > 20


def test_figures_take_their_colors_from_the_page(html: str) -> None:
    """A color of matplotlib's own would be black on black in dark mode."""
    figures = "".join(re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL))
    colors = set(re.findall(r"(?:fill|stroke): ([^;\"]+)", figures))
    assert "currentColor" in colors
    assert all(color in {"none", "currentColor"} or color.startswith("var(--") for color in colors), colors
    used = set(re.findall(r"var\((--[^)]+)\)", html))
    light = html[: html.index("@media")]
    assert used <= set(re.findall(r"(--[a-z0-9-]+):", light))


def test_names_of_users_are_text_and_not_markup() -> None:
    html = rendered("evaluation")
    assert "<script" not in html
    assert "alert(1)" in html
    assert "$a$" in Page(html).text


def test_tables_have_captions_and_scopes(html: str) -> None:
    page = Page(html)
    tags = Counter(tag for tag, _ in page.tags)
    assert tags["table"] == tags["caption"]
    assert all("scope" in attributes for tag, attributes in page.tags if tag == "th")
    assert tags["h1"] == 1


def test_same_numbers_same_bytes() -> None:
    assert render(evaluation()) == rendered("evaluation")


def test_figures_are_left_out_without_their_data() -> None:
    names = set(re.findall(r'<svg[^>]*aria-labelledby="([a-z0-9-]+)-title', rendered("evaluation")))
    assert names == {
        "calibration", "sizes", "groups", "by-size", "overlap", "concentration", "differences",
        "methods-coverage", "methods-size", "threshold-1", "selection",
    }  # fmt: skip
    assert "<svg" not in render({"n": 5, "nominal": 0.9, "size": {"mean": 1.0}})


# ---- the files beside it


def test_the_same_numbers_are_written_as_json_and_csv(tmp_path: Path) -> None:
    results = evaluation()
    page, as_json, as_csv = write(results, tmp_path / "report.html")
    assert page.read_text(encoding="utf-8") == rendered("evaluation")
    read = json.loads(as_json.read_text(encoding="utf-8"), parse_constant=pytest.fail)  # strict JSON
    assert read["size"]["mean"] == "inf"
    assert float(read["size"]["mean"]) == math.inf
    assert read["groups"] == results["groups"]
    assert render(read) == rendered("evaluation")
    with as_csv.open(encoding="utf-8", newline="") as file:
        rows = {row["quantity"]: row["value"] for row in csv.DictReader(file)}
    assert float(rows["coverage.low"]) == 0.8951
    assert float(rows["methods.1.size"]) == math.inf
    assert rows["groups.1.name"] == HOSTILE
    assert rows["size.full"] == ""


def test_nothing_is_overwritten_without_force(tmp_path: Path) -> None:
    (tmp_path / "report.csv").write_text("mine")
    with pytest.raises(UsageError, match=r"report\.csv would be overwritten, which is no report"):
        write(comparison(), tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
    assert (tmp_path / "report.csv").read_text() == "mine"
    (tmp_path / "report.csv").unlink()
    assert [path.name for path in write(comparison(), tmp_path / "report", force=True)] == [
        "report.html", "report.json", "report.csv",
    ]  # fmt: skip
    with pytest.raises(UsageError, match=r"report\.html, .*report\.csv exist already; pass --force"):
        write(comparison(), tmp_path / "report")


def test_data_beside_a_report_are_safe_even_with_force(tmp_path: Path) -> None:
    """``--report test.html --force`` would replace the ``test.csv`` that was just judged."""
    for name, text in [("test.csv", "a,b\n1,2\n"), ("test.json", '{"a": 1}')]:
        (tmp_path / name).write_text(text)
        with pytest.raises(UsageError, match=rf"{name} would be overwritten.*another name"):
            write(comparison(), tmp_path / "test.html", force=True)
        assert (tmp_path / name).read_text() == text
        assert not (tmp_path / "test.html").exists()
        (tmp_path / name).unlink()
    write(comparison(), tmp_path / "test.html")
    write(evaluation(), tmp_path / "test.html", force=True)
    assert "Two tasks" not in (tmp_path / "test.html").read_text(encoding="utf-8")


def test_json_alone_needs_no_drawing() -> None:
    code = "import sys, lrqr.show; print({'matplotlib', 'jinja2', 'sklearn'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


# ---- numbers in words


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_numbers_keep_their_digits(value: float) -> None:
    read = float(number(value).replace("−", "-").replace(",", ""))
    assert read == pytest.approx(value, rel=6e-4)
    assert "e+" not in number(value) or abs(value) >= 1e9


def test_numbers_in_words() -> None:
    assert [percent(value) for value in (0.9, 0.9123, 1.0, 0.0, None, math.nan)] == [
        "90%", "91.2%", "100%", "0%", "–", "–",
    ]  # fmt: skip
    values = (math.inf, -math.inf, None, 1234567.0, -0.5, 1500.25, 0.000012345)
    assert [number(value) for value in values] == [
        "∞", "−∞", "–", "1,234,567", "−0.5", "1,500.2", "1.234e−05",
    ]  # fmt: skip
    assert plain([True, None, 2.5, "x"]) == "yes, –, 2.5, x"


# ---- a real browser


def browse(page: Path, *flags: str, dark: bool = False) -> subprocess.CompletedProcess[str]:
    """Open a page in a headless browser that reaches no host."""
    binary = shutil.which("chromium")
    assert binary, "the browser tests need Debian's chromium on the PATH"
    command = [
        binary, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--host-resolver-rules=MAP * ~NOTFOUND", "--hide-scrollbars", "--window-size=1200,900",
        f"--user-data-dir={page.parent / 'profile'}", "--enable-logging=stderr",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}", *flags, page.as_uri(),
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)


def requests(log: Path) -> set[str]:
    """Addresses that were asked for, without those that the browser asks its maker for by itself."""
    events = log.read_text(encoding="utf-8", errors="replace")
    urls = set(re.findall(r'"url":"((?:https?|ftp|wss?)://[^"]*)"', events))
    return {url for url in urls if not re.match(r"https?://[a-z0-9.]+\.google(apis)?\.com/", url)}


# A window cannot be as narrow as a phone, a frame can.
PHONE = """<!DOCTYPE html><meta name="color-scheme" content="light dark"><title>waiting</title>
<iframe width="390" height="800" style="border: 0" srcdoc="PAGE"></iframe>
<script>
const frame = document.querySelector("iframe");
frame.addEventListener("load", () => {
  const page = frame.contentDocument, style = (e, key) => getComputedStyle(e)[key];
  document.title = JSON.stringify({
    scroll: page.documentElement.scrollWidth, window: frame.contentWindow.innerWidth,
    paper: style(page.body, "backgroundColor"), ink: style(page.body, "color"),
    figures: [...page.querySelectorAll("svg")].map(svg => {
      const box = svg.getBoundingClientRect(), text = svg.querySelector("text");
      const letters = text.getBoundingClientRect();
      return {width: box.width, height: box.height, fill: style(text, "fill"),
        letters: Math.min(letters.width, letters.height)};
    }),
  });
});
</script>"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_browser_renders_without_requests_or_complaints(name: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(rendered(name), encoding="utf-8")
    log, picture = tmp_path / "net.json", tmp_path / "page.png"
    result = browse(page, f"--log-net-log={log}", f"--screenshot={picture}")
    assert "CONSOLE" not in result.stderr
    assert requests(log) == set()
    pixels = matplotlib.image.imread(picture)
    assert pixels.shape[:2] == (900, 1200)
    assert len(np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)) > 50  # not blank


@pytest.mark.slow
def test_requests_and_complaints_would_be_seen(tmp_path: Path) -> None:
    page, log = tmp_path / "report.html", tmp_path / "net.json"
    html = rendered("diagnosis").replace("</body>", '<img src="http://example.org/x.png"></body>')
    page.write_text(html, encoding="utf-8")
    assert "CONSOLE" in browse(page, "--dump-dom").stderr  # refused by the page's own policy
    page.write_text(re.sub(r"<meta http-equiv[^>]*>", "", html), encoding="utf-8")
    browse(page, "--dump-dom", f"--log-net-log={log}")
    assert requests(log) == {"http://example.org/x.png"}


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", ALL)
def test_page_fits_a_phone_in_light_and_dark(name: str, dark: bool, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(PHONE.replace("PAGE", escape(rendered(name))), encoding="utf-8")
    dom = browse(page, "--dump-dom", dark=dark).stdout
    found = json.loads(unescape(re.search(r"<title>(\{.*?\})</title>", dom).group(1)))  # type: ignore[union-attr]
    assert found["window"] == 390
    assert found["scroll"] <= found["window"]
    lightness = {
        key: np.mean([int(v) for v in re.findall(r"\d+", found[key])[:3]]) for key in ("paper", "ink")
    }
    assert (lightness["paper"] < 80) == dark
    assert abs(lightness["paper"] - lightness["ink"]) > 150
    assert found["figures"]
    for figure in found["figures"]:
        assert 150 < figure["width"] <= 390
        assert figure["height"] > 60
        assert figure["fill"] == found["ink"]
        assert figure["letters"] >= 9  # pixels: smaller ones are not read on a phone
