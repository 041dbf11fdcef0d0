"""What a definition allows for columns that its table lacks, and for columns without values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from partitions.dataflow import Dataflow


def may_take_columns(dataflow: Dataflow) -> bool:
    """Return whether another ``schema_mode`` is possible.

    Not for streams: their rows wait in tables of one schema.
    """
    return dataflow.watermark.takes_columns


def defers_types(dataflow: Dataflow) -> bool:
    """Return whether an inferred column without a value stays without a type.

    It does not if a step could name the column, or if the schema mode puts later values into rows of their
    own.
    """
    takes_new = dataflow.target.schema_mode in ("strict", "merge") and dataflow.unknown_fields == "check"
    return may_take_columns(dataflow) and takes_new and not dataflow.has_step


def named_texts(dataflow: Dataflow) -> frozenset[str]:
    """Return all texts of the definition, case-folded; they include each column name that it uses."""
    parts = (dataflow.source, dataflow.watermark, dataflow.target)
    return frozenset(text.casefold() for text in _texts([part.model_dump(mode="json") for part in parts]))


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts and the names of a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield name
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
