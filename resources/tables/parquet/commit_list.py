"""The list of a commit: files it adds and removes, its tag and its state. A list never changes.

One of every :data:`LISTS_PER_FULL_LIST` lists names all files of the table, so that a reader needs few of
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from resources.tables.contract.commits import TableCommit, TaggedCommit, Version

LISTS_PER_FULL_LIST = 20
"""Number of lists of which one names all files."""

FORMAT: Literal[1] = 1


class _StoredModel(BaseModel):
    model_config = ConfigDict(frozen=True)


class ListedFile(_StoredModel):
    """A data file.

    Attributes:
        path: path relative to the table.
        staged: path before the move, relative to the staging folder of its commit.
        size: size in bytes.
        rows: number of rows.
        partition: texts of its partition columns' values; None is NULL.
        statistics: JSON text for Delta's log: bounds and NULLs by column.
    """

    path: str
    staged: str = ""
    size: int = 0
    rows: int = 0
    partition: Mapping[str, str | None] = {}
    statistics: str = ""


class PrecedingCommit(_StoredModel):
    """The commit that the previous state describes."""

    version: Version | None
    id: str | None


class FullTable(_StoredModel):
    """The whole table: its files, and the highest number of each app id."""

    files: tuple[ListedFile, ...]
    tags: Mapping[str, int]


class CommitList(_StoredModel):
    """A commit.

    Attributes:
        format: version of this text's format.
        version: number of the list.
        table: random id that the first list gives the table.
        owner: id of the intent or fence that the commit belongs to.
        app_id: app id of the tag.
        number: number of the tag.
        gives_up: whether the commit is a fence.
        after: as in :class:`resources.tables.contract.commits.Tag`.
        rewound: likewise.
        deletes: likewise.
        state: sentinel JSON text of the watermark after the commit.
        time: time of the commit by its writer's clock; for people and for retention.
        follows: version before it; None if it created the table.
        rows: rows that the commit wrote, without copied ones.
        written_bytes: size of the added files.
        removed: rows that the commit deleted; None: all rows of the table.
        copied: rows of removed files that the added files contain.
        columns_json: columns of the table as Spark's JSON, if they changed.
        partition_by: partition columns, if ``columns_json`` is set.
        staged: staging folder of its files; empty if it moves none.
        added: added files.
        set_aside: paths of files that are no longer part of the table.
        writer: state that the commit belongs to; None for a commit of an older version.
        everything: table after the commit, in one of every :data:`LISTS_PER_FULL_LIST` lists.
    """

    format: Literal[1] = FORMAT
    version: int
    table: str
    owner: str
    app_id: str
    number: int
    gives_up: bool = False
    after: PrecedingCommit | None = None
    rewound: bool = False
    deletes: bool = False
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
    writer: Mapping[str, str] | None = None
    everything: FullTable | None = None

    @classmethod
    def parse(cls, data: bytes) -> CommitList:
        """Parse the text of a list.

        Raises:
            ValueError: the text is no list, or of a newer format.
        """
        return cls.model_validate_json(data)

    def encode(self) -> bytes:
        """Return the text of the list."""
        return self.model_dump_json(exclude_defaults=True).encode()

    @property
    def file(self) -> str | None:
        """Name of an added file; None if there are none."""
        return self.added[0].path.rpartition("/")[2] if self.added else None

    @property
    def as_table_commit(self) -> TableCommit:
        """Commit as the watermark log records it."""
        return TableCommit(self.version, self.owner, self.number, self.file)

    @property
    def as_tagged(self) -> TaggedCommit:
        """Commit as one under its tag."""
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
class TableSnapshot:
    """The table after a commit.

    Attributes:
        newest: list of that commit.
        files: files by path.
        tags: highest number of each app id.
        columns_json: columns as Spark's JSON.
        partition_by: partition columns.
    """

    newest: CommitList
    files: Mapping[str, ListedFile]
    tags: Mapping[str, int]
    columns_json: str
    partition_by: tuple[str, ...]

    @classmethod
    def of(cls, commits: Iterable[CommitList]) -> TableSnapshot:
        """Return the table after several lists in order, the first of which names all files and columns.

        Raises:
            ValueError: there is no list, or the first names no columns.
        """
        snapshot: TableSnapshot | None = None
        for commit in commits:
            snapshot = apply_commit(snapshot, commit)
        if snapshot is None:
            raise ValueError("expected a list, found none")
        return snapshot

    def full_list_fields(self) -> dict[str, Any]:
        """Return the fields of a list that names all files."""
        everything = FullTable(files=tuple(self.files.values()), tags=dict(self.tags))
        return {
            "everything": everything,
            "columns_json": self.columns_json,
            "partition_by": self.partition_by,
        }


def apply_commit(snapshot: TableSnapshot | None, commit: CommitList) -> TableSnapshot:
    """Return the table after a commit.

    Args:
        snapshot: table before; None if there was none, or if the list names all files.
        commit: list of the commit.
    """
    if commit.everything is not None:
        files = {file.path: file for file in commit.everything.files}
        tags = dict(commit.everything.tags)
    else:
        files_before: Mapping[str, ListedFile] = snapshot.files if snapshot else {}
        removed_paths = set(commit.set_aside)
        files = {path: file for path, file in files_before.items() if path not in removed_paths}
        files |= {file.path: file for file in commit.added}
        tags = dict(snapshot.tags if snapshot else {})
        tags[commit.app_id] = max(commit.number, tags.get(commit.app_id, 0))
    if commit.columns_json is not None:
        return TableSnapshot(commit, files, tags, commit.columns_json, commit.partition_by)
    if snapshot is None:
        raise ValueError(f"list {commit.version} names no columns, and there is no list before it")
    return TableSnapshot(commit, files, tags, snapshot.columns_json, snapshot.partition_by)
