from __future__ import annotations

from typing import Any, get_args

import pytest
from pydantic import TypeAdapter, ValidationError

from partitions.dataflow import Dataflow
from partitions.dataflow_parts import DataflowParts
from partitions.kinds import KINDS, AnyWatermark
from partitions.maintenance_periods import Maintenance
from partitions.sources import SOURCES, FilesSource
from partitions.supported import FORMATS, MAINTENANCE, source_refusal
from partitions.target import Target

_LOADS = set(get_args(Target.model_fields["load"].annotation))
_WATERMARKS: list[dict[str, Any]] = [
    {"type": "path"},
    {"type": "column", "columns": ["id"]},
    {"type": "stream", "event_time": "at", "timeout": "PT1M"},
]


def _classes(annotation: Any) -> set[type]:
    if isinstance(annotation, type):
        return {annotation}
    return {class_ for part in get_args(annotation) for class_ in _classes(part)}


def test_every_watermark_that_a_dataflow_can_have_is_registered() -> None:
    assert set(KINDS) == _classes(AnyWatermark)


def test_a_path_watermark_reads_files_a_stream_files_and_tables_and_an_offset_tables() -> None:
    words = [(definition.kind(), source) for definition in KINDS for source in SOURCES]
    assert {pair for pair in words if source_refusal(*pair)} == {
        *(("path", source) for source in ("jdbc", "api", "python", "table")),
        *(("stream", source) for source in ("jdbc", "api", "python")),
        *(("offset", source) for source in ("files", "jdbc", "api", "python")),
    }


def test_what_reads_new_rows_alone_refuses_an_overwrite_and_a_stream_only_adds() -> None:
    source = FilesSource(type="files", path="x", format="ndjson")
    refused = set()
    for settings in _WATERMARKS:
        watermark = TypeAdapter(AnyWatermark).validate_python(settings)
        for load in _LOADS:
            parts = DataflowParts(source, watermark, Target(load=load))
            keys = [refusal.key for refusal in KINDS[type(watermark)].refusals(parts)]
            refused |= {(watermark.type, load)} if ("target", "load") in keys else set()
    assert refused == {("path", "overwrite"), ("column", "overwrite")} | {
        ("stream", load) for load in _LOADS - {"append"}
    }


def test_the_table_has_every_format_with_every_load() -> None:
    assert set(FORMATS) == set(get_args(Target.model_fields["format"].annotation))
    assert all(set(ways) == _LOADS | {"replace_by_watermark"} for ways in FORMATS.values())


def test_the_table_says_of_every_format_what_its_care_can_do() -> None:
    assert set(MAINTENANCE) == set(FORMATS)
    tasks_of_care = set(Maintenance.model_fields) - {"keep_for_downstream"}
    assert all(set(tasks) == tasks_of_care for tasks in MAINTENANCE.values())


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"target": {"schema_mode": "merge"}, "unknown_fields": "ignore"}, "unknown_fields"),
        ({"target": {"schema_mode": "rescue"}, "unknown_fields": "ignore"}, "unknown_fields"),
        ({"target": {"schema_mode": "overwrite"}}, "target.schema_mode"),
        (
            {
                "target": {"schema_mode": "rescue"},
                "source": {
                    "type": "files",
                    "path": "x",
                    "format": "json",
                    "options": {"AllowComments": True, "allowSingleQuotes": False},
                },
            },
            "source.options.AllowComments",
        ),
        ({"watermark": {"type": "column", "columns": ["id"]}, "max_bad_records": 1}, "max_bad_records"),
        ({"max_bad_files": 2}, "max_bad_files"),
    ],
)
def test_a_wrong_schema_mode_or_bad_records_are_refused(changes: dict[str, object], key: str) -> None:
    source = {"type": "files", "path": "x", "format": "ndjson"}
    base = {"name": "a", "source": source, "watermark": {"type": "path"}}
    with pytest.raises(ValidationError) as refused:
        Dataflow.model_validate(base | changes)
    cause = refused.value.errors()[0]["ctx"]["error"]
    assert [".".join(refusal.key) for refusal in cause.refusals] == [key]


def test_every_source_is_known_by_the_type_that_it_declares() -> None:
    assert {name: get_args(source.model_fields["type"].annotation) for name, source in SOURCES.items()} == {
        name: (name,) for name in SOURCES
    }


def test_words_that_are_no_kind_or_source_are_not_refused_here() -> None:
    assert source_refusal("odd", "jdbc") is source_refusal("path", "odd") is None


def test_a_dataflow_names_every_part_that_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"watermark\.type") as refused:
        Dataflow.model_validate(
            {
                "name": "f",
                "source": {"type": "table", "table": "a/b"},
                "watermark": {"type": "path"},
                "target": {"load": "merge_overwrite", "replace_by_watermark": True},
                "schedule": "0 * * * *",
                "unknown_fields": "ignore",
            }
        )
    cause = refused.value.errors()[0]["ctx"]["error"]  # type: ignore[attr-defined]
    assert [".".join(refusal.key) for refusal in cause.refusals] == [
        "unknown_fields",
        "watermark.type",
        "target.replace_by_watermark",
        "schedule",
    ]
