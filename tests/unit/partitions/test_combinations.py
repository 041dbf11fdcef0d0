from __future__ import annotations

from typing import get_args

import pytest
from pydantic import ValidationError

from partitions.column.definition import ColumnWatermark
from partitions.dataflow import Dataflow
from partitions.maintenance_periods import Task
from partitions.path.definition import PathWatermark
from partitions.sources import SOURCES, FilesSource
from partitions.stream.definition import StreamWatermark
from partitions.supported import (
    FORMATS,
    KINDS,
    MAINTENANCE,
    RESCUES,
    UNKNOWN_FIELDS,
    source_refusal,
)
from partitions.target import Target
from partitions.window.definition import WindowWatermark

_LOADS = set(get_args(Target.model_fields["load"].annotation))


def _kinds() -> set[str]:
    return {
        get_args(kind.model_fields["type"].annotation)[0]
        for kind in (PathWatermark, ColumnWatermark, WindowWatermark, StreamWatermark)
    }


def test_the_table_has_every_kind_with_every_source_and_every_load() -> None:
    assert set(KINDS) == _kinds()
    for supported in KINDS.values():
        assert (set(supported.sources), set(supported.loads)) == (set(SOURCES), _LOADS)


def test_the_table_has_every_format_with_every_load() -> None:
    assert set(FORMATS) == set(get_args(Target.model_fields["format"].annotation))
    assert all(set(ways) == _LOADS | {"replace_by_watermark"} for ways in FORMATS.values())


def test_the_table_says_of_every_format_what_its_care_can_do() -> None:
    assert set(MAINTENANCE) == set(FORMATS)
    assert all(set(tasks) == set(get_args(Task)) for tasks in MAINTENANCE.values())


def test_every_format_says_whether_unknown_fields_can_be_left_out() -> None:
    words = FilesSource.model_fields["format"].annotation
    assert set(UNKNOWN_FIELDS) == {*get_args(words), "api", "a source of type python"}


def test_every_format_says_whether_unfit_values_can_be_kept() -> None:
    assert set(RESCUES) == set(get_args(FilesSource.model_fields["format"].annotation))


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


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("source", sorted(SOURCES))
def test_a_kind_refuses_a_source_with_the_sentence_of_the_table(kind: str, source: str) -> None:
    refused = source_refusal(kind, source)
    expected = KINDS[kind].sources[source]
    assert (refused and refused.expected) == expected


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
