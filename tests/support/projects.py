"""Project folders made from texts."""

from __future__ import annotations

from pathlib import Path

WINDOWS = (
    "source: {type: jdbc, connection: erp, table: public.a, window_column: at}\n"
    "watermark: {type: window, definition: [{name: day, type: datetime, range: {from: '2026-01-01', to: '2026-01-04'}}], window: daily}\n"
    "target: {load: merge_overwrite, replace_by_watermark: true}\n"
)
"""A dataflow with a window watermark, over a database."""

FILES = "source: {type: files, path: ./landing, format: ndjson}\nwatermark: {type: path}\n"
"""A dataflow over files."""


def project_of(folder: Path, **dataflows: str) -> Path:
    """Write a project with a landing zone, its settings, and these dataflows by their names."""
    for name in ("dataflows", "landing"):
        (folder / name).mkdir()
    (folder / "platform.yaml").write_text("state: ./state\nlake: ./lake\n")
    for name, text in dataflows.items():
        (folder / "dataflows" / f"{name}.yaml").write_text(text)
    return folder
