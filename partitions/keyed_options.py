"""Options of loads by keys: which of them go together (docs/reference/loads.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from partitions.dataflow_parts import DataflowParts
from partitions.history import DEFAULT_NAMES
from partitions.refusal import Refusal
from partitions.target import HELPER_PREFIX, ORIGIN_COLUMNS, Target

_OF_VERSIONS = ("track", "ignore", "names", "open_end")
"""Keys that only scd2 has."""

_OF_UPSERTS = ("insert_only", "immutable", "missing_columns")
"""Keys that only merge_upsert has."""


def option_refusals(parts: DataflowParts[Any]) -> Iterator[Refusal]:
    """Yield the options of loads by keys that a target cannot have."""
    target, source, watermark = parts.target, parts.source, parts.watermark
    yield from _refused_beside_load(target, _OF_VERSIONS, "scd2")
    yield from _refused_beside_load(target, _OF_UPSERTS, "merge_upsert")
    if target.load == "merge_upsert" and target.insert_only:
        yield from _insert_only_refusals(target, carries_deletes=watermark.carries_deletes(source, target))
    if target.load == "merge_upsert":
        row_times = (part.row_columns.window for part in source.parts.values())
        yield from _immutable_refusals(target, (*watermark.value_columns, *filter(None, row_times)))
    if target.keeps_missing_columns:
        yield from _missing_column_refusals(parts)
    if target.load == "scd2":
        yield from _compared_refusals(target)
        yield from _name_refusals(target)


def _refused_beside_load(target: Target, keys: Iterable[str], load: str) -> Iterator[Refusal]:
    for key in keys:
        is_set = key in target.model_fields_set and getattr(target, key) not in (None, False, "null")
        if is_set and target.load != load:
            yield Refusal(
                ("target", key),
                f"{key} beside load: {target.load}",
                f"no such key beside load: {target.load}, or load: {load}",
            )


def _insert_only_refusals(target: Target, *, carries_deletes: bool) -> Iterator[Refusal]:
    key = ("target", "insert_only")
    if target.delete_when:
        yield Refusal(
            key,
            f"true beside delete_when: {target.delete_when}",
            "one of the two (insert_only leaves each key of the table as it is)",
        )
    elif carries_deletes:
        yield Refusal(
            key,
            "true beside a source whose updates and deletes are applied",
            "no such key; or source.on_change: skip, which reads added rows alone",
        )
    if target.immutable:
        yield Refusal(
            ("target", "immutable"),
            f"{', '.join(target.immutable)} beside insert_only: true",
            "one of the two (with insert_only every column keeps its first value)",
        )


def _immutable_refusals(target: Target, ordering: Iterable[str]) -> Iterator[Refusal]:
    keys = {name.lower() for name in target.merge_keys}
    orders = {ORIGIN_COLUMNS[0], *(name.lower() for name in ordering)}
    for name in target.immutable or ():
        if name.lower() in keys:
            yield Refusal(
                ("target", "immutable"),
                f"{name}, which is also in merge_keys",
                "other columns (an update never changes a key)",
            )
        elif name.lower() in orders:
            yield Refusal(
                ("target", "immutable"),
                f"{name}, by which rows are ordered",
                "other columns (the table must hold what its rows were ordered by). Select it a second time in sql, "
                "under another name",
            )


def _missing_column_refusals(parts: DataflowParts[Any]) -> Iterator[Refusal]:
    """Yield why nobody knows which columns a record lacks."""
    key = ("target", "missing_columns")
    if parts.step is not None:
        yield Refusal(
            key,
            f"keep beside {parts.step}",
            f"null, or no {parts.step} (its rows are no records: it decides which columns they have)",
        )
    if parts.watermark.takes_operators or parts.watermark.streams_with_spark:
        yield Refusal(
            key, f"keep beside a {parts.watermark.type} watermark", "null (its rows are no records)"
        )
    if parts.target.insert_only:
        yield Refusal(key, "keep beside insert_only: true", "one of the two (insert_only updates no row)")
    for source_key, part in parts.source.parts.items():
        for name in part.record_support.lenient_options:
            yield Refusal(
                (*source_key, "options", name),
                "true beside missing_columns: keep",
                "standard JSON, whose fields can be told apart; remove the option, or use missing_columns: null",
            )


def _compared_refusals(target: Target) -> Iterator[Refusal]:
    """Yield what ``track`` and ``ignore`` cannot name."""
    if target.track and target.ignore:
        yield Refusal(
            ("target", "ignore"),
            f"{', '.join(target.ignore)} beside track: {', '.join(target.track)}",
            "one of the two (track names all columns that are compared)",
        )
    never_compared = {
        **dict.fromkeys((name.lower() for name in target.merge_keys), "merge_keys"),
        **({target.effective_column.lower(): "effective_column"} if target.effective_column else {}),
    }
    for key, names in (("track", target.track or ()), ("ignore", target.ignore or ())):
        for name in names:
            if of_target := never_compared.get(name.lower()):
                yield Refusal(
                    ("target", key),
                    f"{name}, which is also in {of_target}",
                    "columns that a new version may change (keys and the time of a row are never compared)",
                )
            elif name.lower() in ORIGIN_COLUMNS:
                yield Refusal(
                    ("target", key),
                    name,
                    "columns of the rows themselves (each load gives a row another value there, and none is compared)",
                )


def _name_refusals(target: Target) -> Iterator[Refusal]:
    """Yield names of history columns that the table has for another purpose."""
    used_names = {
        **dict.fromkeys((name.lower() for name in target.merge_keys), "a column of merge_keys"),
        **({target.effective_column.lower(): "the effective_column"} if target.effective_column else {}),
        **dict.fromkeys((name.lower() for name in target.added), "a column that each load adds"),
        **{name.lower(): f"a column of {key}" for name, key in target.format_columns.items()},
    }
    for field, name in zip(
        ("valid_from", "valid_to", "is_current", "is_deleted"), target.names.all, strict=True
    ):
        why = used_names.get(name.lower())
        if name.lower().startswith(HELPER_PREFIX):
            why = "a name that Strandline's own queries use"
        if why is not None:
            default = getattr(DEFAULT_NAMES, field)
            yield Refusal(
                ("target", "names", field), f"{name}, which is {why}", f"a name of its own, such as {default}"
            )
        used_names[name.lower()] = f"names.{field}, too"
