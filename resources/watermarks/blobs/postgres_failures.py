"""Classify a PostgreSQL server's failures: which may pass by themselves, and what to do about others."""

from __future__ import annotations

import re
from dataclasses import dataclass

import psycopg

from partitions.errors import ProviderError, ProviderRefused, shorten_to_line
from resources.connections.postgres import Database

# Classes of SQLSTATE: connection, transaction rolled back, resources, operator intervention, system.
_PASSING = ("08", "40", "53", "55", "57", "58")


class StandbyError(psycopg.Error):
    """The answer of a standby server."""


@dataclass(frozen=True)
class _PermanentFailure:
    """A failure that lasts until an operator changes something.

    Attributes:
        states: prefixes of its SQLSTATE.
        text: pattern of libpq's message if there is no SQLSTATE, as for any failure to connect.
        advice: what to do; ``{schema}`` is the project's.
    """

    states: tuple[str, ...]
    text: str
    advice: str


_REFUSALS = (
    _PermanentFailure(
        ("28",),
        r'authentication failed|no password supplied|role ".*" (does not exist|is not permitted)|no pg_hba\.conf entry',
        "correct the user and password, in the variable that `state` refers to or in PGUSER and PGPASSWORD",
    ),
    _PermanentFailure(
        ("3D",), r'database ".*" does not exist', "create the database, or correct its name in `state`"
    ),
    _PermanentFailure(
        ("42501",),
        r"permission denied",
        "let an administrator run CREATE SCHEMA {schema} AUTHORIZATION <the role>, or grant the role USAGE and CREATE on"
        " the schema and SELECT, INSERT, UPDATE, DELETE on its tables",
    ),
    _PermanentFailure(
        ("25006",),
        r"is a standby",
        "name the primary, which takes writes, in `state`; or all servers, as postgresql://one,two/database",
    ),
    _PermanentFailure(
        (), r"does not support SSL|certificate|sslmode", "correct the address and its parameters in `state`"
    ),
)
_LATER = "check that the server runs and can be reached from here. Saved state is not lost"
_SERVER_MESSAGE = "correct what the server's message above says, and try again"


def is_transient(error: Exception) -> bool:
    """Return whether the same call may succeed soon.

    That is so if the server restarts, is full, or dropped the connection.
    """
    if not isinstance(error, psycopg.Error) or _permanent_failure(error):
        return False
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return error.sqlstate.startswith(_PASSING)


def provider_error(database: Database, operation: str, error: psycopg.Error) -> ProviderError:
    """Return the error for a call that failed after its retries, with what to do."""
    refusal, passing = _permanent_failure(error), is_transient(error)
    kind = ProviderError if passing else ProviderRefused
    advice = (
        refusal.advice.format(schema=database.schema) if refusal else _LATER if passing else _SERVER_MESSAGE
    )
    error_text = shorten_to_line(database.hide(str(error))).rstrip(".") or type(error).__name__
    return kind(f"watermark store {database}: cannot {operation}: {error_text}. What to do: {advice}")


def _permanent_failure(error: psycopg.Error) -> _PermanentFailure | None:
    for refusal in _REFUSALS:
        if (
            error.sqlstate.startswith(refusal.states)
            if error.sqlstate
            else re.search(refusal.text, str(error))
        ):
            return refusal
    return None
