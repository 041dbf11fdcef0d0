"""A list of sources as a definition: what the state depends on, and what its columns are called."""

from __future__ import annotations

from typing import Any

import pytest

from partitions.dataflow import Dataflow
from partitions.fingerprint import fingerprint, identity
from partitions.fingerprint_changes import MEANINGS, changes
from partitions.readings import dataflows_by_source
from partitions.sources import SeveralSources
from partitions.spark_stream.union_join import joined_names
from partitions.stream.operators import Join

_FILES = {"type": "files", "format": "ndjson", "schema": "id long, ts timestamp"}
LEFT, RIGHT = ({"name": name, "path": f"./{name}", **_FILES} for name in ("left", "right"))


def _flow(*sources: dict[str, Any], **watermark: Any) -> Dataflow:
    spark = {"type": "stream", "engine": "structured_streaming", "event_time": "ts", "timeout": "PT10M"}
    return Dataflow.model_validate(
        {
            "name": "f",
            "source": list(sources),
            "watermark": spark | watermark,
            "operators": [{"type": "union"}],
        }
    )


def test_a_timeout_is_no_part_of_what_the_state_depends_on() -> None:
    same = _flow(LEFT, RIGHT | {"timeout": "PT1S"}, timeout="PT1H")
    assert fingerprint(same) == fingerprint(_flow(LEFT, RIGHT))


@pytest.mark.parametrize(
    ("flow", "name"),
    [
        (_flow(RIGHT, LEFT), "source.sources"),
        (_flow(LEFT, RIGHT, RIGHT | {"name": "third", "path": "./third"}), "source.sources"),
        (_flow(LEFT, RIGHT | {"path": "./other"}), "source.sources"),
        (_flow(LEFT, RIGHT | {"name": "other"}), "source.sources"),
        (_flow(LEFT, RIGHT, policy="max"), "policy"),
    ],
)
def test_order_names_places_and_policy_are_what_the_state_needs(flow: Dataflow, name: str) -> None:
    (change,) = changes(identity(_flow(LEFT, RIGHT)), identity(flow))
    assert change.name == name
    assert str(change).endswith(f"({MEANINGS[name]})")


def test_each_source_of_a_list_is_read_alone_by_a_dataflow_like_it() -> None:
    flow = _flow(LEFT, RIGHT)
    assert isinstance(flow.source, SeveralSources)
    assert [reading.source for reading in dataflows_by_source(flow)] == list(flow.source.sources)
    assert [reading.name for reading in dataflows_by_source(flow)] == ["f", "f"]


def test_a_column_that_both_sources_have_is_named_after_the_second() -> None:
    join = Join(type="join", on=("id",))
    assert joined_names(["id", "ts", "v"], ["ID", "TS", "w"], join, "right") == {"TS": "right_TS", "w": "w"}


def test_a_column_of_a_join_with_the_name_of_another_is_refused() -> None:
    join = Join(type="join", on=("id",))
    with pytest.raises(ValueError, match="the join would have two columns named right_ts"):
        joined_names(["id", "ts", "right_ts"], ["id", "ts"], join, "right")
