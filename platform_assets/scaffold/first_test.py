"""The first test of a new dataflow: a row with its columns, which is read as it is written."""

from __future__ import annotations

import json
from typing import Any

from partitions.ddl import parse_ddl

_VALUES: dict[str, Any] = {
    "boolean": True,
    "date": "2026-01-31",
    "timestamp": "2026-01-31T09:15:00Z",
    "timestamp_ltz": "2026-01-31T09:15:00Z",
    "timestamp_ntz": "2026-01-31T09:15:00",
    "string": "a",
    **dict.fromkeys(("tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long"), 1),
    **dict.fromkeys(("float", "real", "double"), 1.5),
    "decimal": 1,
}
"""A value of each type that a first test has a value for; columns of other types are null."""

_TEST = """\
# A test of dataflows/{name}.yaml: `strandline test` reads the rows as a run would, and compares.
# Replace them by rows that `sql` or `transform` changes. docs/how-to/test-a-dataflow.md has all keys.
description: a row is loaded as it is
input:{schema}
{indent}- {row}
expect:
  - {row}
"""


def first_test(name: str, declared: str | None, assumed: str | None) -> str:
    """Return the text of a dataflow's first test.

    Args:
        name: of the dataflow.
        declared: the schema of its source; None if it declares none.
        assumed: the columns of the test in that case; None: such that are inferred from the row.
    """
    schema = declared or assumed or "id long, at string"
    row = json.dumps(_row(schema), ensure_ascii=False)
    lines = (
        f"\n  schema: {json.dumps(schema, ensure_ascii=False)}\n  rows:" if not declared and assumed else ""
    )
    return _TEST.format(name=name, schema=lines, indent="    " if lines else "  ", row=row)


def _row(schema: str) -> dict[str, Any]:
    types = {column.name: column.type.partition("(")[0].lower() for column in parse_ddl(schema)}
    return {name: _VALUES[type_name] for name, type_name in types.items() if type_name in _VALUES}
