"""Where the newest metadata of an Iceberg table is, and what Spark calls the table (docs/reference/iceberg.md, Catalogs)."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4
from weakref import WeakKeyDictionary

from partitions.errors import TargetError, in_one_line
from resources.connections.places import Place
from resources.spark.settings import set_all
from resources.sql import quoted
from resources.tables.iceberg.metadata import Metadata, dropped_versions, with_snapshot
from resources.tables.iceberg.refs import RefChange, put_refs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
LOCAL_FILES = {
    # Iceberg asks a file system for its scheme, and the one that all else uses here has none. Iceberg's own names have no colons.
    "hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    "hadoop.fs.file.impl.disable.cache": "true",
}
_told: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()
"""The catalogs that each session was told of. Each question to a Connect server takes milliseconds, and a load asks for a table's name some five times."""

_COMPRESSION = "write.metadata.compression-codec"
_METADATA = re.compile(r"v(\d+)(?:\.gz)?\.metadata\.json(?:\.gz)?")


class Catalog(Protocol):
    """The catalog of one table."""

    def newest(self) -> Metadata | None:
        """Return the newest metadata; None if there is no table.

        Raises:
            TargetError: it cannot be read.
        """
        ...

    def change_refs(self, change: RefChange) -> bool:
        """Change branches and tags; return whether the table has them like that.

        It has not if it lacks a snapshot, or if readers see another one than they must. Another writer's commit may undo it.

        Raises:
            WriteConflict: other writers were faster in every attempt.
            TargetError: it cannot be changed.
        """
        ...

    def add_snapshot(self, before: Metadata, snapshot: Mapping[str, Any]) -> bool:
        """Add a snapshot, which readers see, to the table as it was; return whether it was still like that.

        Args:
            before: the newest metadata.
            snapshot: as the JSON of the metadata has it, on the one that readers see.

        Raises:
            TargetError: it cannot be added. It may be there nevertheless: an answer may be lost.
        """
        ...

    def name(self, session: SparkSession) -> str:
        """Return the table's name in SQL, after the session was told of the catalog."""
        ...

    def namespace(self, session: SparkSession) -> str:
        """Return the name in SQL of what the table lies in, as :meth:`name`."""
        ...

    def procedure(self, name: str) -> str:
        """Return the name in SQL of a procedure of the catalog."""
        ...

    @property
    def short_name(self) -> str:
        """The table's name within the catalog, as procedures take it."""
        ...

    @property
    def new_table(self) -> Mapping[str, str]:
        """Properties that a new table has because of its catalog."""
        ...


def key_below(place: Place, location: str) -> str | None:
    """Return where a file of a table lies below the table's place, however other clients of the catalog spell its address; None if it lies elsewhere."""
    plain = without_scheme(location)
    bases = (f"{base}/" for base in (place.spark_url, place.url))
    return next((plain.removeprefix(base) for base in bases if plain.startswith(base)), None)


def without_scheme(location: str) -> str:
    """Return an address as Strandline spells it, which puts nothing before a local path."""
    return location.removeprefix("file://").removeprefix("file:")


class NamesInSql:
    """What Spark calls a table of a catalog, and all that it needs to know of the catalog."""

    _catalog: str
    _namespace: str
    _table: str

    def name(self, session: SparkSession) -> str:
        """Return the table's name, after the session was told of the catalog."""
        return f"{self.namespace(session)}.{quoted(self._table)}"

    def namespace(self, session: SparkSession) -> str:
        """Return the name of what the table lies in, after the session was told of the catalog."""
        if not self._is_known(session):
            key = f"spark.sql.catalog.{self._catalog}"
            settings = {f"{key}.{name}": value for name, value in self._settings.items()}
            set_all(session, {**settings, key: SPARK_CATALOG})
            _told.setdefault(session, set()).add(self._catalog)
        return f"{self._catalog}.{quoted(self._namespace)}"

    def _is_known(self, session: SparkSession) -> bool:
        """Whether the session was told of the catalog."""
        return self._catalog in _told.get(session, ())

    def procedure(self, name: str) -> str:
        """Return the name of a procedure."""
        return f"{self._catalog}.system.{name}"

    @property
    def short_name(self) -> str:
        """The table's name within the catalog."""
        return f"{quoted(self._namespace)}.{quoted(self._table)}"

    @property
    def new_table(self) -> Mapping[str, str]:
        """Nothing: a new table lies where its name says."""
        return {}

    @property
    def _settings(self) -> Mapping[str, str]:
        raise NotImplementedError


