"""Find files whose folders give no exact value of a column, or two values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from partitions.errors import BadFile
from partitions.path.hive import NULL_FOLDER, folder_value
from partitions.path.source import SourceFile
from partitions.records.forms import TextOptions, Type
from partitions.records.judge import fault_of_text, sql_type_name
from resources.sources.files.failures import bad_document_error
from resources.sources.files.paths import folder_names
from resources.sources.files.pinned import PinnedSchema


def find_wrong_folders(files: Sequence[SourceFile], pinned: PinnedSchema) -> dict[str, BadFile]:
    """Return the files whose folders do not fit the pinned columns, by path; each folder is judged once."""
    bad_files: dict[str, BadFile] = {}
    reading = TextOptions()
    types = {
        field.name.casefold(): (field.name, field.dataType.jsonValue()) for field in pinned.struct.fields
    }
    reasons: dict[str, str | None] = {}
    for file in files:
        folder = file.path.rpartition("/")[0]
        if folder not in reasons:
            reasons[folder] = _find_folder_fault(f"{folder}/", types, reading)
        why = reasons[folder]
        if why is not None:
            bad_files[file.path] = bad_document_error(file.path, why)
    return bad_files


def _find_folder_fault(
    folder: str, types: Mapping[str, tuple[str, Type]], reading: TextOptions
) -> str | None:
    """Return why a folder gives no value of its columns; None if it does.

    Args:
        folder: the folder's path, with a trailing slash.
        types: the name and type of each column, by case-folded name.
        reading: how texts are read.
    """
    parts_by_name: dict[str, str] = {}
    for part in folder.split("/"):
        name, equals, _ = part.partition("=")
        if name and equals and parts_by_name.setdefault(name.lower(), part) != part:
            return f"folders {parts_by_name[name.lower()]} and {part}: expected one value of the column {name}, found two"
    for name in folder_names([folder]).values():
        column, data_type = types.get(name.casefold(), (name, "string"))
        value = folder_value(folder, name)
        if not isinstance(data_type, str):
            return (
                f"folder {name}={NULL_FOLDER if value is None else value}: expected a simple type for the column "
                f"{column}, found {sql_type_name(data_type)}: if the column and the folder mean two things, rename the "
                "folder, or the placeholder in source.path"
            )
        fault = None if value is None else fault_of_text(value, data_type, reading)
        if fault is not None:
            return f"folder {name}={value}: expected {sql_type_name(data_type)} for the column {column}, found {fault}"
    return None
