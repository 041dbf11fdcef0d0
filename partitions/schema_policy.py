"""What a definition says of columns that its table does not have yet: whether it takes them, and whether one without a value waits for its type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from partitions.dataflow import Dataflow


def may_take_columns(dataflow: Dataflow) -> bool:
    """Return whether another ``schema_mode`` goes with its watermark: rows of a stream wait in tables of one schema."""
    return dataflow.kind != "stream"


def defers_types(dataflow: Dataflow) -> bool:
    """Return whether an inferred column without a value has no type yet: a step could name it, and other modes make rows of their own of what comes later."""
    takes_new = dataflow.target.schema_mode in ("strict", "merge") and dataflow.unknown_fields == "check"
    return may_take_columns(dataflow) and takes_new and not dataflow.has_step


def named_texts(dataflow: Dataflow) -> frozenset[str]:
    """Return all texts of the definition, case-folded: no column that it names is missing among them."""
    parts = (dataflow.source, dataflow.watermark, dataflow.target)
    return frozenset(text.casefold() for text in _texts([part.model_dump(mode="json") for part in parts]))


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts of a document, and the names in it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield name
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
