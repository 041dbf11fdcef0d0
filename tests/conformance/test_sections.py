"""All sections of all files are read by some test here: none is left out."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.conftest import sections

_READ = {
    "api": ("api_watermark_format", "api_ranges", "api_exclusive_offset", "api_timezone"),
    "paths": (
        "path_parse",
        "path_compare",
        "naming",
        "partition_prefixes",
        "list_above",
        "partition_extract",
    ),
    "state": ("watermark_serialise", "is_empty", "watermark_state"),
    "files": ("load",),
    "lookback": ("backward", "backward_config"),
    "predicates": ("window", "window_delete", "window_validation", "row_filter", "next_watermark"),
    "replay": ("replay_chunks", "replay_run"),
    "schema": ("schema_evolution",),
    "streams": ("watermark_filter", "merger", "sort", "scaling", "spark_watermark"),
    "units": ("unit_watermark", "bad_input"),
    "windows": ("duration_parse", "partitions", "cutoff", "execute", "multi_run"),
}


def test_every_file_and_section_is_known_to_the_adapter(directory: Path) -> None:
    unknown = [
        f"{path.stem}/{section}"
        for path in sorted(directory.glob("*.json"))
        for section in sections(directory, path.stem)
        if section not in _READ.get(path.stem, ())
    ]
    assert unknown == []