class FolderCatalog(NamesInSql):
    """The catalog of tables in folders, which Iceberg calls ``hadoop``: a version is a file that is there once."""

    def __init__(self, place: Place) -> None:
        """Use the table at a place, two levels below the folder that Iceberg calls the warehouse."""
        self._place = place
        warehouse, self._namespace, self._table = place.spark_url.rsplit("/", 2)
        self._warehouse = warehouse or "/"
        self._catalog = f"strandline_{sha256(self._warehouse.encode()).hexdigest()[:8]}"

    def newest(self) -> Metadata | None:
        """Return the file of metadata with the highest number."""
        for attempt in range(3):
            try:
                found = self._newest_file()
                return self._read(*found) if found else None
            except FileNotFoundError:  # another writer has deleted old versions meanwhile
                if attempt == 2:
                    raise
        return None

    def change_refs(self, change: RefChange) -> bool:
        """Put the next version of the metadata."""
        return put_refs(change, self.newest, self._put_next)

    def add_snapshot(self, before: Metadata, snapshot: Mapping[str, Any]) -> bool:
        """Put the next version of the metadata, if it is not there."""
        return self._put_next(before, with_snapshot(before, snapshot))

    @property
    def _settings(self) -> Mapping[str, str]:
        return {"type": "hadoop", "warehouse": self._warehouse, "cache-enabled": "false", **LOCAL_FILES}

    def _newest_file(self) -> tuple[int, str] | None:
        folder = self._folder
        try:
            names = os.listdir(folder) if folder else []  # noqa: PTH208 - names, not paths
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._failed("list", error) from None
        versions = [(int(match[1]), name) for name in names if (match := _METADATA.fullmatch(name))]
        return max(versions, default=None)

    def _read(self, version: int, name: str) -> Metadata:
        path = f"{self._folder}/{name}"
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - a text of Spark's, not a path of ours
                return Metadata.parse(file.read(), path, version)
        except FileNotFoundError:
            raise
        except (OSError, ValueError) as error:
            raise self._failed(f"read {name} of", error) from None

    @property
    def _folder(self) -> str | None:
        return str(self._place.local / "metadata") if self._place.local else None

    def _put_next(self, before: Metadata, raw: Mapping[str, Any]) -> bool:
        """Put the next version, if it is not there; return whether it was not. A link is made once, whoever else tries.

        Its name is the one that Spark's next version would have, so that the two cannot both be there.
        """
        packed = before.properties.get(_COMPRESSION, "none").lower() == "gzip"
        ending = f"{'.gz' if packed else ''}.metadata.json"
        draft = f"{self._folder}/{uuid4()}{ending}"
        target = f"{self._folder}/v{before.version + 1}{ending}"
        data = json.dumps(raw).encode()
        try:
            with open(draft, "xb") as file:  # noqa: PTH123 - as above
                file.write(gzip.compress(data) if packed else data)
            os.link(draft, target)
        except FileExistsError:
            return False
        except OSError as error:
            raise self._failed("write", error) from None
        finally:
            if os.path.exists(draft):  # noqa: PTH110
                os.unlink(draft)  # noqa: PTH108
        if not self._is_there(before):
            with suppress(OSError):
                os.unlink(target)  # noqa: PTH108
            raise TargetError(
                f"table {self._place}: expected its version {before.version}, on which the next one was put, found another one or none meanwhile: others have"
                " committed many times, or the table was dropped. Nothing is lost: the next run looks what is there"
            )
        self._put_hint(before.version + 1)
        for old in dropped_versions(before, raw):
            name = old.rpartition("/")[2]
            for gone in (name, f".{name}.crc"):  # Hadoop's checksum, if Spark has put it
                with suppress(OSError):
                    os.unlink(f"{self._folder}/{gone}")  # noqa: PTH108
        return True

    def _is_there(self, version: Metadata) -> bool:
        """Whether the table has a version as it was read.

        One that it has not any more was deleted with the older ones, or was another table's: the number after it is then free again, and what is put there
        follows nothing.
        """
        with suppress(FileNotFoundError):
            return self._read(version.version, version.location.rpartition("/")[2]).raw == version.raw
        return False

    def _put_hint(self, version: int) -> None:
        """Say which version is the newest, for engines that look nowhere else. Iceberg's own looks for later ones, too, if the one that is said is there.

        Others may have said a later one meanwhile, and deleted this one.
        """
        draft = f"{self._folder}/{uuid4()}-version-hint.text"
        newest, said = version, 0
        with suppress(OSError, TargetError):
            while said < newest:
                with open(draft, "x") as file:  # noqa: PTH123 - as above
                    file.write(str(newest))
                with suppress(FileNotFoundError):  # Hadoop's checksum of the one before
                    os.unlink(f"{self._folder}/.version-hint.text.crc")  # noqa: PTH108
                os.replace(draft, f"{self._folder}/version-hint.text")  # noqa: PTH105
                found = self._newest_file()
                said, newest = newest, found[0] if found else newest

    def _failed(self, verb: str, error: Exception) -> TargetError:
        return TargetError(
            f"table {self._place}: cannot {verb} its Iceberg metadata: {type(error).__name__}: {in_one_line(str(error))}."
            " Check the table's path, owner and mode"
        )
