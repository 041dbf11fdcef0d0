"""What a column watermark does not go together with, beyond the table in ``partitions.supported`` (docs/guide-columns.md)."""

from __future__ import annotations

from collections.abc import Iterator

from partitions.column.definition import ColumnWatermark
from partitions.refusal import Refusal
from partitions.sources.definition import SourceDefinition
from partitions.target import Target

_REPLACING = "load: merge_overwrite with replace_by_watermark: true"


def refusals(
    source: SourceDefinition, watermark: ColumnWatermark, target: Target, on_bad_file: str
) -> Iterator[Refusal]:
    """Yield why rows above these columns cannot be read from the source, or loaded into the target."""
    yield from source.column_refusals()
    yield from source.parameter_refusals(watermark.columns, watermark.nulls)
    if on_bad_file == "quarantine":
        yield Refusal(
            ("on_bad_file",),
            "quarantine",
            "stop (rows of a file that is mended later may lie below the stored value, and no run would read them)",
        )
    if target.load == "append":
        yield from _appended_twice(watermark)
    if target.load == "append" and target.merge_keys:
        yield Refusal(
            ("target", "merge_keys"),
            ", ".join(target.merge_keys),
            "no such key beside load: append (it compares nothing)",
        )
    if target.load != "merge_overwrite" and target.replace_by_watermark:
        yield Refusal(("target", "load"), target.load, "merge_overwrite beside replace_by_watermark")
    if target.replace_by_watermark and watermark.backward is None:
        yield Refusal(
            ("target", "replace_by_watermark"),
            "true without a look-back",
            "watermark.backward beside it, or in the connection (what is read again is what is replaced)",
        )
    if target.load == "merge_overwrite" and not target.replace_by_watermark:
        yield Refusal(
            ("target", "replace_by_watermark"),
            "nothing",
            "true, beside watermark.backward (merges by keys alone are not there yet, see ROADMAP.md)",
        )
    for key, value in (("boundary", "inclusive"), ("nulls", "read")):
        if getattr(watermark, key) == value:
            yield Refusal(
                ("watermark", key),
                value,
                "another value (it reads rows again that only a merge by keys finds, which is not there yet, see ROADMAP.md)",
            )


def _appended_twice(watermark: ColumnWatermark) -> Iterator[Refusal]:
    if watermark.looks_back:
        yield Refusal(
            ("watermark", "backward"),
            "a look-back beside load: append",
            f"{_REPLACING} (append adds what is read again a second time), or no look-back (`backward: {{}}` turns off the connection's)",
        )
    if len(watermark.columns) > 1:
        yield Refusal(
            ("watermark", "columns"),
            ", ".join(watermark.columns),
            f"one column beside load: append (a row whose values fall into two runs would be added twice), or {_REPLACING}",
        )
