"""Settings that cannot be combined with a path watermark (docs/reference/files.md)."""

from __future__ import annotations

from collections.abc import Iterator

from partitions.checks import LATE_FILES, NAMES_SORT_BY_TIME, QUARANTINED_FILES
from partitions.dataflow_parts import DataflowParts, KindRules
from partitions.path.definition import PathWatermark
from partitions.path.state import PathState
from partitions.refusal import Refusal
from partitions.sources.definition import SourceDefinition

_BESIDE = "(an older file that is loaded beside the watermark would replace the rows of newer ones), or load: merge_upsert"


def _expected_source(source: type[SourceDefinition]) -> str | None:
    return None if source.holds_files else "a source of type files (a path watermark needs files)"


def refusals(parts: DataflowParts[PathWatermark]) -> Iterator[Refusal]:
    """Yield keys that a path watermark does not use, and loads that need files in order."""
    source, target = parts.source, parts.target
    yield from source.windowless_refusals() if source.holds_files else ()
    if target.load == "overwrite":
        yield Refusal(
            ("target", "load"),
            target.load,
            "append or merge_upsert (each run reads only new files: an overwrite would delete the rows of all others)",
        )
    if target.replace_by_watermark:
        yield Refusal(
            ("target", "replace_by_watermark"), "true", "no such key (each file is read once), or merge_keys"
        )
    if target.load in parts.watermark.columns_of_loads and not target.origin_columns:
        yield Refusal(
            ("target", "origin_columns"),
            f"false beside load: {target.load}",
            "true (_source_file tells which row of a key is the latest)",
        )
    if target.load == "merge_overwrite" and target.merges:
        if parts.late_files == "ingest":
            yield Refusal(
                ("late_files",),
                "ingest beside load: merge_overwrite",
                f"quarantine, alert or ignore {_BESIDE}",
            )
        if parts.on_bad_file == "quarantine":
            yield Refusal(("on_bad_file",), "quarantine beside load: merge_overwrite", f"stop {_BESIDE}")
    if parts.schedule:
        yield Refusal(("schedule",), repr(parts.schedule), "no schedule (a path watermark has a sensor)")


RULES = KindRules(
    PathState,
    _expected_source,
    refusals,
    checks=lambda _: (NAMES_SORT_BY_TIME, LATE_FILES, QUARANTINED_FILES),
)
