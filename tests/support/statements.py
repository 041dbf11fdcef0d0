"""The statements that a database received, from its own log."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.support.databases import DatabaseRows, OnPostgres


class StatementLog:
    """The statements that a database received from a dataflow's user."""

    def __init__(self, rows: DatabaseRows) -> None:
        self._rows = rows
        rows.user = rows.reader()
        if isinstance(rows, OnPostgres):
            rows.ask(f"ALTER ROLE {rows.user[0]} SET log_statement = 'all'")
            self._log = rows.server.folder / "log"
        else:
            rows.ask("SET GLOBAL log_output = 'TABLE'")
            rows.ask("SET GLOBAL general_log = 1")

    def clear(self) -> None:
        """Forget the statements so far."""
        if isinstance(self._rows, OnPostgres):
            self._begins = self._log.stat().st_size
        else:
            self._rows.ask("TRUNCATE mysql.general_log")

    @property
    def reads(self) -> Sequence[str]:
        """Return the statements that read the table's rows, not only its columns."""
        if isinstance(self._rows, OnPostgres):
            text = self._log.read_bytes()[self._begins :].decode()
            statements = re.findall(
                r"LOG:  (?:statement|execute (?!fetch )[^:]*): (.*?)(?=\n\d{4}-\d\d-\d\d |\Z)",
                text,
                re.DOTALL,
            )
        else:
            assert self._rows.user is not None
            log_rows = self._rows.ask(
                "SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log WHERE command_type IN ('Query', 'Execute')"
                f" AND user_host LIKE '{self._rows.user[0]}%' ORDER BY event_time"
            )
            statements = [statement for (statement,) in log_rows]
        of_table = (
            statement for statement in statements if self._rows.name in statement and "filler" in statement
        )
        return [statement for statement in of_table if not re.search(r"WHERE 1 ?= ?0", statement)]
