"""What stands around the package holds together: workflows, the action, the citation, the Dockerfile."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest

import lrqr
from lrqr.cli import cli

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HOME = PROJECT["urls"]["Homepage"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
OTHERS = [ROOT / "action.yml", ROOT / "CITATION.cff"]

pytestmark = pytest.mark.slow  # PyYAML comes with the tools of the documentation site


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _yaml(path: Path) -> Any:
    import yaml

    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _scripts(document: Any) -> list[str]:
    """All ``run`` steps, however deep."""
    if isinstance(document, list):
        return [script for item in document for script in _scripts(item)]
    if not isinstance(document, dict):
        return []
    own = [document["run"]] if isinstance(document.get("run"), str) else []
    return own + [script for item in document.values() for script in _scripts(item)]


@pytest.mark.parametrize("path", [*WORKFLOWS, *FORMS, *OTHERS], ids=_name)
def test_it_is_yaml_with_content(path: Path) -> None:
    assert isinstance(_yaml(path), dict)


@pytest.mark.parametrize("path", WORKFLOWS, ids=_name)
def test_workflows_run_targets_that_exist(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z0-9-]+):", makefile, re.MULTILINE))
    wanted = {
        word
        for script in _scripts(_yaml(path))
        for line in script.splitlines()
        if line.startswith("make ")
        for word in line.split()[1:]
        if "=" not in word
    }
    assert wanted
    assert wanted - targets == set()


def test_the_workflow_tests_the_pythons_that_the_package_names() -> None:
    matrix = _yaml(ROOT / ".github" / "workflows" / "test.yml")["jobs"]["test"]["strategy"]["matrix"]
    prefix = "Programming Language :: Python :: "
    named = [
        entry.removeprefix(prefix) for entry in PROJECT["classifiers"] if re.match(prefix + r"3\.", entry)
    ]
    assert matrix["python"] == named
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_the_gate_calls_evaluate_with_options_that_exist() -> None:
    action = _yaml(ROOT / "action.yml")
    (script,) = (script for script in _scripts(action) if "lrqr evaluate" in script)
    options = {name for option in cli.commands["evaluate"].params for name in option.opts}
    assert set(re.findall(r"--[a-z-]+", script)) - options == set()
    # No input is pasted into a script, where its text would be run.
    assert not any("${{" in script for script in _scripts(action))
    used = set(re.findall(r"inputs\.([a-z-]+)", (ROOT / "action.yml").read_text(encoding="utf-8")))
    assert used == set(action["inputs"])
    assert all("description" in one for one in action["inputs"].values())


def test_forms_have_what_github_asks_for() -> None:
    for path in FORMS:
        form = _yaml(path)
        if path.stem == "config":
            assert form["contact_links"]
            continue
        assert {"name", "description", "body"} <= set(form)
        fields = [item for item in form["body"] if item["type"] != "markdown"]
        assert len({item["id"] for item in fields}) == len(fields) > 0
        assert all(item["attributes"]["label"] for item in fields)


def test_the_citation_is_of_this_version() -> None:
    citation = _yaml(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["version"] == PROJECT["version"] == lrqr.__version__
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == HOME
    paper = citation["preferred-citation"]
    method = " ".join((ROOT / "docs" / "method.md").read_text(encoding="utf-8").split())
    assert paper["title"] in method
    assert paper["identifiers"][0]["value"] in method


def test_addresses_are_those_of_the_package() -> None:
    paths = [*ROOT.glob("*.md"), *WORKFLOWS, *FORMS, *OTHERS, ROOT / "mkdocs.yml"]
    known = {HOME, PROJECT["urls"]["Documentation"]}
    for path in paths:
        text = path.read_text(encoding="utf-8")
        found = re.findall(
            r"https://(?:github\.com/[\w-]*lrqr[\w-]*/[\w-]+|[\w-]*lrqr[\w-]*\.github\.io/\w+)", text
        )
        assert set(found) <= known, path


def test_the_image_is_built_from_files_that_exist_and_runs_as_a_user() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    words = [shlex.split(line) for line in lines if line and not line.startswith("#")]
    copied = [
        name for kind, *names in words if kind == "COPY" and "--from" not in names[0] for name in names[:-1]
    ]
    assert copied
    assert all((ROOT / name).exists() for name in copied)
    readme = {PROJECT["readme"], *PROJECT["license-files"], "pyproject.toml"}
    assert readme <= set(copied)
    order = [kind for kind, *_ in words]
    assert order.index("USER") < order.index("ENTRYPOINT")
    example = next(line for line in lines if "docker run" in line).split(" lrqr ", 1)[1].split()
    command = cli.commands[example[0]]
    assert isinstance(command, click.Command)
    assert {word for word in example if word.startswith("--")} <= {n for p in command.params for n in p.opts}


def test_the_licences_of_all_that_is_needed_stand_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """What newer versions need besides is listed by the next run of the script; copyleft comes in by none."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import list_licences

    found = list_licences.needed("lrqr", {})
    page = list_licences.PAGE.read_text(encoding="utf-8")
    for line in PROJECT["dependencies"]:
        name = re.split("[<>=]", line)[0]
        assert name in found
        assert f"| {name} | " in page
    assert not [text for text in found.values() if re.search(r"\b(A?GPL|General Public)", text)]
