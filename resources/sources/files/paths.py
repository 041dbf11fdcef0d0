"""Derive folder values from a file's path, and translate it to the path that Spark uses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from partitions.path.hive import NULL_FOLDER, partition_columns
from resources.connections.places import Place

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

SOURCE_FILE = "_source_file"
"""The column with the path of a row's file below the root."""

_GLOB = frozenset("{}[]*?\\")
_PLAIN = re.compile(r"[A-Za-z0-9_.=/:+@,~-]*")
"""Characters that are never escaped in URIs."""


def folder_names(paths: Iterable[str]) -> dict[str, str]:
    """Return the first spelling of each folder column above these files, by lower-case name.

    Spark compares names in lower case.
    """
    names: dict[str, str] = {}
    for name in partition_columns(list(paths)):
        names.setdefault(name.lower(), name)
    return names


def is_uri_safe(path: str) -> bool:
    """Return whether Spark reports a path without percent-encoding."""
    return _PLAIN.fullmatch(path) is not None


def has_only_hive_folders(path: str) -> bool:
    """Return whether Spark reads the folders of a path as Strandline does.

    True if the path has folders, each is ``name=value``, and no name occurs twice.
    """
    folders = [part.partition("=") for part in path.split("/")[:-1]]
    names = {name.lower() for name, _, value in folders if name and value}
    return 0 < len(names) == len(folders)


def is_glob(text: str) -> bool:
    """Return whether Spark takes a path for a glob."""
    return not _GLOB.isdisjoint(text)


def escape_globs(root: str) -> str:
    """Return a root with its glob characters escaped."""
    return "".join(f"\\{character}" if character in _GLOB else character for character in root)


def relative_path(place: Place, *, plain: bool) -> Column:
    """Return the column with the file's path below the root.

    Spark reports a URI: ``file:/x`` or ``file:///x``, percent-encoded unless it is plain.
    """
    from pyspark.sql import functions as F

    root = place.spark_url.rstrip("/") + "/"
    uri = F.col("_metadata.file_path")
    if not (plain and is_uri_safe(root)):
        decoded = F.url_decode(F.replace(uri, F.lit("+"), F.lit("%2B")))
        uri = F.when(uri.contains("%"), decoded).otherwise(uri)
    return F.substr(uri, F.locate(root, uri) + F.lit(len(root)))


def folder_column(path: Column, name: str) -> Column:
    """Return the text of the first folder ``name=value`` in a path, unescaped as Hive's writers escape it."""
    from pyspark.sql import functions as F

    mark, below = f"/{name}=", F.concat(F.lit("/"), path)
    text = F.substring_index(F.substr(below, F.locate(mark, below) + F.lit(len(mark))), "/", 1)
    unescaped = F.coalesce(F.try_url_decode(F.replace(text, F.lit("+"), F.lit("%2B"))), text)
    return F.when(text != NULL_FOLDER, F.when(text.contains("%"), unescaped).otherwise(text))


def is_value_of_folder(value: Column, folder: Column, data_type: DataType) -> Column:
    """Return whether a value equals the folder's text, cast to the column's type; False for nested types."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

    if isinstance(data_type, ArrayType | MapType | StructType | VariantType):
        return F.lit(False)
    return F.coalesce(value == folder.try_cast(data_type), F.lit(False))


def text_column(value: str | None) -> Column:
    """Return a literal text column."""
    from pyspark.sql import functions as F

    return F.lit(value).cast("string")
