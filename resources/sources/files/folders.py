"""Columns whose values stand in the names of folders: a text that its column's type does not hold exactly, or two values of one column, make the files below them bad."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from partitions.errors import BadFile
from partitions.path.hive import NULL_FOLDER, folder_value
from partitions.path.source import SourceFile
from partitions.records.forms import Reading, Type
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
    reasons: dict[str, str | None] = {}
    for file in files:
        folder = file.path.rpartition("/")[0]
        if folder not in reasons:
            reasons[folder] = _why_wrong(f"{folder}/", types, reading)
        why = reasons[folder]
        if why is not None:
            bad_files[file.path] = bad_document(file.path, why)
    return bad_files


def _why_wrong(folder: str, types: Mapping[str, tuple[str, Type]], reading: Reading) -> str | None:
    """Why a folder does not tell the values of its columns; None if it does.

    Args:
        folder: its path, with the slash behind it.
        types: the name and the type of each column, by its name without upper case.
        reading: of the texts.
    """
    named: dict[str, str] = {}
    for part in folder.split("/"):
        name, equals, _ = part.partition("=")
        if name and equals and named.setdefault(name.lower(), part) != part:
            return f"folders {named[name.lower()]} and {part}: expected one value of the column {name}, found two"
    for name in spellings([folder]).values():
        column, data_type = types.get(name.casefold(), (name, "string"))
        value = folder_value(folder, name)
        if not isinstance(data_type, str):
            return (
                f"folder {name}={NULL_FOLDER if value is None else value}: expected a column {column} that a text tells, found {shown(data_type)}: if they are two things, give the folder,"
                " or the placeholder in source.path, another name"
            )
        fault = None if value is None else fault_of_text(value, data_type, reading)
        if fault is not None:
            return (
                f"folder {name}={value}: expected {shown(data_type)} for the column {column}, found {fault}"
            )
    return None
