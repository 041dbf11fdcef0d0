"""What a database's refusal means, in its own words and without secrets."""

from __future__ import annotations

import re

from partitions.errors import BadPart, SourceError, SourceInterrupted, shorten_to_line
from partitions.sources.database_types import EXPECTED_UNIT_VALUE
from resources.connections.jdbc import JdbcConnection
from resources.dialects import DIALECTS
from resources.sources.jdbc.values import RefusedValue, refused_value

_DETAILS = r"[^\n]*(?:\n  (?:Detail|Hint|Where): [^\n]*)*"
"""A message of a driver, with what PostgreSQL adds. The position that it also gives counts in the query that is made of the user's."""
_SAID = (
    # Spark quotes the query that it asked for the columns, and then the database.
    re.compile(rf"\[JDBC_EXTERNAL_ENGINE_SYNTAX_ERROR[^\]]*\].*?WHERE 1=0\. (?P<said>{_DETAILS})", re.DOTALL),
    re.compile(rf"\b(?:[\w$]+\.)+(?:PSQL\w*|SQL\w*|BatchUpdate)Exception[:)] ?(?P<said>{_DETAILS})"),
)
_NO_DRIVER = re.compile(r"ClassNotFoundException\W+org\.(postgresql|mariadb\.jdbc)\.Driver")
_QUOTED = re.compile(
    r"""(?s:near '.*' at line \d)|permission denied for \w+ \S+|'[^'\n]*'|"[^"\n]*"|`[^`\n]*`"""
)
"""Names, values, and what MariaDB quotes of a query: a table may be called ``timeouts``."""
_INTERRUPTED = re.compile(
    r"(?i)"
    # The server is not there, or not yet.
    r"connection to .* refused|connection attempt failed|can't connect to|socket fail|failed to resolve|name resolution"
    r"|name or service not known|unknown ?host|no route to host|network is unreachable|starting up|shutting down|server shutdown"
    r"|in recovery mode|not yet accepting|cannot connect now"
    # It takes no more clients.
    r"|too many (clients|connections)|connection slots|has exceeded the .* resource|has more than .* active connections"
    # The connection is gone.
    r"|connection (was |is |has been |timed )?(closed|reset|refused|killed|lost|out|bad)\b|closed the connection"
    r"|lost connection|gone away|I/O error|communications link|broken pipe|socket error|end[ -]of[ -](stream|file)|SSL SYSCALL"
    r"|EOF detected|terminating connection|error while streaming"
    # A time limit, a lock, or an operator ended the statement.
    r"|timed? ?out|statement execution time|canceling statement|query execution was interrupted|max_statement_time|deadlock"
    r"|could not serialize|record has changed since|conflict with recovery"
)
_TIME_LIMIT = re.compile(r"(?i)statement timeout|statement execution time|max_statement_time")
_CREDENTIALS = re.compile(
    r"(?i)authentication (failed|type)|no password|password-based|access denied for user|role .* (does not exist|is not permitted)|pg_hba"
)


def source_error(error: Exception, connection: JdbcConnection, shown: str = "") -> SourceError | None:
    """The error of a read that the database refused or did not answer, or of a value that no table holds; None if something else failed.

    Args:
        error: of Spark.
        connection: where the database is.
        shown: what is read of it, for people.
    """
    text = str(error)
    if value := refused_value(text):
        return _bad_value(value, connection, shown)
    if _NO_DRIVER.search(text):
        return SourceError(
            f"database {connection}: expected its driver in Spark, found none. A Spark Connect server is started with"
            f" --packages {connection.package}; `strandline dev` of this project starts one that has it, if the project had a database then"
        )
    said = driver_message(text)
    return None if said is None else error_of(said, connection)


def _bad_value(refused: RefusedValue, connection: JdbcConnection, shown: str) -> BadPart:
    where = f" in the row with {shorten_to_line(refused.row)}" if refused.row else ""
    value, is_of_units = refused.value, refused.expected.startswith(EXPECTED_UNIT_VALUE)
    found = f"{value!r} ({len(value)} letters)" if is_of_units else shorten_to_line(value)
    why = f"column {refused.column}: expected {refused.expected}, found {found}{where}"
    why = connection.hide(why)
    dialect, is_array = DIALECTS[connection.system], "an array" in refused.expected
    replacements = dialect.array_replacements if is_array else dialect.replacements
    remedies = replacements(refused.column, connection.hide(refused.value))
    if is_of_units:
        name = DIALECTS[connection.system].name(refused.column)
        return BadPart(
            f"{shown}: {why}. The database takes both for equal, the table does not. Nothing of the slice is loaded. Name the unit as it was"
            f" found; or, if it ends with blanks, read the table through a `query` in which the column is CAST({name} AS text) AS {name}",
            part=shown,
            why=why,
            code="bad_value",
        )
    return BadPart(
        f"{shown}: {why}. Nothing of the slice is loaded. Correct it at the source, or read the table through a `query` in which the column is"
        f" {' or '.join(remedies)}",
        part=shown,
        why=why,
        code="bad_value",
    )


def is_time_limit(error: SourceError) -> bool:
    """Return whether the server ended a statement because it took too long."""
    return _TIME_LIMIT.search(error.message) is not None


def driver_message(text: str) -> str | None:
    """What the database or its driver said, as it stands in Spark's error; None if neither said anything."""
    for pattern in _SAID:
        if match := pattern.search(text):
            return match["said"].strip()
    return None


_ASIDE = re.compile(r"\n\s*Is the server running [^\n]*\?|\n\s*\^\s*(?=\n|$)")
"""What PostgreSQL's library asks back, and a caret that points nowhere in one line."""


def error_of(said: str, connection: JdbcConnection) -> SourceError:
    """The error for what a database or its driver said."""
    line = shorten_to_line(_ASIDE.sub("", connection.hide(said))).rstrip(".") or "nothing"
    reason = _QUOTED.sub("''", said.partition("\nLINE ")[0])  # behind it PostgreSQL quotes the query
    if _CREDENTIALS.search(reason):
        return SourceError(
            f"database {connection}: expected to be let in, found: {line}. Correct user and password of its connection in platform.yaml"
        )
    if _INTERRUPTED.search(reason):
        return SourceInterrupted(
            f"database {connection}: expected an answer, found: {line}. Check that it runs and can be reached from where Spark runs; the next run"
            " asks again"
        )
    return SourceError(
        f"database {connection}: expected rows, found: {line}. Correct the source's table or query, its connection's url, or what the user may read"
    )
