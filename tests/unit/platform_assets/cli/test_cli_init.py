"""``strandline init``: what it writes is a valid project, and says what was found."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from partitions.dataflow import Dataflow
from partitions.ddl import parse_ddl
from partitions.path.definition import PathWatermark
from partitions.sources import FilesSource
from platform_assets.cli import main
from platform_assets.dagster_home import dagster_home
from platform_assets.fixtures.test_files import find_tests
from platform_assets.installation import ROOT
from platform_assets.project import load_project
from platform_assets.scaffold.new_project import SOURCES, TEMPLATES
from tests.support.workbooks import xlsx


def call(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(main.strandline, [str(word) for word in words])
    return result.exit_code, result.output


def made(*words: object) -> Any:
    result = CliRunner().invoke(main.strandline, ["init", *map(str, words), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def only(project: Path) -> Dataflow:
    loaded = load_project(project, environment={})
    assert loaded.errors == []
    (flow,) = loaded.dataflows.values()
    return flow


def source(flow: Dataflow) -> FilesSource:
    assert isinstance(flow.source, FilesSource)
    return flow.source


def proposed(project: Path, flow: str = "drop") -> str:
    """The schema of the comment, in one line."""
    text = (project / f"dataflows/{flow}.yaml").read_text()
    lines = re.search(r"^  # schema: >-\n((?:  #   .*\n)+)", text, flags=re.MULTILINE)
    return " ".join(line.removeprefix("  #   ") for line in lines[1].splitlines()) if lines else ""


def put(folder: Path, name: str, text: str | bytes) -> None:
    path, data = folder / name, text.encode() if isinstance(text, str) else text
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)


@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_project_of_each_kind_is_valid_as_it_is_written(tmp_path: Path, kind: str) -> None:
    document = made(tmp_path / "shop", "--kind", kind, "--name", "orders")
    assert document["files"] == [
        "platform.yaml",
        "dataflows/orders.yaml",
        "tests/orders/first.yaml",
        "definitions.py",
        "workspace.yaml",
        "dagster.yaml",
        "README.md",
        ".gitignore",
    ]
    assert document["next"][1] == "strandline run orders"
    assert only(tmp_path / "shop").kind == kind


@pytest.mark.parametrize(
    ("kind", "source_type"),
    [(kind, source_type) for kind, sources in SOURCES.items() for source_type in sources],
)
def test_a_project_of_each_kind_and_source_is_valid(tmp_path: Path, kind: str, source_type: str) -> None:
    made(tmp_path / "shop", "--kind", kind, "--source", source_type, "--name", "orders")
    flow = only(tmp_path / "shop")
    assert (flow.kind, flow.source.type) == (kind, source_type)
    assert list(flow.watermark.cautions(flow.source)) == []
    assert "{" not in re.sub(r"#.*|\{\w+: .*\}|\{start.*?\}|\{end.*?\}", "", source_block(tmp_path / "shop"))


def source_block(project: Path) -> str:
    text = (project / "dataflows/orders.yaml").read_text()
    return text[text.index("source:") : text.index("watermark:")]


@pytest.mark.parametrize(
    ("source_type", "kind"),
    [("files", "path"), ("table", "offset"), ("api", "column"), ("python", "column")],
)
def test_a_source_alone_chooses_the_first_kind_that_takes_it(
    tmp_path: Path, source_type: str, kind: str
) -> None:
    made(tmp_path / "shop", "--source", source_type)
    assert only(tmp_path / "shop").kind == kind


@pytest.mark.parametrize("kind", ["column", "window"])
def test_the_function_that_it_writes_yields_rows_of_the_schema(tmp_path: Path, kind: str) -> None:
    document = made(tmp_path / "shop", "--kind", kind, "--source", "python", "--name", "orders")
    assert "orders_rows.py" in document["files"]
    names: dict[str, Any] = {}
    exec((tmp_path / "shop/orders_rows.py").read_text(), names)
    (columns,) = {tuple(row) for row in names["rows"](None)}
    declared = only(tmp_path / "shop").source.declared_schema
    assert declared is not None
    assert tuple(column.name for column in parse_ddl(declared)) == columns


def test_settings_hold_the_connection_that_the_first_dataflow_uses(tmp_path: Path) -> None:
    made(tmp_path / "shop", "--source", "api")
    lines = (tmp_path / "shop/platform.yaml").read_text().splitlines()
    assert [line.split(":")[0] for line in lines if line.startswith(("connections", "  "))] == [
        "connections",
        "  shop",
    ]


def test_an_environment_needs_no_state_and_lake_beside_the_settings_that_it_writes(tmp_path: Path) -> None:
    made(tmp_path / "shop")
    without = load_project(tmp_path / "shop", environment={}).settings
    assert (without.state, without.lake) == ("./.strandline/state", "./.strandline/lake")
    put(tmp_path / "shop", "platform.dev.yaml", "format: parquet\n")
    dev = load_project(tmp_path / "shop", env="dev", environment={})
    assert dev.errors == []
    assert (dev.settings.state, dev.settings.lake) == ("./.strandline/dev/state", "./.strandline/dev/lake")


def test_the_definitions_that_it_writes_load(tmp_path: Path) -> None:
    made(tmp_path / "shop")
    names: dict[str, Any] = {"__file__": str(tmp_path / "shop/definitions.py")}
    exec((tmp_path / "shop/definitions.py").read_text(), names)
    assert "load_events" in names["defs"].get_repository_def().job_names


def test_a_file_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    put(tmp_path, "platform.yaml", "format: parquet\n")
    assert "platform.yaml" not in made(tmp_path)["files"]
    assert (tmp_path / "platform.yaml").read_text() == "format: parquet\n"


def test_each_file_that_it_writes_stays_as_it_is_once_it_is_there(tmp_path: Path) -> None:
    own_files = ("dagster.yaml", "README.md", "tests/more/first.yaml", ".gitignore")
    for name in own_files:
        put(tmp_path, name, "# mine\n")
    written = made(tmp_path, "--name", "more")["files"]
    assert written == ["platform.yaml", "dataflows/more.yaml", "definitions.py", "workspace.yaml"]
    assert {(tmp_path / name).read_text() for name in own_files} == {"# mine\n"}


def test_its_settings_of_dagster_are_those_of_dev_and_dev_takes_a_change_of_them(tmp_path: Path) -> None:
    made(tmp_path)
    text = (tmp_path / "dagster.yaml").read_text()
    assert yaml.safe_load(text) == yaml.safe_load((ROOT / "dagster.yaml").read_text())
    (tmp_path / "dagster.yaml").write_text(text.replace("max_concurrent_runs: 2", "max_concurrent_runs: 7"))
    home = dagster_home(tmp_path, {})
    assert yaml.safe_load((home / "dagster.yaml").read_text())["concurrency"]["runs"] == {
        "max_concurrent_runs": 7
    }


@pytest.mark.parametrize(
    ("words", "before"),
    [
        (("--kind", "path"), "> landing/2026-01-31.ndjson\nstrandline plan"),
        (("--kind", "stream"), "> landing/2.ndjson\nstrandline plan"),
        (("--kind", "column"), "Fill in the connection `erp` in `platform.yaml`, and the table"),
        (("--source", "api"), "Fill in the connection `shop` in `platform.yaml`, and path"),
        (("--source", "python"), "The function in `orders_rows.py` yields two rows"),
        (("--source", "table"), "Fill in the table that `dataflows/orders.yaml` reads"),
        (("--from", "{tmp}/drop"), "The files stay where they are. Load them:\n\n```sh\nstrandline plan"),
    ],
)
def test_the_readme_begins_with_what_its_first_dataflow_needs(
    tmp_path: Path, words: tuple[str, ...], before: str
) -> None:
    put(tmp_path / "drop", "2024-01-01.csv", "a,b\n1,2\n")
    made(tmp_path / "shop", *(word.format(tmp=tmp_path) for word in words), "--name", "orders")
    text = (tmp_path / "shop/README.md").read_text()
    assert text.startswith("# shop\n")
    assert before in text
    commands = [line.split()[1] for line in text.splitlines() if re.match(r"strandline \w", line)]
    assert commands == ["plan", "run", "show", "list", "dev", "validate", "test"]
    assert "strandline show orders " in text


def test_settings_for_production_join_a_project_and_nothing_else_is_written(tmp_path: Path) -> None:
    made(tmp_path / "shop")
    before = sorted(tmp_path.rglob("*"))
    document = made(tmp_path / "shop", "--deploy")
    written = ["deploy/README.md", "deploy/dagster.yaml", "deploy/workspace.yaml"]
    assert (document["files"], document["dataflows"]) == (written, [])
    assert sorted(set(tmp_path.rglob("*")) - set(before)) == [
        tmp_path / "shop/deploy",
        *(tmp_path / "shop" / name for name in written),
    ]
    assert made(tmp_path / "shop", "--deploy")["files"] == []
    assert call("init", tmp_path / "shop", "--deploy")[1].startswith(
        f"{tmp_path / 'shop'}: all files exist already"
    )


def test_settings_for_production_name_the_location_of_the_project(tmp_path: Path) -> None:
    made(tmp_path / "Shop North", "--deploy")
    folder = tmp_path / "Shop North"
    local, production = (
        yaml.safe_load((folder / name).read_text())["load_from"][0]
        for name in ("workspace.yaml", "deploy/workspace.yaml")
    )
    assert production["grpc_server"]["location_name"] == local["python_file"]["location_name"] == "shop_north"


def test_the_page_of_production_leads_to_no_file_that_a_project_lacks(tmp_path: Path) -> None:
    made(tmp_path / "shop", "--deploy")
    text = (tmp_path / "shop/deploy/README.md").read_text()
    assert "](../" not in text
    assert "tests/e2e" not in text
    assert "`deploy/workspace.yaml`" in text or "-w deploy/workspace.yaml" in text


def test_a_dataflow_that_is_there_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    put(tmp_path, "dataflows/events.yaml", "mine\n")
    code, output = call("init", tmp_path)
    assert (code, "found dataflows/events.yaml" in output) == (2, True)
    assert not (tmp_path / "platform.yaml").exists()


@dataclass(frozen=True)
class Drop:
    """Files of a folder, and what becomes of them.

    Attributes:
        files: by name.
        found: some of what the dataflow then is; ``proposed`` is the schema of its comment.
        said: parts of what is told.
        written: parts of the dataflow's file, in whose comments lines do not count.
    """

    files: Mapping[str, str | bytes]
    found: Mapping[str, Any]
    said: tuple[str, ...] = ()
    written: tuple[str, ...] = ()


DAY = "2024-01-01"
ITEMS = "".join(f"<item><n>{n}</n></item>" for n in range(3))
SAID_OF_ITEMS = "record is an element item (rowTag), with 3 inside the root where the first file begins; other elements make no rows: meta 1"
SAID_OF_SHEETS = (
    "records are rows of the sheet {} (sheet) of the first file; its other sheets are skipped: {}"
)
SAID_OF_WIDE = (
    "drop: 2 csv files, 124 bytes, 12 columns: c0, c1, c2, c3, c4, c5, c6, c7 and 4 more; names do not sort by time,"
    " so each file is remembered (tracking: set)\n"
)
WIDE = f"{','.join(f'c{n}' for n in range(12))}\n{'1,' * 11}1\n"
LOCAL = "id;price;day;note;ref\n1;1.234,50;28.12.2024;a,b;1.2.3\n2;9,50;;c;x\n"

DROPS = {
    "csv with its separator and its columns": Drop(
        {f"{DAY}.csv.gz": "id;name;at\n1;a;2024-01-01T10:00:00Z\n"},
        {"name": "drop", "format": "csv", "options": {"sep": ";"}, "path": "../drop", "proposed": "id int, name string, at timestamp"},
    ),
    "codes with leading zeros are declared as text": Drop(
        {f"{DAY}.csv": "plz,id,share\n01067,0,0.5\n80331,12,\n"}, {"declared": "plz string, id long, share double"}, written=("since plz would lose digits as a number",),
    ),
    "numbers longer than a long are decimals": Drop(
        {f"{DAY}.csv": "id,order\n9223372036854775807,12345678901234567890\n"}, {"proposed": "id long, order decimal(20,0)"},
    ),
    "only what Spark reads as a number is declared as one": Drop(
        {f"{DAY}.csv": "plz,padded,missing,none\n01067, 5,NA,\n80331,6,7,8\n"}, {"declared": "plz string, padded string, missing string, none long"},
    ),
    "a number with a plus is text": Drop(
        {f"{DAY}.csv": "phone,code,change\n+493012345678,007,+5\n+4989123456,008,-3\n"}, {"declared": "phone string, code string, change string"},
    ),
    **{
        f"a JSON array is told from lines [{form}{ending}]": Drop({f"{DAY}{ending}": text}, {"format": form})
        for ending in (".json", ".json.gz", ".JSON")
        for form, text in (("ndjson", '{"id": 1}\n{"id": 2}\n'), ("json", '[\n {"id": 1},\n {"id": 2}\n]\n'))
    },
    "documents of which one tells no columns are documents": Drop({f"{DAY}.json": '[{"id": 1}, null]'}, {"format": "json"}),
    **{
        f"columns of like names are left to the first run [{header}]": Drop({f"{DAY}.csv": f"{header}\n007,1,2\n"}, {"declared": None})
        for header in ("id,id,b", "id,ID,b", "id,,b", '"i\td",a,b')
    },
    "names that do not sort by time are tracked one by one": Drop(
        {"orders.parquet": "", "customers.parquet": ""}, {"tracking": "set"}, written=("do not start with a time",),
    ),
    "endings that the format does not have are named and others counted": Drop(
        {f"{DAY}.CSV": "a,b\n1,2\n", f"{DAY}.pdf": ""}, {"endings": (".CSV",)}, written=("Skipped, by their endings: 1 .pdf",),
    ),
    "files that are skipped for their endings are told of": Drop(
        {f"{DAY}.csv": "a,b\n1,2\n", "2024-01-02.csv": "a,b\n1,2\n", f"{DAY}.ndjson": '{"a": 1}\n'}, {},
        ("drop: 2 csv files, 16 bytes, 2 columns: a, b; skipped, by their endings: 1 .ndjson\n",),
    ),
    "what was found is said in a line": Drop(
        {"part-9.csv": WIDE, "part-10.csv": WIDE}, {},
        (SAID_OF_WIDE,),
    ),
    "the element of XML that repeats most is a record and the others are named": Drop(
        {f"{DAY}.xml": f"<root><meta><v>1</v></meta>{ITEMS}</root>"}, {"options": {"rowTag": "item"}}, (f"; a {SAID_OF_ITEMS}\n",), (f" A {SAID_OF_ITEMS}\n",),
    ),
    "a sheet of a title is passed over": Drop(
        {f"{DAY}.xlsx": xlsx([["Report of 2026"]], sheet="Cover", Yes=[["id"], [1]])}, {"options": {"sheet": "Yes"}}, (f"; {SAID_OF_SHEETS.format('Yes', 'Cover')}\n",), ("Yes", "Cover"),
    ),
    "the first of two sheets of rows is taken": Drop(
        {f"{DAY}.xlsx": xlsx([["id"], [1]], sheet="Data", Notes=[["a"], [1]])}, {"options": {"sheet": "Data"}}, (f"; {SAID_OF_SHEETS.format('Data', 'Notes')}\n",), ("Data", "Notes"),
    ),
    "one sheet needs no option": Drop({f"{DAY}.xlsx": xlsx([["id"], [1]], sheet="Data")}, {"options": {}}),
    "numbers and dates of other countries are text with a hint that can be taken": Drop(
        {f"{DAY}.csv": LOCAL}, {"proposed": "id int, price string, day string, note string, ref string"},
        written=("are text unless schema declares them: price decimal(12,2), day date", '{sep: ";", locale: de-DE, dateFormat: dd.MM.yyyy}'),
    ),
    "columns of csv without a value are named": Drop(
        {f"{DAY}.csv": "id,note,amount\n1,,\n2,,\n"}, {"proposed": "id int, note string, amount string"},
        ("; without a value, so text unless `schema` declares another type: note, amount\n",),
        ("Without a value in the first file, so text: note, amount. If numbers or dates will come, declare their types here before the first run.",),
    ),
    "texts of csv that look like numbers or times are text": Drop(
        {f"{DAY}.csv": "tel,d,t,e,n\n+49,1D,09:15,3E5,1\n"}, {"proposed": "tel string, d string, t string, e string, n int"},
    ),
    "texts of JSON that look like times are text": Drop(
        {f"{DAY}.json": '{"t": "09:15", "d": "2024-01-01", "e": 3.5, "x": null}'}, {"proposed": "d string, e double, t string"},
        written=("Without a value so far, and without a type: x.",),
    ),
    "texts of JSON have values": Drop({f"{DAY}.ndjson": '{"t": "09:15", "d": "x"}\n'}, {"proposed": "d string, t string"}, ("2 columns: d, t\n",)),
}  # fmt: skip


@pytest.mark.parametrize("drop", DROPS.values(), ids=DROPS)
def test_a_folder_of_files_becomes_a_dataflow_that_says_what_it_found(tmp_path: Path, drop: Drop) -> None:
    for name, text in drop.files.items():
        put(tmp_path / "drop", name, text)
    code, output = call("init", tmp_path / "shop", "--from", tmp_path / "drop")
    assert (code, [said for said in drop.said if said not in output]) == (0, []), output
    flow = only(tmp_path / "shop")
    files, written = source(flow), (tmp_path / "shop/dataflows/drop.yaml").read_text().replace("\n  # ", " ")
    assert [text for text in drop.written if text not in written] == [], written
    known: dict[str, Any] = {"name": flow.name, "format": files.format, "options": files.options, "path": files.path, "endings": files.endings}  # fmt: skip
    known |= {"declared": files.declared_schema, "proposed": proposed(tmp_path / "shop")}
    known |= {"tracking": flow.watermark.tracking if isinstance(flow.watermark, PathWatermark) else None}
    assert {key: known[key] for key in drop.found} == drop.found


def test_a_declared_schema_is_valid_whatever_its_names_are(tmp_path: Path) -> None:
    names = [
        "näme",
        "two  spaces",
        "a`b",
        "x.y",
        "from",
        "1st",
        "Datum (UTC)",
        "_under",
        *(f"long column {n}" for n in range(20)),
    ]
    put(
        tmp_path / "drop",
        "datum=2024-01-01/1.csv",
        f"Datum,plz,{','.join(names)}\n1,007{',1' * len(names)}\n",
    )
    made(tmp_path / "shop", "--from", tmp_path / "drop")
    declared = source(only(tmp_path / "shop")).declared_schema
    assert declared is not None
    assert [column.name for column in parse_ddl(declared)] == ["datum", "plz", *names]


def test_settings_name_a_database_only_for_a_dataflow_that_reads_one(tmp_path: Path) -> None:
    put(tmp_path / "drop", "2024-01-01.csv", "a,b\n1,2\n")
    made(tmp_path / "files", "--from", tmp_path / "drop")
    made(tmp_path / "rows", "--kind", "column")
    assert load_project(tmp_path / "files", environment={}).settings.connections == {}
    assert list(load_project(tmp_path / "rows", environment={}).settings.connections) == ["erp"]


def test_the_schema_that_it_found_can_be_declared_by_taking_its_comment_away(tmp_path: Path) -> None:
    put(tmp_path / "drop", "date=2024-01-01/1.json", '{"id": 1, "tags": ["a"], "at": {"the `place": 1.5}}\n')
    made(tmp_path / "shop", "--from", tmp_path / "drop")
    file = tmp_path / "shop/dataflows/drop.yaml"
    file.write_text(
        re.sub(r"^  # (schema: >-\n)  #( .*\n)", r"  \1   \2", file.read_text(), flags=re.MULTILINE)
    )
    flow = only(tmp_path / "shop")
    assert source(flow).schema_ == "date date, at struct<`the ``place`: double>, id long, tags array<string>"
    assert source(flow).format == "ndjson"
    assert flow.target.partition_by == ("date",)
    (first_test,) = find_tests(load_project(tmp_path / "shop"), [])
    assert first_test.name == "drop/first", "the test that came with it is still valid"


def test_each_folder_with_a_plain_name_becomes_a_dataflow(tmp_path: Path) -> None:
    put(tmp_path / "drop", "Web Orders/2024-01-01.csv", "a,b\n1,2\n")
    put(tmp_path / "drop", "books/1.xml", "<books><book><id>1</id></book></books>")
    assert sorted(made(tmp_path / "shop", "--from", tmp_path / "drop")["dataflows"]) == [
        "books",
        "web_orders",
    ]
    loaded = load_project(tmp_path / "shop", environment={})
    assert loaded.errors == []
    assert source(loaded.dataflows["books"]).options == {"rowTag": "book"}
    assert source(loaded.dataflows["web_orders"]).path == "../drop/Web Orders"


def test_folders_spelt_to_one_name_are_dataflows_of_their_own(tmp_path: Path) -> None:
    for folder in ("Orders", "orders", "or-ders", "or ders"):
        put(tmp_path / "drop", f"{folder}/2024-01-01.csv", "a,b\n1,2\n")
    made(tmp_path / "shop", "--from", tmp_path / "drop")
    loaded = load_project(tmp_path / "shop", environment={})
    assert loaded.errors == []
    assert {name: source(flow).path for name, flow in loaded.dataflows.items()} == {
        "orders": "../drop/Orders",
        "orders_2": "../drop/orders",
        "or_ders": "../drop/or ders",
        "or_ders_2": "../drop/or-ders",
    }


def test_a_file_that_no_format_reads_joins_no_folders_to_one_dataflow(tmp_path: Path) -> None:
    for folder in ("customers", "orders"):
        put(tmp_path / "drop", f"{folder}/2024-01-01.csv", "a,b\n1,2\n")
    put(tmp_path / "drop", "README.md", "# Exports\n")
    put(tmp_path / "drop", "pictures/2024/a.png", "")
    assert made(tmp_path / "shop", "--from", tmp_path / "drop")["dataflows"] == ["customers", "orders"]


def test_a_name_is_spelt_without_its_accents(tmp_path: Path) -> None:
    put(tmp_path / "Übersicht Köln", "2024-01-01.csv", "a,b\n1,2\n")
    assert made(tmp_path / "shop", "--from", tmp_path / "Übersicht Köln")["dataflows"] == ["ubersicht_koln"]


def test_more_dataflows_join_a_project(tmp_path: Path) -> None:
    made(tmp_path / "shop")
    put(tmp_path / "drop", "2024-01-01.csv", "a,b\n1,2\n")
    assert made(tmp_path / "shop", "--from", tmp_path / "drop", "--name", "more")["files"] == [
        "dataflows/more.yaml",
        "tests/more/first.yaml",
    ]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--from", "{tmp}/empty"], 1, "expected files of a format that Strandline reads"),
        (["--from", "{tmp}/none"], 1, "none"),
        (["--from", "postgresql://h/d"], 2, "--kind column"),
        (["--name", "Orders"], 2, "found 'Orders'"),
        (["--from", "{tmp}/empty", "--kind", "path"], 2, "found both"),
        (["--from", "{tmp}/empty", "--source", "files"], 2, "found both"),
        (["--kind", "path", "--source", "api"], 2, "For api leave out --kind, or name column or window"),
    ],
)
def test_what_it_cannot_use_writes_nothing(tmp_path: Path, words: list[str], code: int, message: str) -> None:
    (tmp_path / "empty").mkdir()
    found, output = call("init", tmp_path / "shop", *(word.format(tmp=tmp_path) for word in words))
    assert (found, message in output) == (code, True), output
    assert not (tmp_path / "shop").exists()


def test_a_folder_that_cannot_be_made_is_named_with_what_to_check(tmp_path: Path) -> None:
    put(tmp_path, "file", "")
    code, output = call("init", tmp_path / "file/shop")
    assert (code, output.startswith(f"strandline: {tmp_path}/file/shop")) == (1, True), output
    assert output.endswith(
        "Not a directory. Check its path, owner and mode, and that its disk has free space\n"
    )


ANY_BYTES: dict[str, tuple[str, bytes, str]] = {
    "null": ("a.json", b"null", "its line 1 holds null, expected an object"),
    "array of numbers": ("a.json", b"[1,2]", "element 1 of its array is a number, expected an object"),
    "deep array": ("a.json", b"[" * 100_000 + b"]" * 100_000, "nested more than 30 levels deep"),
    "deep lines": ("a.ndjson", b'{"a":' * 20_000 + b"1" + b"}" * 20_000, "nested more than 30 levels deep"),
    "long line": ("a.ndjson", b'{"a":' * 100_000, "its first line is longer than 256 KiB"),
    "doubled names": ("a.ndjson", b'{"id":1,"id":2}', 'the name "id" occurs twice in an object'),
    "empty": ("a.csv", b"", "it is empty"),
    "blank lines": ("a.csv", b"\n\n \n"[:2], "it holds blank lines alone"),
    "no text": ("a.csv", bytes(range(256)), "byte 129 is not UTF-8"),
    "UTF-16 lines": ("a.ndjson", '{"id":1}'.encode("utf-16"), "it is UTF-16"),
    "torn archive": ("a.csv.gz", gzip.compress(random.Random(1).randbytes(9999))[:5000], "it cannot be read: its compressed bytes end too early"),
    "no archive": ("a.csv.gz", b"id\n1\n", "it cannot be read: it is not a gzip file"),
    "torn zst": ("a.ndjson.zst", b"\x28\xb5\x2f\xfdxxxx", "it cannot be read"),
    "no Parquet": ("a.parquet", b"id\n1\n", "its first bytes are not those of the format parquet"),
    "no workbook": ("a.xlsx", b"id\n1\n", "its first bytes are not those of the format excel"),
    "no element": ("a.xml", b"<r/>", "it has no element inside its root"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "data", "why"), ANY_BYTES.values(), ids=ANY_BYTES)
def test_a_file_of_any_bytes_is_named_with_a_reason(tmp_path: Path, name: str, data: bytes, why: str) -> None:
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop" / name).write_bytes(data)
    code, output = call("init", tmp_path / "shop", "--from", tmp_path / "drop")
    assert (code, f'drop: not read: "{name}": ' in output, why in output) == (0, True, True), output
    written = (tmp_path / "shop/dataflows/drop.yaml").read_text().replace("\n#     ", " ")
    assert (why in written, proposed(tmp_path / "shop")) == (True, "")
    only(tmp_path / "shop")
    put(
        tmp_path / "drop",
        "b.csv" if ".csv" in name else "b.ndjson",
        "id\n1\n" if ".csv" in name else '{"id":1}\n',
    )
    put(
        tmp_path / "drop",
        "c.csv" if ".csv" in name else "c.ndjson",
        "id\n1\n" if ".csv" in name else '{"id":1}\n',
    )
    made(tmp_path / "shop", "--from", tmp_path / "drop", "--name", "more")
    assert proposed(tmp_path / "shop", "more") == ("id int" if ".csv" in name else "id long")


@given(
    data=st.binary(max_size=300),
    name=st.sampled_from(["a.json", "a.ndjson", "a.csv.gz", "a.tsv", "a.xml", "a.ods", "a.avro"]),
)
def test_any_bytes_make_a_dataflow_that_is_valid(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str
) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "drop").mkdir()
    (folder / "drop" / name).write_bytes(data)
    made(folder / "shop", "--from", folder / "drop")
    only(folder / "shop")


def test_files_beside_the_folders_of_datasets_are_told_of_and_join_none(tmp_path: Path) -> None:
    for folder in ("orders", "customers"):
        put(tmp_path / "drop", f"{folder}/2024-01-01.csv", "a,b\n1,2\n")
    put(tmp_path / "drop", "prices.csv", "sku\n1\n")
    put(tmp_path / "drop", ".hidden.csv", "x\n")
    code, output = call("init", tmp_path / "shop", "--from", tmp_path / "drop")
    assert (code, sorted(load_project(tmp_path / "shop", environment={}).dataflows)) == (
        0,
        ["customers", "orders"],
    )
    assert (
        "skipped 'prices.csv': these files lie beside the folders of datasets and belong to none of them"
        in output
    )
    assert "skipped '.hidden.csv': names that start with _ or . belong to no source" in output


def test_links_and_names_that_lead_nowhere_hold_nothing_back(tmp_path: Path) -> None:
    put(tmp_path / "drop", "2024-01-02.csv", "a\n1\n")
    (tmp_path / "drop/loop").symlink_to(tmp_path / "drop")
    (tmp_path / "drop/2024-01-01.csv").symlink_to("2024-01-01.csv")
    Path(os.fsdecode(bytes(tmp_path) + b"/drop/\xff.csv")).touch()
    code, output = call("init", tmp_path / "shop", "--from", tmp_path / "drop")
    assert (code, proposed(tmp_path / "shop")) == (0, "a int"), output
    assert 'skipped "2024-01-01.csv": a link that leads to no file' in output
    assert r'skipped "\udcff.csv": a name that is not UTF-8' in output


def test_types_hold_the_values_of_several_files(tmp_path: Path) -> None:
    """Of the first, the last and some between; what the first one lacks a value of, the first run still pins as text."""
    for number, (key, amount) in enumerate((("1", ""), ("2", "2"), ("3000000000", "2.5"), ("x4", "3"))):
        put(tmp_path / "drop", f"2026-01-0{number + 1}.csv", f"id,key,amount\n{number},{key},{amount}\n")
    made(tmp_path / "shop", "--from", tmp_path / "drop")
    assert proposed(tmp_path / "shop") == "id int, key string, amount double"
    text = (tmp_path / "shop/dataflows/drop.yaml").read_text()
    assert "Without a value in the first file, so text: amount." in text


def test_fields_of_later_json_files_are_among_the_types(tmp_path: Path) -> None:
    put(tmp_path / "drop", "a.ndjson", '{"id": 1}\n')
    put(tmp_path / "drop", "b.ndjson", '{"id": 2.5, "note": "x"}\n')
    put(tmp_path / "drop", "c.ndjson", "not json\n")
    made(tmp_path / "shop", "--from", tmp_path / "drop")
    assert proposed(tmp_path / "shop") == "id double, note string"
