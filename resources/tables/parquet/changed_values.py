"""Describe the files that commits of a Parquet table add and remove, as Arrow reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from resources.tables.contract.changed_file import ChangedFile
from resources.tables.data_files.time_bounds import time_bounds, time_of
from resources.tables.parquet.columns import column_types
from resources.tables.parquet.commit_list import TableSnapshot
from resources.tables.parquet.contents import ParquetContents


def described_files(
    contents: ParquetContents, snapshot: TableSnapshot, version: int, sign: int, paths: Collection[str]
) -> Iterator[ChangedFile]:
    """Yield files of a version of which a commit adds or removes the rows.

    Args:
        contents: contents of the table.
        snapshot: a version that lists the files.
        version: number of the commit.
        sign: 1 if their rows come, -1 if they go.
        paths: paths of the files, as the version has them.
    """
    types = column_types(snapshot.columns_json)
    own_names = {name.casefold() for name in types}
    for path, (folder, path_in_folder) in contents.locate_files(snapshot).items():
        if path not in paths:
            continue
        listed = snapshot.files[path]
        values = {
            name: (time_of(text) or text) if text and types.get(name) == "date" else text
            for name, text in listed.partition.items()
        }
        yield ChangedFile(
            version,
            sign,
            contents.placement.place_of(folder),
            path_in_folder,
            listed.size,
            lambda schema: [name if name.casefold() in own_names else None for name in schema.names],
            values,
            time_bounds(listed.statistics, types, {}),
        )
