"""Streams over several sources in project files: what is refused, and where."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from partitions.lineage import Lineage

if TYPE_CHECKING:
    from tests.unit.platform_assets.project.conftest import Make

_SPARK = "watermark: {type: stream, engine: structured_streaming, event_time: ts, timeout: PT10M}"
_UNION = "operators: [{type: union}]"


def _source(name: str | None, **keys: Any) -> str:
    """A source of a list, as JSON, which YAML reads."""
    base = {
        "type": "files", "path": f"./landing/{name}", "format": "ndjson", "schema": "id long, ts timestamp",
    }  # fmt: skip
    given = {**({"name": name} if name else {}), **base, **keys}
    return json.dumps({key: value for key, value in given.items() if value is not None})


LEFT, RIGHT = _source("left"), _source("right")
TABLE = '{"name": "right", "type": "table", "table": "bronze/right"}'


def _join(**keys: Any) -> str:
    return f"operators: [{json.dumps({'type': 'join', 'on': ['id'], **keys})}]"


def _flow(*sources: str, operators: str = _UNION, watermark: str = _SPARK) -> str:
    listed = "".join(f"  - {source}\n" for source in sources)
    return f"source:\n{listed}{watermark}\n{operators}\n"


@pytest.mark.parametrize(
    "text",
    [
        _flow(LEFT, RIGHT),
        _flow(LEFT, TABLE),
        _flow(LEFT, _source("right", timeout="PT15S"), _source("third", timeout="15 seconds")),
        _flow(LEFT, _source("right", schema="ID bigint, ts timestamp_ltz NOT NULL")),
        _flow(LEFT, RIGHT, operators=_join()),
        _flow(LEFT, _source("right", path="./landing/left"), operators=_join(within="PT1H")),
        _flow(LEFT, RIGHT, operators=_join(how="left", within="PT1H")),
        _flow(LEFT, RIGHT, operators=_join(how="full", on=["id", "ts"])),
        _flow(LEFT, _source("right", schema="id long, ts timestamp, v int"), operators=_join(how="left_semi", within="PT1H")),
    ],
)  # fmt: skip
def test_several_sources_are_united_or_joined(make: Make, text: str) -> None:
    assert make(text).errors == []


_LIST = ("source", "at least two sources, or one source without a list")
_ONE = (
    "source",
    "one source, or a stream with engine: structured_streaming (only this engine joins several)",
)
_TWICE = "a path whose rows left does not read (a union would have them twice)"
_BOUND = (
    "within beside it, such as within: PT1H, or ts among on, or how: inner (only a limit in time shows when an unmatched row can"
    " find no match any more)"
)


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        (_flow(LEFT), [(1, *_LIST)]),
        (_flow(LEFT, _source("LEFT", path="./other")), [(3, "source.1.name", "a name that no other source has, ignoring case")]),
        (_flow(LEFT, _source(None)), [(3, "source.1.name", "text (this key is required)")]),
        (_flow(LEFT, _source("right", pathh="x")), [(3, "source.1.pathh", "one of complete, connection, extensions, format, missing, name, options, path, schema, timeout, type")]),
        (_flow(LEFT, '{"name": "right", "type": "jdbc", "table": "t"}'), [(3, "source.1.type", "files or table")]),
        (_flow(LEFT, _source("right", schema=None)), [(3, "source.1.schema", "a schema (a stream's columns are fixed before its first file)")]),
        (_flow(LEFT, _source("right", options={"password": "x"})), [(3, "source.1.options.password", "{env: NAME}, {file: PATH} or {function: MODULE:NAME}")]),
        (
            _flow(LEFT, _source("right", path="gs://a/b")),
            [
                (
                    3,
                    "source.1.path",
                    "a folder or s3://bucket/prefix (other object stores are not supported yet, see ROADMAP.md)",
                )
            ],
        ),
        (_flow(LEFT, _source("right", path="./.strandline/lake/x")), [(3, "source.1.path", "a place outside: a run would load its own output")]),
        (_flow(LEFT, TABLE.replace("bronze/right", "bronze/flow")), [(3, "source.1.table", "another table: a run would load its own output")]),
        (_flow(LEFT, TABLE.replace("}", ', "from": "latest"}')), [(3, "source.1.from", "no such key (only a watermark of type offset, or a stream with engine: splits, has it)")]),
        (_flow(LEFT, RIGHT, operators=""), [(1, "operators", "union or join first: there are several sources")]),
        (_flow(LEFT, RIGHT, operators="operators: [{type: union}, {type: union}]"), [(5, "operators", "union or join once, first")]),
        (
            f"source: {json.dumps({k: v for k, v in json.loads(LEFT).items() if k != 'name'})}\n{_SPARK}\n{_UNION}\n",
            [(3, "operators", "no union or join: there is one source")],
        ),
        (_flow(LEFT, RIGHT, watermark="watermark: {type: stream, event_time: ts, timeout: PT10M}"), [(1, *_ONE)]),
        (_flow(LEFT, RIGHT, watermark="watermark: {type: path}"), [(1, *_ONE)]),
        (
            _flow(LEFT, _source("right", schema="id int, ts timestamp, b string")),
            [
                (2, "source.0.schema", "the columns of right (all sources of a union have the same)"),
                (3, "source.1.schema", "id long, as left has it (each column of a union has one type)"),
            ],
        ),
        (_flow(LEFT, _source("right", schema="id long")), [(3, "source.1.schema", "the event time of each source")]),
        (_flow(LEFT, _source("right", schema="id lang")), [(3, "source.1.schema", "a type of Spark, such as string, long, double, date or timestamp")]),
        (_flow(LEFT, _source("right", path="./landing/left")), [(3, "source.1.path", _TWICE)]),
        (_flow(LEFT, _source("right", path="./landing/")), [(3, "source.1.path", _TWICE)]),
        (_flow(LEFT, RIGHT, _source("third"), operators=_join()), [(6, "operators", "two sources of a join, found 3")]),
        (_flow(LEFT, RIGHT, operators=_join(how="left")), [(5, "operators.0.how", _BOUND)]),
        (_flow(LEFT, RIGHT, operators=_join(how="left_anti", within="PT1H")), [(5, "operators.0.how", "inner, left, right, full or left_semi")]),
        (
            _flow(LEFT, RIGHT, operators=_join(on=["id", "ts"], within="PT1H")),
            [
                (
                    5,
                    "operators.0.within",
                    "no such key, or on without ts (rows with the same event time have no distance)",
                )
            ],
        ),
        (
            _flow(LEFT, RIGHT, operators=_join(on=["id", "TS"], within="PT1H")),
            [
                (
                    5,
                    "operators.0.within",
                    "no such key, or on without ts (rows with the same event time have no distance)",
                )
            ],
        ),
        (
            _flow(LEFT, RIGHT, operators=_join(), watermark=_SPARK.replace("}", ", output_mode: update}"))
            + "target: {load: merge_upsert, merge_keys: [id]}\n",
            [(4, "watermark.output_mode", "append (Spark joins streams only in output mode append)")],
        ),
        (
            _flow(LEFT, RIGHT, operators=_join(on=["device"])),
            [
                (2, "source.0.schema", "the columns of `on`"),
                (3, "source.1.schema", "the columns of `on`"),
            ],
        ),
        (
            _flow(LEFT, _source("right", schema="id string, ts timestamp"), operators=_join()),
            [
                (
                    3,
                    "source.1.schema",
                    "id long, as the first source has it (a join compares values of one type)",
                )
            ],
        ),
        (
            _flow(_source("left", schema="id long, ts timestamp, right_ts int"), RIGHT, operators=_join()),
            [
                (
                    3,
                    "source.1.name",
                    "another name for the source right: the join would have two columns named right_ts",
                )
            ],
        ),
        (
            _flow(
                LEFT,
                RIGHT,
                operators="operators: [{type: join, on: [id], how: full, within: PT1H}, {type: drop_duplicates}]",
            ),
            [
                (
                    5,
                    "operators.0.how",
                    "right, full last, or left with the sources swapped (rows without a match in the first source have no event time)",
                )
            ],
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_has_file_and_line(make: Make, text: str, errors: list[tuple[int, str, str]]) -> None:
    found = make(text).errors
    assert [(error.file, error.line, error.key, error.expected) for error in found] == [
        ("dataflows/flow.yaml", *error) for error in errors
    ]


def test_each_lake_table_of_a_list_is_upstream(make: Make) -> None:
    other = '{"name": "left", "type": "table", "table": "bronze/left"}'
    flows = {
        f"dataflows/{name}.yaml": f"source: {{type: files, path: ./{name}, format: csv}}\nwatermark: {{type: path}}\n"
        for name in ("left", "right")
    }
    project = make(_flow(other, TABLE), files=flows)
    assert project.errors == []
    assert project.lineage.upstream_dataflows("flow") == ("left", "right")
    assert project.lineage.in_order(["flow", "right", "left"])[-1] == "flow"
    assert Lineage([project.dataflows["flow"]]).upstream_assets(project.dataflows["flow"]) == (
        "bronze/left",
        "bronze/right",
    )


def test_a_path_from_the_environment_is_read_in_a_list_and_shown_by_its_variable(make: Make) -> None:
    project = make(_flow(LEFT, _source("right", path={"env": "PLACE"})), environment={"PLACE": "./secret"})
    assert project.errors == []
    assert "./secret" not in repr(project.dataflows["flow"])
