"""The columns that change events add to the columns of their rows (docs/reference/debezium.md)."""

from __future__ import annotations

from collections.abc import Mapping

OPERATION = "_op"
"""``c`` (created), ``u`` (updated), ``d`` (deleted) or ``r`` (read by a snapshot)."""

POSITION = "_position"
"""The place in the log of the database. Of two events the one with the higher text is later."""

TIME = "_source_time"
"""When the database made the change; NULL if it does not say so."""

SNAPSHOT = "_snapshot"
"""Whether a snapshot has read the row."""

TRANSACTION = "_transaction"
"""The transaction in the database; NULL if it does not say so."""

EVENT_COLUMNS: Mapping[str, str] = {
    OPERATION: "string",
    POSITION: "string",
    TIME: "timestamp",
    SNAPSHOT: "boolean",
    TRANSACTION: "string",
}
"""The columns in their order, each with its type."""
