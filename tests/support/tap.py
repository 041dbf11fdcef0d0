"""A Singer tap: ``python -m tests.support.tap --config FILE --state FILE`` writes the rows of ``config.path`` above its bookmark."""

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
    """Write SCHEMA, RECORD and STATE messages, as the protocol says."""
    parser = argparse.ArgumentParser()
    for name in ("config", "state"):
        parser.add_argument(f"--{name}", type=Path)
    given = parser.parse_args()
    config, state = json.loads(given.config.read_text()), json.loads(given.state.read_text())
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
