"""Files as people have them: their separators, decimals, kinds, names, and the streams of a shell."""

from __future__ import annotations

import gzip
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner
from commands import NUMBERS, fresh, lrqr, table, write
from pyarrow import feather

from lrqr.cli import cli
from lrqr.data import tables
from lrqr.data.roles import Roles
from lrqr.errors import DataError, LrqrWarning

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SPLIT = ("--method", "split")


def read(path: Path, **reading: Any) -> pd.DataFrame:
    """Read the columns as features, whatever is warned of."""
    with pytest.warns(LrqrWarning) if reading.pop("warned", False) else _quiet():
        return tables.read(path, Roles(**reading)).features


class _quiet:  # noqa: N801 - used like pytest.warns
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


@pytest.mark.parametrize(
    ("name", "text", "warned"),
    [
        ("a.csv", "x;z\n1,5;1.234,5\n2,25;-987,0\n", True),
        ("a.csv", "x|z\n1.5|1234.5\n2.25|-987\n", True),
        ("a.csv", "x\tz\n1.5\t1234.5\n2.25\t-987\n", True),
        ("a.tsv", "x\tz\n1.5\t1234.5\n2.25\t-987\n", False),
        ("A.TXT", "x\tz\n1.5\t1234.5\n2.25\t-987\n", True),
        ("a.csv", "sep=,\nx,z\n1.5,1234.5\n2.25,-987\n", False),
        ("a.csv", "sep=;\r\nx;z\r\n1,5;1.234,5\r\n2,25;-987,0\r\n", True),
        ("a.csv", 'x,z\n"1.5",1234.5\n2.25,"-987"\n', False),
    ],
)
def test_marks_are_recognized_and_said(tmp_path: Path, name: str, text: str, warned: bool) -> None:
    (tmp_path / name).write_text(text, newline="")
    found = read(tmp_path / name, warned=warned)
    np.testing.assert_array_equal(found[["x", "z"]], [[1.5, 1234.5], [2.25, -987.0]])
    packed = tmp_path / f"{name.upper()}.GZ"
    packed.write_bytes(gzip.compress(text.encode()))
    pd.testing.assert_frame_equal(found, read(packed, warned=warned))


def test_marks_may_be_said(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('x,z\n"1,5",u;v\n"2,5",w;v\n')
    assert read(tmp_path / "a.csv", decimal=",", categorical=("z",))["x"].tolist() == [1.5, 2.5]
    (tmp_path / "b.csv").write_text("x:z\n1:2\n3:4\n")
    assert read(tmp_path / "b.csv", separator=":")["z"].tolist() == [2.0, 4.0]
    ran = lrqr("inspect", tmp_path / "b.csv", "--separator", ":", "--format", "json")
    assert [row["name"] for row in ran.json["columns"]] == ["x", "z"]


def test_a_whole_job_on_german_files(tmp_path: Path) -> None:
    source, target = table(60, seed=1), table(40, seed=2).drop(columns="y")
    paths = write(tmp_path, s=source, t=target)
    for name, frame in (("gs", source), ("gt", target)):
        frame.to_csv(tmp_path / f"{name}.csv", sep=";", decimal=",", index=False)
    for pair, model in ((("s", "t"), "one"), (("gs", "gt"), "two")):
        files = [tmp_path / f"{name}.csv" for name in pair]
        assert lrqr("fit", *files, *NUMBERS, *SPLIT, "-o", tmp_path / model).code == 0
        out = tmp_path / f"{model}.csv"
        ran = lrqr("predict", tmp_path / model, files[1], "-o", out, "--keep", "yhat")
        assert ("numbers have decimal commas" in ran.err) == (model == "two")
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    assert paths["s"].exists()


def test_a_name_to_type_is_quoted_for_the_shell(tmp_path: Path) -> None:
    made = [f"2024-01-{day:02d}" for day in range(1, 29)] * 3
    for name, n in (("s", 60), ("t", 40)):
        table(n, seed=n).assign(**{"made on (T€)": made[:n]}).to_csv(tmp_path / f"{name}.csv", index=False)
    ran = lrqr("fit", tmp_path / "s.csv", tmp_path / "t.csv", *NUMBERS, *SPLIT, "-o", tmp_path / "m")
    assert ran.code == 1
    assert "--exclude 'made on (T€)'" in ran.err


def test_fit_says_what_the_solver_chose_if_asked(tmp_path: Path) -> None:
    write(tmp_path, s=table(60, seed=1), t=table(40, seed=2).drop(columns="y"))
    files = [tmp_path / "s.csv", tmp_path / "t.csv"]
    brief = lrqr("fit", *files, *NUMBERS, "-o", tmp_path / "m").err
    full = lrqr("fit", *files, *NUMBERS, "-o", tmp_path / "m", "--force", "-v").err
    for words in ("regularization", "Pareto k"):
        assert words not in brief
        assert words in full


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["1.337", "987", "2.500"], "'1.337' stands beside whole numbers"),
        (["01234", "10115", "00501"], "'01234' and 1 more have leading zeros"),
        (["1.337", "0.987", "25"], ""),
        (["1.337", "2.500", "3.125"], ""),
        (["0", "10", "0.5"], ""),
    ],
)
def test_numbers_that_may_be_misread_are_named(tmp_path: Path, values: list[str], words: str) -> None:
    (tmp_path / "a.csv").write_text("\n".join(["x,z", *(f"{value},1" for value in values)]) + "\n")
    if words:
        with pytest.warns(LrqrWarning, match=f"a.csv: column 'x': {words}"):
            tables.read(tmp_path / "a.csv", Roles())
    else:
        tables.read(tmp_path / "a.csv", Roles())


