"""A user's own asset whose rows the table IO manager keeps: its table, format and columns.

See docs/reference/dagster.md, Your own assets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID, uuid5

from dagster import AssetKey, MetadataValue, PartitionsDefinition
from pydantic import TypeAdapter, ValidationError

from partitions.ddl import DdlError, parse_ddl
from partitions.errors import ConfigurationError
from partitions.lineage import Lineage
from partitions.sources.table import TableName
from partitions.supported import FORMATS
from resources.dagster.own_partitions import OwnPartitions

TABLE = "strandline/table"
"""The metadata of an asset with the name of its table, ``<layer>/<name>``."""

FORMAT = "strandline/format"
"""The metadata of an asset with the format of its table."""

SCHEMA = "strandline/schema"
"""The metadata of an asset with the types of some or all columns, as Spark's DDL: ``amount decimal(10,2)``."""

WINDOW_COLUMN = "strandline/window_column"
"""The metadata of an asset with the column that tells the window of a row."""

UNIT_COLUMNS = "strandline/unit_columns"
"""The metadata of an asset with the columns that tell the unit of a row: a name, or a name for each dimension."""

_ASSETS = UUID("7c1d3b52-3f5e-4b0e-9a56-0f4c9a1c6f0b")
"""The namespace of app ids. Another one would make every table another writer's."""

_TABLE_NAME = TypeAdapter[str](TableName)


@dataclass(frozen=True)
class OwnAsset:
    """An asset that a user's function makes.

    Attributes:
        key: its key.
        table: the name of its table, ``<layer>/<name>``.
        table_format: the format that its metadata names; None if it names none.
        schema: Spark's DDL of the columns that its metadata names; None if it names none.
        partitions: its partitions; None if it has none.
    """

    key: AssetKey
    table: str
    table_format: str | None
    schema: str | None
    partitions: OwnPartitions | None

    @classmethod
    def of(
        cls,
        key: AssetKey,
        metadata: Mapping[str, Any],
        definition: PartitionsDefinition[str] | None,
        key_prefix: Sequence[str],
    ) -> Self:
        """Return the asset that a key and its metadata define.

        Args:
            key: the key of the asset.
            metadata: the metadata of its definition.
            definition: its partitions; None if it has none.
            key_prefix: the first parts of the keys of the project's assets.

        Raises:
            ConfigurationError: a value of the metadata is refused.
        """
        values = {
            name: _plain(metadata.get(name)) for name in (TABLE, FORMAT, SCHEMA, WINDOW_COLUMN, UNIT_COLUMNS)
        }
        what = f"asset {key.to_user_string()}"
        partitions = None
        if definition is not None:
            partitions = OwnPartitions.of(definition, values[WINDOW_COLUMN], values[UNIT_COLUMNS], what)
        table = _table(key, values[TABLE], key_prefix, what)
        return cls(key, table, _format(values[FORMAT], what), _schema(values[SCHEMA], what), partitions)

    @property
    def what(self) -> str:
        """The asset, for messages."""
        return f"asset {self.key.to_user_string()}"

    @property
    def app_id(self) -> str:
        """The id under which the commits of its table are numbered: letters and digits."""
        return uuid5(_ASSETS, self.key.to_user_string()).hex

    def check_maker(self, lineage: Lineage) -> None:
        """Raise if a dataflow of the project makes the table.

        Raises:
            ConfigurationError: names the dataflows.
        """
        if makers := [maker.name for maker in lineage.makers(self.table)]:
            raise ConfigurationError(
                f"{self.what}: expected a table that this asset alone writes, found {self.table}, which "
                f"{', '.join(makers)} loads. Name another table in the asset's metadata: "
                f'"{TABLE}": "LAYER/NAME"'
            )


def _table(key: AssetKey, name: Any, key_prefix: Sequence[str], what: str) -> str:
    path, prefix = list(key.path), list(key_prefix)
    if prefix and path[: len(prefix)] == prefix:
        path = path[len(prefix) :]
    table = "/".join(path) if name is None else name
    try:
        return _TABLE_NAME.validate_python(table)
    except ValidationError:
        where = "its key" if name is None else f"its metadata {TABLE}"
        raise ConfigurationError(
            f"{what}: expected a table LAYER/NAME of letters, digits and underscores in {where}, found "
            f'{table}. Name the table in the asset\'s metadata: "{TABLE}": "LAYER/NAME"'
        ) from None


def _format(name: Any, what: str) -> str | None:
    if name is None or (isinstance(name, str) and name in FORMATS):
        return name
    raise ConfigurationError(
        f"{what}: expected {', '.join(FORMATS)} in its metadata {FORMAT}, found {name!r}"
    )


def _schema(text: Any, what: str) -> str | None:
    if text is None:
        return None
    try:
        parse_ddl(str(text))
    except DdlError as error:
        raise ConfigurationError(
            f'{what}: expected columns with types in its metadata {SCHEMA}, such as "amount decimal(10,2), note string",'
            f" found {text!r}: {error}. Correct it"
        ) from None
    return str(text)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, MetadataValue) else value
