"""Read chosen files of a Delta version through a log of their own, which names no other file.

Delta reads all files of a version, even if a condition names a few: it does not skip files by their names.
So the files are listed in a new log in a scratch folder, by absolute paths, as a shallow clone lists them.
Delta then applies deletion vectors, column mapping, partition values and widened types as in the table. See
docs/explanation/adr/0046.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import UUID, uuid4

from resources.connections.places import Place
from resources.tables.contract.scratch import ScratchFolder, put_scratch_file
from resources.tables.delta.log_state import Action, LogState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KEPT_PROPERTIES = ("delta.columnMapping.mode", "delta.columnMapping.maxColumnId")
"""Properties that a reader needs; others would make demands on the log."""
_LOG_FEATURES = frozenset({"catalogManaged", "catalogOwned", "catalogOwned-preview", "v2Checkpoint"})
"""Features of a reader that say where and how the log itself is kept."""
_FILE_FIELDS = ("partitionValues", "size", "modificationTime")
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_UUID_LETTERS = 20
"""Letters of a deletion vector's id in base 85."""


def read_staged(
    place: Place,
    spark: SparkSession,
    state: LogState,
    files: Sequence[Action],
    file_column: str,
    scratch: ScratchFolder,
) -> DataFrame:
    """Return the rows of files with the name of each row's file.

    Args:
        place: place of the table.
        spark: session.
        state: gives the columns of the result.
        files: actions that add or remove the files.
        file_column: name of the column for the file name.
        scratch: returns the folder for the log.
    """
    base = _uri(place)
    actions = [
        {"protocol": _reader_protocol(state.protocol)},
        {"metaData": _reader_metadata(state.metadata)},
        *({"add": _absolute(base, file)} for file in files),
    ]
    folder = scratch().child(f"delta-{uuid4().hex}")
    text = "\n".join(json.dumps(action) for action in actions)
    put_scratch_file(folder, f"_delta_log/{0:020d}.json", text.encode())
    rows = spark.read.format("delta").load(folder.spark_url)
    # Not by the name `_metadata`, which a column of the files may have.
    return rows.withColumn(file_column, rows.metadataColumn("_metadata").getField("file_name"))


def vector_path(descriptor: Mapping[str, Any], base: str) -> str:
    """Return the address of the file that holds a deletion vector beside the table's files.

    Args:
        descriptor: descriptor of storage type ``u``.
        base: address of the table.
    """
    text = str(descriptor["pathOrInlineDv"])
    prefix, digits = text[:-_UUID_LETTERS], text[-_UUID_LETTERS:]
    data = b"".join(_decode_group(digits[start : start + 5]) for start in range(0, _UUID_LETTERS, 5))
    folder = f"{base}/{quote(prefix)}" if prefix else base
    return f"{folder}/deletion_vector_{UUID(bytes=data)}.bin"


def _decode_group(letters: str) -> bytes:
    number = 0
    for letter in letters:
        number = number * len(_Z85) + _Z85.index(letter)
    return number.to_bytes(4, "big")


def _uri(place: Place) -> str:
    if place.local is not None:
        return f"file://{quote(place.url)}"
    scheme, _, path = place.spark_url.partition("://")
    return f"{scheme}://{quote(path)}"


def _absolute(base: str, file: Action) -> dict[str, Any]:
    """Return the action that adds a file by its absolute path."""
    path = str(file["path"])
    is_absolute = path.startswith(("/", "file:")) or "://" in path
    add = {
        "path": path if is_absolute else f"{base}/{path}",
        "partitionValues": {},
        "size": 0,
        "modificationTime": 0,
        **{name: file[name] for name in _FILE_FIELDS if file.get(name) is not None},
        "dataChange": True,
    }
    vector = file.get("deletionVector")
    if vector:
        address = {"storageType": "p", "pathOrInlineDv": vector_path(vector, base)}
        add["deletionVector"] = {**vector, **address} if vector["storageType"] == "u" else vector
    return add


def _reader_metadata(metadata: Action) -> dict[str, Any]:
    configuration = metadata.get("configuration") or {}
    return {
        **metadata,
        "id": uuid4().hex,
        "configuration": {name: configuration[name] for name in _KEPT_PROPERTIES if name in configuration},
    }


def _reader_protocol(protocol: Action) -> dict[str, Any]:
    """Return the protocol that readers of the table need."""
    version = int(protocol["minReaderVersion"])
    if version < 3:
        return {"minReaderVersion": version, "minWriterVersion": 5 if version == 2 else 2}
    features = sorted(set(protocol.get("readerFeatures") or ()) - _LOG_FEATURES)
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": features,
        "writerFeatures": features,
    }
