"""What a database's refusal means, in its own words and without secrets."""

from __future__ import annotations

import re

from partitions.errors import SourceError, SourceUnreachable, in_one_line
from resources.jdbc import JdbcConnection

_SAID = (
    # Spark quotes the query that it asked for the columns, and then the database.
    re.compile(r"\[JDBC_EXTERNAL_ENGINE_SYNTAX_ERROR[^\]]*\].*?WHERE 1=0\. (?P<said>[^\n]*)", re.DOTALL),
    re.compile(r"\b(?:[\w$]+\.)+(?:PSQL\w*|SQL\w*|BatchUpdate)Exception[:)] ?(?P<said>[^\n]*)"),
)
_NO_DRIVER = re.compile(r"ClassNotFoundException\W+org\.(postgresql|mariadb\.jdbc)\.Driver")
_PASSING = re.compile(
    r"(?i)connection to .* refused|connection attempt failed|connection (was )?(closed|reset|refused)|I/O error|terminating connection"
    r"|starting up|shutting down|in recovery mode|too many (clients|connections)|connection slots|timed? ?out|unknown ?host|socket fail"
    r"|communications link|failed to resolve|name or service not known|unexpected end of stream|could not serialize|deadlock|conflict with recovery|end-of-stream"
)
_CREDENTIALS = re.compile(
    r"(?i)authentication (failed|type)|no password|password-based|access denied for user|role .* (does not exist|is not permitted)|pg_hba"
)


def source_error(error: Exception, connection: JdbcConnection) -> SourceError | None:
    """The error of a read that the database refused or did not answer; None if something else failed."""
    text = str(error)
    if _NO_DRIVER.search(text):
        return SourceError(
            f"database {connection}: expected its driver in Spark, found none. A Spark Connect server is started with"
            f" --packages {connection.package}; one of `strandline dev` has it after a restart"
        )
    said = first_line(text)
    return None if said is None else error_of(said, connection)


def first_line(text: str) -> str | None:
    """The first line that the database or its driver said, as it stands in Spark's error; None if neither said anything."""
    for pattern in _SAID:
        if match := pattern.search(text):
            return match["said"].strip()
    return None


def error_of(said: str, connection: JdbcConnection) -> SourceError:
    """The error for what a database or its driver said."""
    line = in_one_line(connection.hide(said)).rstrip(".") or "nothing"
    if _PASSING.search(line):
        return SourceUnreachable(
            f"database {connection}: expected an answer, found: {line}. Check that it runs and can be reached from where Spark runs;"
            " nothing was saved, and the next run reads the same again"
        )
    if _CREDENTIALS.search(line):
        return SourceError(
            f"database {connection}: expected to be let in, found: {line}. Correct user and password of its connection in platform.yaml"
        )
    return SourceError(
        f"database {connection}: expected rows, found: {line}. Correct the source's table or query, its connection's url, or what the user may read"
    )
