"""Translate a database's refusals into errors, in the database's words and without secrets."""

from __future__ import annotations

import re

from partitions.errors import BadPart, SourceError, SourceInterrupted, shorten_to_line
from partitions.sources.database_types import EXPECTED_UNIT_VALUE
from resources.connections.jdbc import JdbcConnection
from resources.dialects import DIALECTS
from resources.sources.jdbc.values import RefusedValue, refused_value

_DETAILS = r"[^\n]*(?:\n  (?:Detail|Hint|Where): [^\n]*)*"
"""A driver's message with PostgreSQL's details, but not the position, which refers to a generated query."""
_DRIVER_MESSAGES = (
    # Spark quotes its query for the columns first, then the database's message.
    re.compile(rf"\[JDBC_EXTERNAL_ENGINE_SYNTAX_ERROR[^\]]*\].*?WHERE 1=0\. (?P<said>{_DETAILS})", re.DOTALL),
    re.compile(rf"\b(?:[\w$]+\.)+(?:PSQL\w*|SQL\w*|BatchUpdate)Exception[:)] ?(?P<said>{_DETAILS})"),
)
_NO_DRIVER = re.compile(r"ClassNotFoundException\W+org\.(postgresql|mariadb\.jdbc)\.Driver")
_QUOTED = re.compile(
    r"""(?s:near '.*' at line \d)|permission denied for \w+ \S+|'[^'\n]*'|"[^"\n]*"|`[^`\n]*`"""
)
"""Quoted names, values and query parts, which are ignored: a table may be called ``timeouts``."""
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


def source_error(error: Exception, connection: JdbcConnection, label: str = "") -> SourceError | None:
    """Return the error for a failed read, or a refused value; None if something else failed.

    Args:
        error: Spark's error.
        connection: how to reach the database.
        label: the table or query, for errors.
    """
    text = str(error)
    if value := refused_value(text):
        return _bad_value(value, connection, label)
    if _NO_DRIVER.search(text):
        return SourceError(
            f"database {connection}: expected its driver in Spark, found none. Start the Spark Connect server with "
            f"--packages {connection.package}. `strandline dev` does so if the project has a database: restart it "
            "after you add the first one"
        )
    driver_text = driver_message(text)
    return None if driver_text is None else error_of(driver_text, connection)


def _bad_value(refused: RefusedValue, connection: JdbcConnection, label: str) -> BadPart:
    where = f" in the row with {shorten_to_line(refused.row)}" if refused.row else ""
    value, is_of_units = refused.value, refused.expected.startswith(EXPECTED_UNIT_VALUE)
    found_words = f"{value!r} ({len(value)} letters)" if is_of_units else shorten_to_line(value)
    why = f"column {refused.column}: expected {refused.expected}, found {found_words}{where}"
    why = connection.hide(why)
    dialect, is_array = DIALECTS[connection.system], "an array" in refused.expected
    replacements = dialect.array_replacements if is_array else dialect.replacements
    remedies = replacements(refused.column, connection.hide(refused.value))
    if is_of_units:
        name = DIALECTS[connection.system].name(refused.column)
        return BadPart(
            f"{label}: {why}. The database treats both as equal, the table does not. Nothing of the slice is "
            "loaded. Write the unit as the database has it; or, if it ends with blanks, read the table through a "
            f"`query` in which the column is CAST({name} AS text) AS {name}",
            part=label,
            why=why,
            code="bad_value",
        )
    return BadPart(
        f"{label}: {why}. Nothing of the slice is loaded. Correct it at the source, or read the table through a `query` in which the column is"
        f" {' or '.join(remedies)}",
        part=label,
        why=why,
        code="bad_value",
    )


def is_time_limit(error: SourceError) -> bool:
    """Return whether the server ended a statement because it took too long."""
    return _TIME_LIMIT.search(error.message) is not None


def driver_message(text: str) -> str | None:
    """Return the message of the database or driver inside Spark's error; None if there is none."""
    for pattern in _DRIVER_MESSAGES:
        if match := pattern.search(text):
            return match["said"].strip()
    return None


_LIBPQ_EXTRAS = re.compile(r"\n\s*Is the server running [^\n]*\?|\n\s*\^\s*(?=\n|$)")
"""The question that libpq adds, and a caret that points nowhere in a single line."""


def error_of(driver_text: str, connection: JdbcConnection) -> SourceError:
    """Return the error for a message of a database or its driver."""
    line = shorten_to_line(_LIBPQ_EXTRAS.sub("", connection.hide(driver_text))).rstrip(".") or "nothing"
    reason = _QUOTED.sub("''", driver_text.partition("\nLINE ")[0])  # behind it PostgreSQL quotes the query
    if _CREDENTIALS.search(reason):
        return SourceError(
            f"database {connection}: expected access, found: {line}. Correct user and password of its connection, where the project's settings take them from"
        )
    if _INTERRUPTED.search(reason):
        return SourceInterrupted(
            f"database {connection}: expected an answer, found: {line}. Check that it runs and can be reached from where Spark runs; the next run"
            " tries again"
        )
    return SourceError(
        f"database {connection}: expected rows, found: {line}. Correct the source's table or query, its "
        "connection's url, or the user's rights"
    )
