"""The manners of the command line: levels, configuration, errors, exit codes, streams."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pandas as pd
import pytest
from commands import NUMBERS, lrqr, table, write

import lrqr as package
from lrqr import plugins
from lrqr.cli import cli
from lrqr.errors import NotConverged

# How well features are learned is no matter here.
pytestmark = pytest.mark.usefixtures("small_map")


def fit(folder: Path, model: str, *options: object) -> object:
    arguments = ("fit", folder / "source.csv", folder / "target.csv", *NUMBERS, "-o", folder / model)
    return lrqr(*arguments, *options)


def coverage_of(folder: Path, model: str) -> float:
    return package.load(folder / model).coverage


def test_version_and_help() -> None:
    assert lrqr("--version").out == f"lrqr {package.__version__}\n"
    for name in ("-h", "--help"):
        assert "Usage: lrqr [OPTIONS] COMMAND" in lrqr(name).out
    commands = [
        "demo",
        "fit",
        "predict",
        "evaluate",
        "compare",
        "diagnose",
        "inspect",
        "reproduce",
        "report",
        "datasets",
        "help",
    ]
    assert list(cli.commands) == commands
    assert "..." not in lrqr("--help").out.partition("Commands:")[2]  # cut off, in a terminal of 80 columns


@pytest.mark.parametrize("words", [(), ("fit",), ("datasets", "show")])
def test_help_is_a_command_too(words: tuple[str, ...]) -> None:
    assert lrqr("help", *words) == lrqr(*words, "--help")


def test_help_of_an_unknown_command_suggests_one() -> None:
    ran = lrqr("help", "fitt")
    assert ran.code == 2
    assert "did you mean 'fit'" in ran.err


def test_quiet_and_verbose_stand_before_the_command_or_after_it(folder: Path) -> None:
    predict = ("predict", folder / "model", folder / "test.csv", "-o", folder / "volume.csv", "--force")
    said = {
        where: (lrqr(*before, *predict, *after).err)
        for where, before, after in [("none", (), ()), ("before", ("-q",), ()), ("after", (), ("-q",))]
    }
    assert said["none"].startswith("Wrote 200 rows")
    assert said["before"] == said["after"] == ""
    assert lrqr(*predict, "--verbose").err == lrqr("-v", *predict).err != said["none"]
    assert lrqr("datasets", "list", "-q").code == 0
    for contradiction in (("-q", *predict, "-v"), ("-q", "-v", *predict), (*predict, "-q", "-v")):
        ran = lrqr(*contradiction)
        assert ran.code == 2
        assert "--verbose and --quiet contradict each other" in ran.err


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_help_names_every_score_and_method_as_the_page_on_choosing_does(command: str) -> None:
    said = lrqr(command, "--help").out
    page = (Path(__file__).parents[1] / "docs" / "choosing.md").read_text()
    for kind in ("scores", "methods"):
        assert f"--{kind.removesuffix('s')} [{'|'.join(plugins.names(kind))}]" in said
        assert all(f"`{name}`" in page for name in plugins.names(kind))


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["evaluate", "-h"], ["--version"]])
def test_help_is_quick_because_it_imports_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom lrqr.cli import cli\n"
        f"try:\n    cli({arguments!r})\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'pandas', 'sklearn', 'cvxpy', 'scipy', 'matplotlib', 'pyarrow', 'pydantic'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == "[]"


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, lrqr; dir(lrqr); print(sorted({'numpy', 'pandas', 'sklearn'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'LRQRR'"):
        _ = package.LRQRR


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--coverage", "90"], "'--coverage': must lie strictly between 0 and 1, got 90; did you mean 0.9?"),
        (["--coverage", "0"], "'--coverage': must lie strictly between 0 and 1, got 0"),
        (["--coverage", "1"], "'--coverage': must lie strictly between 0 and 1, got 1"),
        (["--coverage", "1.5"], "got 1.5; did you mean 0.015?"),
        (["--alpha", "10"], "'--alpha': must lie strictly between 0 and 1, got 10; did you mean 0.1?"),
        (["--alpha", "0.1", "--coverage", "0.9"], "--coverage and --alpha say the same thing"),
        (["--method", "wieghted"], "unknown method 'wieghted', did you mean 'weighted'?"),
        (["--score", "absolut"], "unknown score 'absolut', did you mean 'absolute'?"),
        (["--ridge", "big"], "'big' is neither a number nor 'auto'"),
        (["--ridge", "-1"], "ridge must be a finite number >= 0, got -1.0"),
        (["--selection", "papr"], "did you mean 'paper'?"),
        (["--method", "split", "--ridge", "1"], "method 'split' has no --ridge"),
        (["--covrage", "0.9"], "--coverage"),
        (["--base", "ridge"], "--base fits a model for you: leave out --prediction"),
        (["--probability", "p_*"], "--prediction is for regression, --probability for classification"),
        (
            ["--score", "lac"],
            "score 'lac' needs --probability, one column per class, instead of --prediction",
        ),
        (["--score-column", "y"], "--score-column brings scores of your own"),
        (["--features", "learned,given"], "--features learned and --features given contradict each other"),
        (
            ["--features", "learned", "--feature-map", "given"],
            "--feature-map given and --features learned contradict each other",
        ),
        (
            ["--feature-map", "learned", "--method", "weighted"],
            "learned features are for the methods that use none",
        ),
    ],
)
def test_what_makes_no_sense_is_one_message_and_exit_2(
    folder: Path, options: list[str], message: str
) -> None:
    ran = fit(folder, "never", *options)
    assert ran.code == 2, ran.err
    assert message in ran.err
    assert ran.out == ""
    assert not (folder / "never").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--weight-column", "z"], "weight column 'z' does not exist"),
        (["--prediction", "yhatt"], "did you mean 'yhat'?"),
        (["--features", "aa"], "feature column 'aa' does not exist"),
        (["--exclude", "c"], "excluded column 'c' does not exist"),
    ],
)
def test_what_is_wrong_in_the_data_is_exit_1(folder: Path, options: list[str], message: str) -> None:
    ran = fit(folder, "never", *options)
    assert ran.code == 1, ran.err
    assert message in ran.err


def test_alpha_is_another_way_to_say_coverage(folder: Path) -> None:
    assert fit(folder, "alpha", "--alpha", "0.2").code == 0
    assert coverage_of(folder, "alpha") == 0.8


def test_a_large_alpha_is_warned_about(folder: Path) -> None:
    ran = fit(folder, "wide", "--alpha", "0.9", "--method", "split")
    assert ran.code == 0, ran.err
    assert "--alpha 0.9 asks for a coverage of only 10 %; did you mean --coverage 0.9?" in ran.err
    assert coverage_of(folder, "wide") == 0.1


def test_flag_over_configuration_over_default(folder: Path) -> None:
    config = folder / "c.toml"
    config.write_text(
        'coverage = 0.8\nmethod = "weighted"\nfail-under = 0.5\n[fit]\nmethod = "split"\nfeatures = "a"\n'
    )
    assert fit(folder, "from-config", "-c", config).code == 0
    model = package.load(folder / "from-config")
    assert (model.coverage, model.threshold.method_, model.encoder.names_) == (0.8, "split", ("a",))
    assert fit(folder, "flag", "-c", config, "--method", "lrqr", "--alpha", "0.3").code == 0
    model = package.load(folder / "flag")
    assert (model.coverage, model.threshold.method_) == (0.7, "lrqr")
    assert lrqr("evaluate", folder / "model", folder / "test.csv", "-c", config).code == 0


def test_the_old_spelling_of_the_feature_map_works_and_says_the_new_one(folder: Path) -> None:
    old, new = (
        fit(folder, "old", "--features", "constant,a"),
        fit(folder, "new", "--features", "a", "--feature-map", "constant"),
    )
    assert (old.code, new.code) == (0, 0), old.err
    assert "write --feature-map constant" in old.err
    assert "write --feature-map" not in new.err
    models = [package.load(folder / name) for name in ("old", "new")]
    assert [model.threshold.feature_map_ for model in models] == ["constant", "constant"]
    assert [model.encoder.names_ for model in models] == [("a",), ("a",)]
    config = folder / "map.toml"
    config.write_text('feature-map = "given"\n')
    assert fit(folder, "file", "-c", config).code == 0
    assert package.load(folder / "file").threshold.feature_map_ == "given"


def test_a_column_with_the_name_of_a_feature_map_is_a_column(folder: Path, tmp_path: Path) -> None:
    for name in ("source", "target"):
        pd.read_csv(folder / f"{name}.csv").rename(columns={"a": "learned"}).to_csv(
            tmp_path / f"{name}.csv", index=False
        )
    ran = fit(tmp_path, "model", "--features", "learned", "--method", "split")
    assert ran.code == 0, ran.err
    assert "write --feature-map" not in ran.err
    assert package.load(tmp_path / "model").encoder.names_ == ("learned",)


def test_all_unknown_keys_of_a_configuration_are_named_at_once(folder: Path) -> None:
    config = folder / "bad.toml"
    config.write_text("covrage = 0.8\nmethd = 'split'\n[fit]\nrigde = 1\n")
    ran = fit(folder, "never", "-c", config)
    assert ran.code == 2
    for message in (
        "unknown key 'covrage', did you mean 'coverage'?",
        "unknown key 'methd', did you mean 'method'?",
        "unknown key 'rigde' in [fit], did you mean 'ridge'?",
    ):
        assert message in ran.err
    config.write_text("coverage = \n")
    assert "is not valid TOML" in fit(folder, "never", "-c", config).err


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('coverage = "much"', "key 'coverage': 'much' is not a valid float"),
        ("coverage = 90", "key 'coverage': must lie strictly between 0 and 1, got 90; did you mean 0.9?"),
        ("alpha = 10", "key 'alpha': must lie strictly between 0 and 1, got 10; did you mean 0.1?"),
        ('method = "wieghted"', "key 'method': unknown method 'wieghted', did you mean 'weighted'?"),
        (
            '[fit]\non-missing = "dorp"',
            "key 'on-missing' in [fit]: unknown policy 'dorp', did you mean 'drop'?",
        ),
        ("seed = -1", "key 'seed': -1 is not in the range"),
        ("seed = 1.5", "key 'seed': '1.5' is not a valid integer"),
        ("strict = 7", "key 'strict': '7' is not a valid boolean"),
        ('outcome = ["y", "z"]', "key 'outcome': takes one value, got ['y', 'z']"),
        ("[outcome]\ny = 1", "key 'outcome': takes one value, got {'y': 1}"),
        (
            'seed = "a"\nridge = "b"',
            "key 'seed': 'a' is not a valid integer range; key 'ridge': 'b' is neither",
        ),
    ],
)
def test_a_wrong_value_of_a_configuration_is_a_fault_of_the_file(
    folder: Path, body: str, message: str
) -> None:
    config = folder / "wrong.toml"
    config.write_text(body + "\n")
    ran = fit(folder, "never", "-c", config)
    assert ran.code == 2
    assert f"Error: {config}: {message}" in ran.err


def test_what_makes_no_sense_with_a_configuration_names_it_too(folder: Path) -> None:
    config = folder / "sense.toml"
    config.write_text("ridge = -1.0\n")
    ran = fit(folder, "never", "-c", config)
    assert ran.code == 2
    assert f"ridge must be a finite number >= 0, got -1.0 (options were read from {config} too)" in ran.err


def test_misspelt_commands() -> None:
    ran = lrqr("evalute", "x")
    assert ran.code == 2
    assert "no such command 'evalute', did you mean 'evaluate'?" in ran.err
    ran = lrqr("datasets", "lst")
    assert "did you mean 'list'?" in ran.err


def test_nothing_is_overwritten_without_force(folder: Path) -> None:
    ran = fit(folder, "model")
    assert ran.code == 2
    assert "model exists already; pass --force (force=True) to replace it" in ran.err
    assert fit(folder, "model", "--force").code == 0
    out = folder / "p.csv"
    out.write_text("mine")
    ran = lrqr("predict", folder / "model", folder / "test.csv", "-o", out)
    assert ran.code == 2
    assert "exists already; pass --force" in ran.err
    assert out.read_text() == "mine"


def test_files_that_are_not_there(folder: Path) -> None:
    ran = lrqr("evaluate", folder / "nowhere", folder / "test.csv")
    assert ran.code == 1
    assert f"there is no model at {folder / 'nowhere'}" in ran.err
    ran = lrqr("evaluate", folder / "model", folder / "nothing.csv")
    assert ran.code == 2
    assert "does not exist" in ran.err
    ran = lrqr("predict", folder / "model", folder / "test.csv", "-o", folder / "no" / "p.csv")
    assert ran.code == 2
    assert "make it first" in ran.err
    ran = lrqr("report", folder / "model", "-o", folder / "x.html")
    assert ran.code == 2
    assert "is no run" in ran.err


def test_an_unforeseen_error_is_one_message_without_traceback(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by chance")

    monkeypatch.setattr("lrqr.commands.inspect.inspect", broken)
    ran = lrqr("inspect", folder / "model")
    assert ran.code == 1
    assert "something unforeseen went wrong (ZeroDivisionError: by chance)" in ran.err
    assert "lrqr --debug" in ran.err
    with pytest.raises(AssertionError):  # the traceback is there when it is asked for
        lrqr("--debug", "inspect", folder / "model")


def test_exit_codes_of_strict(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unfinished(*_: object, **__: object) -> None:
        raise NotConverged("the solver stopped with a gap of 1")

    monkeypatch.setattr("lrqr.commands.fit._check_strict", unfinished)
    ran = fit(folder, "never")
    assert ran.code == 4
    assert not (folder / "never").exists()


def test_quiet_and_verbose(folder: Path) -> None:
    arguments = ("fit", folder / "source.csv", folder / "target.csv", *NUMBERS, "-o")
    assert lrqr("-q", *arguments, folder / "quiet").err == ""
    loud = lrqr("-v", *arguments, folder / "loud").err
    assert loud.startswith("reading the files\nencoding the features\n")
    assert lrqr("-q", "-v", "datasets", "list").code == 2


def test_formats(folder: Path) -> None:
    csv = lrqr("evaluate", folder / "model", folder / "test.csv", "--format", "csv").out
    assert csv.startswith("key,value\n")
    assert "coverage.value," in csv
    schema = lrqr("inspect", folder / "target.csv", "--format", "csv").out
    assert schema.splitlines()[0] == "name,kind,missing,examples"
    ran = lrqr("inspect", folder / "model", "--format", "yaml")
    assert ran.code == 2
    assert "unknown format 'yaml'" in ran.err


def test_piped_output_has_no_color_and_terminal_output_respects_no_color(folder: Path) -> None:
    assert "\x1b" not in lrqr("evaluate", folder / "model", folder / "test.csv").out
    code = (
        "import sys; sys.stdout.isatty = lambda: True\n"
        "from lrqr.show.terminal import table\nprint(table(('a', 'b'), [('x', 1.0)], title='t'))\n"
    )
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | {
        "TERM": "xterm-256color"
    }
    command = [sys.executable, "-c", code]
    color = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    plain = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment | {"NO_COLOR": "1"}
    )
    assert ";36m" in color.stdout
    assert "36m" not in plain.stdout


def test_every_option_has_help_and_every_plug_in_is_a_choice() -> None:
    for name, command in cli.commands.items():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, (name, parameter.name)
    method = next(p for p in cli.commands["fit"].params if p.name == "method")
    assert method.type.choices == plugins.names("methods")


def test_shell_completion_knows_the_names() -> None:
    from click.shell_completion import BashComplete

    complete = BashComplete(cli, {}, "lrqr", "_LRQR_COMPLETE")
    found = [item.value for item in complete.get_completions(["fit", "--method"], "w")]
    assert found == ["weighted"]
    assert "evaluate" in [item.value for item in complete.get_completions([], "ev")]


def test_module_and_script_are_the_same() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "lrqr", "--version"], capture_output=True, text=True, check=True
    )
    assert ran.stdout == f"lrqr {package.__version__}\n"
    script = Path(sys.executable).parent / "lrqr"
    ran = subprocess.run([script, "ft"], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "did you mean 'fit'" in ran.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\xff", "is not valid TOML"), (b"fit = 3\n", "'fit' must be a table of options")],
)
def test_a_file_of_options_that_is_none(tmp_path: Path, content: bytes, message: str) -> None:
    paths = write(tmp_path, source=table(20), target=table(20)[["a", "b"]])
    config = tmp_path / "c.toml"
    config.write_bytes(content)
    ran = lrqr("fit", paths["source"], paths["target"], *NUMBERS, "-c", config, "-o", tmp_path / "m")
    assert ran.code == 2
    assert message in ran.err
    if content == b"\xff":
        assert lrqr("reproduce", config).code == 2


@pytest.mark.parametrize(("name", "said"), [("SIGINT", "Interrupted\n"), ("SIGTERM", "")])
def test_a_signal_ends_it_and_leaves_the_old_result(
    folder: Path, tmp_path: Path, name: str, said: str
) -> None:
    """Sent while half of a table is written: exit code as shells count, and no file beside the old one."""
    code = (
        "import os, signal, sys\nfrom lrqr.__main__ import main\nfrom lrqr.data import writing\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "write = writing._as_csv\n"
        f"def stopped(*a, **k): os.kill(os.getpid(), signal.{name}); return write(*a, **k)\n"
        "writing._as_csv = stopped\nmain()\n"
    )
    out = tmp_path / "out.csv"
    out.write_text("old")
    predict = ["predict", folder / "model", folder / "test.csv", "-o", out, "--force"]
    command = [sys.executable, "-c", code, *map(str, predict)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (128 + signal.Signals[name], "", said)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_a_reader_that_leaves_early_is_no_error(folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "lrqr", "inspect", str(folder / "model"), "--format", "json"]
    ran = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (141, "")


def test_json_is_short_for_format_json_and_fit_and_predict_have_it(folder: Path, tmp_path: Path) -> None:
    files = folder / "source.csv", folder / "target.csv"
    shown = lrqr("diagnose", *files, "--json", "--exclude", "y,yhat")
    assert shown.json == lrqr("diagnose", *files, "--format", "json", "--exclude", "y,yhat").json
    fitted = lrqr("fit", *files, *NUMBERS, "--method", "split", "-o", tmp_path / "m", "--json")
    assert fitted.json == lrqr("inspect", tmp_path / "m", "--json").json
    assert "Wrote" in fitted.err
    predicted = lrqr("predict", tmp_path / "m", folder / "test.csv", "-o", tmp_path / "p.csv", "--json")
    assert predicted.json["rows"] == len(pd.read_csv(tmp_path / "p.csv"))
    refused = lrqr("predict", tmp_path / "m", folder / "test.csv", "-o", "-", "--json")
    assert (refused.code, "would both write to stdout" in refused.err) == (2, True)
