"""A Singer tap that writes the rows of ``config.path`` above its bookmark.

Called as ``python -m tests.support.tap --config FILE --state FILE``.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

FIELDS = {
    "id": {"type": "integer"},
    "at": {"type": "string", "format": "date-time"},
    "value": {"type": "integer"},
}


def main() -> int:
    """Write SCHEMA, RECORD and STATE messages, by the protocol."""
    parser = argparse.ArgumentParser()
    for name in ("config", "state"):
        parser.add_argument(f"--{name}", type=Path)
    arguments = parser.parse_args()
    config, state = json.loads(arguments.config.read_text()), json.loads(arguments.state.read_text())
    since = state["bookmarks"].get("orders", {}).get("at", "")
    _write("SCHEMA", stream="orders", schema={"type": "object", "properties": FIELDS}, key_properties=["id"])
    for line in Path(config["path"]).read_text().splitlines():
        record = json.loads(line)
        if record["at"] >= since:
            _write("RECORD", stream="orders", record=record)
            since = record["at"]
    _write("STATE", value={"bookmarks": {"orders": {"at": since}}})
    return int(config.get("fails", 0))


def _write(kind: str, **message: Any) -> None:
    sys.stdout.write(json.dumps({"type": kind, **message}) + "\n")


if __name__ == "__main__":
    sys.exit(main())
