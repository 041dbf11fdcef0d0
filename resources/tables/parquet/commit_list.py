"""The list of a commit: what it adds and sets aside, under which tag, and with which state. Once it is put, it never changes.

Every so many lists one names all files of the table, so that a reader needs few of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from resources.tables.contract.commits import TableCommit, TaggedCommit, Version

LISTS_BETWEEN = 20
"""Of so many lists one names all files."""

FORMAT: Literal[1] = 1


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True)


class ListedFile(_Stored):
    """A data file.

    Attributes:
        path: its place, relative to the table.
        staged: where it lies before it is moved there, relative to the staged folder of its commit.
        rows: how many it has.
        partition: texts of its partition columns' values; None is NULL.
        statistics: the JSON text of Delta's log: bounds and NULLs by column.
    """

    path: str
    staged: str = ""
    size: int = 0
    rows: int = 0
    partition: Mapping[str, str | None] = {}
    statistics: str = ""


class After(_Stored):
    """The commit that the state before was true of."""

    version: Version | None
    id: str | None


class Everything(_Stored):
    """The table as a whole: its files, and the highest number of each app id."""

    files: tuple[ListedFile, ...]
    tags: Mapping[str, int]


class CommitList(_Stored):
    """A commit.

    Attributes:
        format: of this text.
        version: number of the list.
        table: a random id that the first list gives.
        owner: the intent or fence that it belongs to.
        app_id: of the tag.
        number: of the tag.
        gives_up: whether it is a fence.
        after: as :class:`resources.tables.contract.commits.Tag` has it.
        rewound: as there.
        state: sentinel JSON text of the watermark after it.
        time: when it was put, by its writer's clock; for people and for retention.
        follows: the version before it; None if it made the table.
        rows: that it wrote and did not only copy.
        written_bytes: of the files that it adds.
        removed: rows that it deleted; None if all of the table's.
        copied: rows of files that it sets aside which are among those that it adds.
        columns_json: the table's columns as Spark's JSON, if they are others than before.
        partition_by: columns of partitions, if ``columns_json`` is there.
        staged: the folder of its files before they are moved; empty if it moves none.
        added: files.
        set_aside: paths of files that are part of the table no more.
        everything: the table after it, in one of :data:`LISTS_BETWEEN` lists.
    """

    format: Literal[1] = FORMAT
    version: int
    table: str
    owner: str
    app_id: str
    number: int
    gives_up: bool = False
    after: After | None = None
    rewound: bool = False
    state: str
    time: str
    follows: int | None = None
    rows: int = 0
    written_bytes: int = 0
    removed: int | None = 0
    copied: int = 0
    columns_json: str | None = None
    partition_by: tuple[str, ...] = ()
    staged: str = ""
    added: tuple[ListedFile, ...] = ()
    set_aside: tuple[str, ...] = ()
    everything: Everything | None = None

    @classmethod
    def parse(cls, data: bytes) -> CommitList:
        """Read the text.

        Raises:
            ValueError: it is another one, or of a newer format.
        """
        return cls.model_validate_json(data)

    def encoded(self) -> bytes:
        """Return the text."""
        return self.model_dump_json(exclude_defaults=True).encode()

    @property
    def file(self) -> str | None:
        """Name of a file that it adds; None if it adds none."""
        return self.added[0].path.rpartition("/")[2] if self.added else None

    @property
    def recorded(self) -> TableCommit:
        """As the watermark log records it."""
        return TableCommit(self.version, self.owner, self.number, self.file)

    @property
    def tagged(self) -> TaggedCommit:
        """As a commit under a dataflow's tag."""
        return TaggedCommit(
            self.owner,
            self.version,
            self.rows,
            self.written_bytes,
            self.gives_up,
            self.removed,
            self.number,
            file=self.file,
            follows=self.follows,
        )


@dataclass(frozen=True)
class Snapshot:
    """A table after a commit.

    Attributes:
        newest: the commit.
        files: by path.
        tags: the highest number of each app id.
        columns_json: the columns, as Spark's JSON.
        partition_by: columns of partitions.
    """

    newest: CommitList
    files: Mapping[str, ListedFile]
    tags: Mapping[str, int]
    columns_json: str
    partition_by: tuple[str, ...]

    @classmethod
    def of(cls, commits: Iterable[CommitList]) -> Snapshot:
        """Put together what lists say, the first of which names all files and the columns."""
        made: Snapshot | None = None
        for commit in commits:
            made = after(made, commit)
        if made is None:
            raise ValueError("expected a list, found none")
        return made

    def whole(self) -> dict[str, Any]:
        """Return the fields of a list that names all files."""
        everything = Everything(files=tuple(self.files.values()), tags=dict(self.tags))
        return {
            "everything": everything,
            "columns_json": self.columns_json,
            "partition_by": self.partition_by,
        }


def after(snapshot: Snapshot | None, commit: CommitList) -> Snapshot:
    """Return the table after a commit.

    Args:
        snapshot: the table before; None if there was none, or if the list names all files.
        commit: the next one.
    """
    if commit.everything is not None:
        files = {file.path: file for file in commit.everything.files}
        tags = dict(commit.everything.tags)
    else:
        before: Mapping[str, ListedFile] = snapshot.files if snapshot else {}
        gone = set(commit.set_aside)
        files = {path: file for path, file in before.items() if path not in gone}
        files |= {file.path: file for file in commit.added}
        tags = dict(snapshot.tags if snapshot else {})
        tags[commit.app_id] = max(commit.number, tags.get(commit.app_id, 0))
    if commit.columns_json is not None:
        return Snapshot(commit, files, tags, commit.columns_json, commit.partition_by)
    if snapshot is None:
        raise ValueError(f"list {commit.version} names no columns, and no list before it is there")
    return Snapshot(commit, files, tags, snapshot.columns_json, snapshot.partition_by)
