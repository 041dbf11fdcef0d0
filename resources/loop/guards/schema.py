"""The schema that a run reads all slices with: pinned, declared or inferred.

See docs/reference/files.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from partitions.errors import BadPart, SchemaEvolved
from partitions.evolution import schema_changes
from resources.kinds.contract.slices import SliceT, reads_source
from resources.loop.context import RunContext
from resources.loop.rows.bad_parts import BadPartPolicy
from resources.outcome import Outcome


def pinned_schema(
    run: RunContext[SliceT], outcome: Outcome, slices: Sequence[SliceT], bad_parts: BadPartPolicy[SliceT]
) -> str | None:
    """Return the schema that a run reads its slices with, as text; None if no input shows a schema.

    In mode overwrite each run takes it from the source.

    Raises:
        SchemaError: the source or the definition needs another schema than the pinned one.
        BadPart: the input that it is inferred from cannot be read.
    """
    entry, overwrites = outcome.newest, run.dataflow.target.schema_mode == "overwrite"
    if entry is not None and entry.pinned and not overwrites:
        pinned = run.log.get_schema(entry.pinned)
        if not any(reads_source(slice_) for slice_ in slices):
            return pinned
        try:
            run.kind.reading.check_schema(run.spark, pinned)
        except SchemaEvolved as evolved:
            return evolved.pinned
        return pinned
    try:
        inferred = run.kind.reading.pin(run.spark, slices)
    except BadPart as bad:
        bad_parts.not_sampled.append(bad)
        # A schema is inferred without a file that will be passed over; it is found bad again when it is loaded.
        rest = [run.kind.bad_parts.slice_without(slice_, bad) or slice_ for slice_ in slices]
        if rest != list(slices):
            for slice_, before in zip(rest, slices, strict=True):
                if slice_ != before and slice_.why in ("run", "replay", "reconcile"):
                    bad_parts.check_count(slice_, None)
            return pinned_schema(run, outcome, rest, bad_parts)
        if any(bad_parts.leave_out(slice_, bad, None) for slice_ in slices):
            rest = bad_parts.without_left_out(slices)
            return pinned_schema(run, outcome, rest, bad_parts) if rest else None
        earlier, warnings_before = bad_parts.before(slices, bad), len(outcome.warnings)
        schema = pinned_schema(run, outcome, earlier, bad_parts) if earlier else None
        if schema is None:  # what comes before it would wait for columns that it hides
            del outcome.warnings[warnings_before:]
            raise
        return schema
    if inferred is None:
        outcome.warnings.append(
            "no file or answer has a row yet, so no schema can be inferred. Declare source.schema, or "
            "wait for rows"
        )
    elif overwrites and entry is not None and entry.pinned:
        outcome.warnings += _overwritten(run.log.get_schema(entry.pinned), inferred)
    return inferred


def _overwritten(before: str, after: str) -> list[str]:
    """Return a warning of the columns that change in mode overwrite; nothing if none do."""
    columns, next_columns = (json.loads(text)["columns"] for text in (before, after))
    changes = "; ".join(map(str, schema_changes(columns, next_columns)))
    return [f"the columns of the table change: {changes}"] if changes else []
