"""A data file whose rows a commit added or removed, as Arrow reads it without Spark."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from resources.connections.places import Place

if TYPE_CHECKING:
    import pyarrow as pa

CHANGE_TYPE = "_change_type"
"""Column of a file of a change data feed that says what became of a row."""
CAME = ("insert", "update_postimage")
"""Its values of rows that came; the others went."""


@dataclass(frozen=True)
class ChangedFile:
    """A file whose rows came or went with a commit.

    Attributes:
        version: the commit's number, as :class:`LoggedCommit` has it.
        sign: 1 if its rows came, -1 if they went, 0 for a file of a change data feed, whose rows say it.
        place: place that the path is relative to.
        path: path of the file.
        size: size of the file in bytes.
        names: returns the table's names of the file's columns, in their order; None for one that is no
            difference, such as a column that writers keep for their own use or that the table has dropped.
        constants: values of columns that the file does not hold, by the table's name.
        bounds: lowest and highest value of columns, by the table's name, as far as the log has them.
        deleted: returns the positions of rows that the table no longer has; None if it has all.
        is_parquet: whether it is a Parquet file; nothing tells the rows of others.
        is_exact: whether the positions are all that is deleted; else some other rows may be deleted, too.
    """

    version: int
    sign: int
    place: Place
    path: str
    size: int
    names: Callable[[pa.Schema], Sequence[str | None]]
    constants: Mapping[str, Any] = field(default_factory=dict)
    bounds: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    deleted: Callable[[], Collection[int]] | None = None
    is_exact: bool = True
    is_parquet: bool = True
