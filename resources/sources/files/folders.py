"""Columns whose values stand in the names of folders: a text that its column's type does not hold exactly makes the files below it bad."""

from __future__ import annotations

from collections.abc import Sequence

from partitions.errors import BadFile
from partitions.path.hive import folder_value
from partitions.path.source import SourceFile
from partitions.records.forms import Reading
from partitions.records.judge import fault_of_text, shown
from resources.sources.files.failures import bad_document
from resources.sources.files.paths import spellings
from resources.sources.files.pinned import PinnedSchema


def in_wrong_folders(files: Sequence[SourceFile], pinned: PinnedSchema) -> dict[str, BadFile]:
    """Return why files cannot be loaded for the sake of their folders, by path; each folder is looked at once."""
    bad_files: dict[str, BadFile] = {}
    reading = Reading()
    types = {
        field.name.casefold(): (field.name, field.dataType.jsonValue()) for field in pinned.struct.fields
    }
    if all(data_type == "string" for _, data_type in types.values()):
        return bad_files
    faults: dict[tuple[str, str], str | None] = {}
    for file in files:
        for name in spellings([file.path]).values():
            column, data_type = types.get(name.casefold(), (name, "string"))
            text = folder_value(file.path, name)
            if text is None or data_type == "string":
                continue
            if (column, text) not in faults:
                faults[column, text] = fault_of_text(text, data_type, reading)
            fault = faults[column, text]
            if fault is not None:
                why = f"folder {name}={text}: expected {shown(data_type)} for the column {column}, found {fault}"
                bad_files.setdefault(file.path, bad_document(file.path, why))
    return bad_files
