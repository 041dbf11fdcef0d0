"""Describe a commit for people: who made it, by which operation, and what it does to how many rows."""

from __future__ import annotations

from collections.abc import Mapping

CHANGES_ROWS = "removes or changes rows"
ADDS_ROWS, CHANGES_NOTHING = "adds rows", "changes no row"


def describe_commit(
    version: str,
    operation: str,
    writer: str,
    counts: Mapping[str, int | None],
    otherwise: str = CHANGES_ROWS,
) -> str:
    """Return a line such as ``version 57 (MERGE by Spark) updates 12 rows and deletes 3``.

    Args:
        version: name of the version, such as ``version 57``.
        operation: name of the operation as the writer calls it; may be empty.
        writer: name of the user or engine; may be empty.
        counts: number of rows by verb (``adds``, ``updates``, ``deletes``); None if unpositive.
        otherwise: what the version does, if no count is above 0.
    """
    origin = " by ".join(part for part in (operation, writer) if part)
    positive = [(verb, count) for verb, count in counts.items() if count]
    texts = [
        f"{verb} {count:,}{'' if index else ' row' if count == 1 else ' rows'}"
        for index, (verb, count) in enumerate(positive)
    ]
    doing = " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:]))) or otherwise
    return f"{version}{f' ({origin})' if origin else ''} {doing}"
