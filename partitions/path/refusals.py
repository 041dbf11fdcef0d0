"""Combinations with a path watermark that are refused beyond the table in ``partitions.supported``."""

from __future__ import annotations

from collections.abc import Iterator

from partitions.path.bad_files import OnBadFile
from partitions.refusal import Refusal
from partitions.sources.definition import SourceDefinition
from partitions.target import Target

_BESIDE = "(an older file that is loaded beside the watermark would replace the rows of newer ones), or load: merge_upsert"


def refusals(
    source: SourceDefinition, target: Target, schedule: str | None, late_files: str, on_bad_file: OnBadFile
) -> Iterator[Refusal]:
    """Yield keys that a path watermark does not use, and loads that need files in order."""
    yield from source.path_refusals()
    if target.replace_by_watermark:
        yield Refusal(
            ("target", "replace_by_watermark"), "true", "no such key (each file is read once), or merge_keys"
        )
    if target.load in ("merge_upsert", "scd2") and not target.origin_columns:
        yield Refusal(
            ("target", "origin_columns"),
            f"false beside load: {target.load}",
            "true (_source_file tells which row of a key is the latest)",
        )
    if target.load == "merge_overwrite" and target.merges:
        if late_files == "ingest":
            yield Refusal(
                ("late_files",),
                "ingest beside load: merge_overwrite",
                f"quarantine, alert or ignore {_BESIDE}",
            )
        if on_bad_file == "quarantine":
            yield Refusal(("on_bad_file",), "quarantine beside load: merge_overwrite", f"stop {_BESIDE}")
    if schedule:
        yield Refusal(("schedule",), repr(schedule), "no schedule (a path watermark has a sensor)")