def test_a_comma_in_an_outcome_gets_a_hint(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('x,y\n1,"1,5"\n2,"2,5"\n')
    with pytest.raises(DataError, match="if the comma stands before decimals, pass --decimal ,"):
        tables.read(tmp_path / "a.csv", Roles(outcome="y"), need=("features", "outcome"))


def _excel(path: Path, frame: pd.DataFrame) -> None:
    """Write the smallest workbook that there is, after ECMA-376."""
    rows = [[*frame.columns], *frame.to_numpy().tolist()]
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    cells = "".join(
        "<row>"
        + "".join(
            f'<c t="inlineStr"><is><t>{cell}</t></is></c>'
            if isinstance(cell, str)
            else f"<c><v>{cell!r}</v></c>"
            for cell in row
        )
        + "</row>"
        for row in rows
    )
    kinds = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    with zipfile.ZipFile(path, "w") as book:
        book.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{package}/content-types"><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{kinds}.sheet.main+xml"/>'
            f'<Override PartName="/xl/s.xml" ContentType="{kinds}.worksheet+xml"/></Types>',
        )
        relation = '<Relationships xmlns="{}/relationships"><Relationship Id="r1" Type="{}/{}" Target="{}"/>'
        relation += "</Relationships>"
        book.writestr("_rels/.rels", relation.format(package, office, "officeDocument", "xl/workbook.xml"))
        book.writestr("xl/_rels/workbook.xml.rels", relation.format(package, office, "worksheet", "s.xml"))
        book.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
            '<sheet name="s" sheetId="1" r:id="r1"/></sheets></workbook>',
        )
        sheet = f'<worksheet xmlns="{main}"><sheetData>{cells}</sheetData></worksheet>'
        book.writestr("xl/s.xml", sheet)


KINDS: dict[str, Callable[[Path, pd.DataFrame], None]] = {
    ".feather": lambda path, frame: feather.write_feather(pa.Table.from_pandas(frame), path),
    ".arrow": lambda path, frame: feather.write_feather(pa.Table.from_pandas(frame), path, "zstd"),
    ".jsonl": lambda path, frame: frame.to_json(path, orient="records", lines=True, double_precision=15),
    ".NDJSON": lambda path, frame: frame.to_json(path, orient="records", lines=True, double_precision=15),
    ".xlsx": _excel,
}  # fmt: skip


