"""The condition by which rows delete their key, as a user declares it (docs/how-to/deletes.md)."""

from __future__ import annotations

from collections.abc import Iterator

from partitions.refusal import Refusal
from partitions.sql_condition import changing_part
from partitions.target import Target

_KEY = ("target", "delete_when")


def delete_refusals(target: Target, *, sends_changes: bool = False) -> Iterator[Refusal]:
    """Yield why a target cannot have its ``delete_when`` and ``keep_tombstones``.

    ``sends_changes`` says whether its rows are changes, which may come in any order.
    """
    yield from _tombstone_refusals(target, sends_changes=sends_changes)
    condition = target.delete_when
    if condition is None:
        return
    if not target.merges:
        beside = f"load: {target.load}" + (" with replace_by_watermark: true" * target.replace_by_watermark)
        yield Refusal(
            _KEY,
            f"{condition} beside {beside}",
            f"no such key beside {beside} (it finds no row by its key), or load: merge_upsert with merge_keys; or, "
            f"to only leave such rows out, sql with WHERE NOT coalesce({condition}, false)",
        )
    if changing := changing_part(condition, ()):
        yield Refusal(
            _KEY,
            f"{changing} in {condition!r}",
            "a condition that means the same at any time (a slice may be loaded again). Compare columns with "
            "each other, or with values",
        )


def _tombstone_refusals(target: Target, *, sends_changes: bool) -> Iterator[Refusal]:
    if target.keep_tombstones is None:
        return
    key = ("target", "keep_tombstones")
    if target.delete_when is None:
        yield Refusal(
            key, "no delete_when beside it", "no such key, or delete_when (it remembers deleted keys)"
        )
    elif target.load != "merge_upsert" and not (sends_changes and target.load == "scd2"):
        history = " (the versions of scd2 remember their deletes)" if target.load == "scd2" else ""
        yield Refusal(key, f"load: {target.load}", f"no such key{history}, or load: merge_upsert")
    elif target.shared:
        yield Refusal(key, "shared: true", "no such key, or a table of its own")
