"""Projects whose dataflows are Python files.

Belongs here: writing such files, and what a project makes of them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

from platform_assets.project import Project, load_project
from tests.support.feed import Feed

HEAD = """
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo
from platform_assets.public import Request, incremental_asset
BY_TIME = {"type": "column", "columns": ["at"]}
"""
"""The first lines of each file."""

HEAD_LINES = HEAD.count("\n")


def write(folder: Path, file: str, text: str, head: str = HEAD) -> None:
    """Write a Python file of a project."""
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(head + dedent(text))


def load(folder: Path, **files: str) -> Project:
    """Return the project of a folder after these files were written, ``dataflows/NAME.py`` each."""
    (folder / "dataflows").mkdir(exist_ok=True)
    for name, text in files.items():
        write(folder, f"dataflows/{name}.py", text)
    return load_project(folder, environment={})


def errors(project: Project) -> list[str]:
    """Return its errors, with lines counted from the end of the head."""
    return [str(error) for error in project.errors]


@dataclass
class PythonFeed(Feed):
    """A dataflow whose definition is a function in ``dataflows/flow.py``; its rows come from ``rows.jsonl``.

    Attributes:
        code: the file below its head. ``stored(request)`` there has all rows, and notes the call.
    """

    code: str = ""

    def _write(self) -> None:
        write(self.folder, f"dataflows/{self.name}.py", self.code, f"{HEAD}{_STORED}")

    def store(self, *rows: dict[str, Any]) -> None:
        """Add rows."""
        with (self.folder / "rows.jsonl").open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)

    @property
    def calls(self) -> list[str]:
        """What was requested since the last look."""
        file = self.folder / "calls.txt"
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return lines


_STORED = """
import json
from pathlib import Path

HERE = Path(__file__).parent.parent


def stored(request):
    with (HERE / "calls.txt").open("a") as calls:
        calls.write(request.words + chr(10))
    for line in (HERE / "rows.jsonl").read_text().splitlines():
        yield json.loads(line)

"""