@pytest.mark.parametrize("suffix", KINDS)
def test_other_kinds_of_files_are_read(tmp_path: Path, suffix: str) -> None:
    frame = table(50)[["a", "b"]].round(6).assign(c=np.resize(["u", "v"], 50), k=np.arange(50) % 7)
    KINDS[suffix](tmp_path / f"t{suffix}", frame)
    found = tables.read(tmp_path / f"t{suffix}", Roles()).features
    np.testing.assert_allclose(found[["a", "b", "k"]].astype(float), frame[["a", "b", "k"]], rtol=1e-14)
    assert found["c"].tolist() == frame["c"].tolist()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("book.csv", b"PK\x03\x04\0\0\0", "is a zip archive, as Excel files are; rename it to end in .xlsx"),
        ("page.csv", b"<!DOCTYPE html><html></html>\n", "content is a web page; save the table itself"),
        ("page.txt", b"\n <html>\n", "content is a web page"),
        ("t.csv", b"PAR1\0\0", "rename it to end in .parquet"),
        ("t.csv", gzip.compress(b"a,b\n1,2\n", mtime=0), "packed by gzip; rename it to end in .gz"),
        ("t.csv", b'{"a": 1}\n', "rename it to end in .jsonl"),
        ("t.db", b"SQLite format 3\0", "sqlite3 -header -csv"),
        ("t.zip", b"PK\x03\x04", "unpack it first: unzip"),
        ("t.xls", b"\xd0\xcf\x11\xe0", "save it as .xlsx or .csv"),
        ("t.json", b"[{}]", "pandas.read_json("),
        ("t.xlsx", b"PK\x03\x04\0\0", "not a readable .xlsx file"),
        ("comment.csv", b"# exported 2024-05-01\na,b\n1,2\n", "It is '# exported 2024-05-01'"),
    ],
)  # fmt: skip
def test_what_is_no_table_gets_one_sentence(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    ran = lrqr("inspect", tmp_path / name)
    assert (ran.code, words in ran.err) == (1, True), ran.err
    assert "\0" not in ran.err
    assert len(ran.err.splitlines()) <= 2


def test_an_address_is_to_be_downloaded_first(tmp_path: Path) -> None:
    ran = lrqr("fit", "https://example.org/a.csv", tmp_path, "-o", tmp_path / "m")
    assert (ran.code, "download it first (curl -LO https://example.org/a.csv)" in ran.err) == (2, True)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_predict_reads_stdin_and_writes_stdout(tmp_path: Path, suffix: str) -> None:
    rows = table(40, seed=2).drop(columns="y")
    paths = write(tmp_path, s=table(60, seed=1), t=rows)
    assert lrqr("fit", paths["s"], paths["t"], *NUMBERS, *SPLIT, "-o", tmp_path / "m").code == 0
    assert lrqr("predict", tmp_path / "m", paths["t"], "-o", tmp_path / "o.csv").code == 0
    rows.to_parquet(tmp_path / "t.parquet")
    given = (tmp_path / f"t{suffix}").read_bytes()
    ran = CliRunner().invoke(cli, ["predict", str(tmp_path / "m"), "-", "-o", "-"], input=given)
    assert (ran.exit_code, ran.stdout_bytes) == (0, (tmp_path / "o.csv").read_bytes())
    ran = CliRunner().invoke(cli, ["fit", "-", str(paths["t"]), *NUMBERS, *SPLIT, "-o", str(tmp_path / "n")],
                             input=paths["s"].read_bytes())  # fmt: skip
    assert ran.exit_code == 0
    ran = CliRunner().invoke(cli, ["fit", "-", "-", "-o", str(tmp_path / "n")], input=b"a\n1\n")
    assert (ran.exit_code, "only one file can be -" in ran.stderr) == (2, True)


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "latin-1"])
def test_nothing_fails_for_an_encoding(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "größe.csv").write_text("größe,λ\n1,2\n3,4\n", encoding="utf-8")
    commands = ["inspect", "größe.csv"], ["fit", "--help"], ["inspect", "nowhere–.csv"]
    shown, helped, failed = fresh(tmp_path, *commands, PYTHONIOENCODING=encoding, PYTHONUTF8="1")
    assert (shown.code, helped.code, failed.code) == (0, 0, 1)
    assert not any("fault of lrqr" in ran.err for ran in (shown, helped, failed))
    assert " ----" in shown.out
