"""Find the newest metadata of an Iceberg table, and its name in Spark.

See docs/reference/iceberg.md, Catalogs.
"""

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

from partitions.errors import TargetError, shorten_to_line
from resources.connections.places import Place
from resources.spark.settings import set_all
from resources.sql import quoted
from resources.tables.contract.relocation import TableMoved
from resources.tables.iceberg.metadata import Metadata, dropped_metadata_files, with_snapshot
from resources.tables.iceberg.refs import RefChange, commit_refs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
LOCAL_FILES = {
    # Iceberg asks the file system for its scheme, which RawLocalFileSystem lacks. Iceberg's own file names have no colons.
    "hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    "hadoop.fs.file.impl.disable.cache": "true",
}
_configured_catalogs: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()
"""Catalogs whose settings each session has. A call to a Connect server takes milliseconds, and a load needs a table's name about five times."""

_COMPRESSION = "write.metadata.compression-codec"
_METADATA = re.compile(r"v(\d+)(?:\.gz)?\.metadata\.json(?:\.gz)?")


class Catalog(Protocol):
    """The catalog of one table."""

    def newest(self) -> Metadata | None:
        """Return the newest metadata; None if there is no table.

        Raises:
            TableMoved: it names another folder.
            TargetError: it cannot be read.
        """
        ...

    def find_moved(self) -> tuple[Metadata, tuple[str, ...]] | None:
        """Return the newest metadata of a table that was moved here, and remarks for people.

        None if there is no table, or its metadata names this folder.

        Raises:
            TargetError: it cannot be read, or must not be moved.
        """
        ...

    def publish_moved(self, moved: Metadata, raw: Mapping[str, Any]) -> None:
        """Make the JSON of a version with new addresses the newest metadata.

        Args:
            moved: metadata from :meth:`find_moved`.
            raw: the same with new addresses.

        Raises:
            TargetError: another writer came first, or it cannot be written.
        """
        ...

    def change_refs(self, change: RefChange) -> bool:
        """Change branches and tags; return whether the table now has the change.

        It does not if it lacks a snapshot, or if readers see another one than expected. Another writer's
        commit may undo the change later.

        Raises:
            WriteConflict: another writer came first in every attempt.
            TargetError: the table cannot be changed.
        """
        ...

    def add_snapshot(self, base: Metadata, snapshot: Mapping[str, Any]) -> bool:
        """Add a snapshot for readers if the table has not changed; return whether it was added.

        Args:
            base: newest metadata.
            snapshot: snapshot in the JSON of metadata, a child of the one that readers see.

        Raises:
            TargetError: it cannot be added, or its answer was lost and it is there.
        """
        ...

    def name(self, session: SparkSession) -> str:
        """Configure the catalog in the session and return the table's name in SQL."""
        ...

    def namespace(self, session: SparkSession) -> str:
        """Configure the catalog in the session and return the namespace's name in SQL."""
        ...

    def procedure(self, name: str) -> str:
        """Return the name in SQL of a procedure of the catalog."""
        ...

    @property
    def short_name(self) -> str:
        """Name of the table within the catalog, for procedures."""
        ...

    @property
    def new_table_properties(self) -> Mapping[str, str]:
        """Properties that the catalog requires of a new table."""
        ...


def key_below(place: Place, location: str) -> str | None:
    """Return a file's path below the table's place; None if it lies elsewhere.

    The scheme of the address does not matter, because clients of the catalog spell it differently.
    """
    plain = strip_file_scheme(location)
    bases = (f"{base}/" for base in (place.spark_url, place.url))
    return next((plain.removeprefix(base) for base in bases if plain.startswith(base)), None)


def strip_file_scheme(location: str) -> str:
    """Return an address without ``file:``, as Strandline spells local paths."""
    return location.removeprefix("file://").removeprefix("file:")


def at_own_place(metadata: Metadata, place: Place) -> Metadata:
    """Return the metadata if it names the table's own place; else raise TableMoved.

    Raises:
        TableMoved: it names another folder, in which rows would be looked for and written.
    """
    if names_other_folder(metadata, place):
        raise TableMoved(place, strip_file_scheme(metadata.table_location))
    return metadata


def names_other_folder(metadata: Metadata, place: Place) -> bool:
    """Return whether metadata names another folder than the place; two paths of one folder are the same."""
    location = strip_file_scheme(metadata.table_location).rstrip("/")
    if location in (place.url, place.spark_url):
        return False
    return place.local is None or os.path.realpath(location) != os.path.realpath(place.local)


class SqlNames:
    """The names of a catalog's table in Spark SQL, and the catalog's settings."""

    _catalog: str
    _namespace: str
    _table: str

    def name(self, session: SparkSession) -> str:
        """Configure the catalog in the session and return the table's name."""
        return f"{self.namespace(session)}.{quoted(self._table)}"

    def namespace(self, session: SparkSession) -> str:
        """Configure the catalog in the session and return the namespace's name."""
        if not self._is_configured(session):
            key = f"spark.sql.catalog.{self._catalog}"
            settings = {f"{key}.{name}": value for name, value in self._settings.items()}
            set_all(session, {**settings, key: SPARK_CATALOG})
            _configured_catalogs.setdefault(session, set()).add(self._catalog)
        return f"{self._catalog}.{quoted(self._namespace)}"

    def _is_configured(self, session: SparkSession) -> bool:
        """Return whether the session has the catalog's settings."""
        return self._catalog in _configured_catalogs.get(session, ())

    def procedure(self, name: str) -> str:
        """Return the name of a procedure."""
        return f"{self._catalog}.system.{name}"

    @property
    def short_name(self) -> str:
        """Name of the table within the catalog."""
        return f"{quoted(self._namespace)}.{quoted(self._table)}"

    @property
    def new_table_properties(self) -> Mapping[str, str]:
        """Empty: the name of a new table says where it lies."""
        return {}

    @property
    def _settings(self) -> Mapping[str, str]:
        raise NotImplementedError


class FolderCatalog(SqlNames):
    """The catalog of tables in folders, which Iceberg calls ``hadoop``.

    Each version is a file that is created only once.
    """

    def __init__(self, place: Place) -> None:
        """Use the table at a place, two levels below Iceberg's warehouse folder."""
        self._place = place
        warehouse, self._namespace, self._table = place.spark_url.rsplit("/", 2)
        self._warehouse = warehouse or "/"
        self._catalog = f"strandline_{sha256(self._warehouse.encode()).hexdigest()[:8]}"

    def newest(self) -> Metadata | None:
        """Return the metadata file with the highest number."""
        metadata = self._read_newest()
        return at_own_place(metadata, self._place) if metadata else None

    def find_moved(self) -> tuple[Metadata, tuple[str, ...]] | None:
        """Return the newest metadata if it names another folder."""
        metadata = self._read_newest()
        return (metadata, ()) if metadata and names_other_folder(metadata, self._place) else None

    def publish_moved(self, moved: Metadata, raw: Mapping[str, Any]) -> None:
        """Write the next metadata version; raise TargetError if that version exists."""
        if not self._put_version(moved, raw):
            raise TargetError(
                f"table {self._place}: another process wrote version {moved.version + 1} of its metadata first. Run `strandline relocate` again"
            )
        self._write_hint(moved.version + 1)

    def _read_newest(self) -> Metadata | None:
        for attempt in range(3):
            try:
                newest_file = self._newest_file()
                return self._read(*newest_file) if newest_file else None
            except FileNotFoundError:  # another writer deleted old versions meanwhile
                if attempt == 2:
                    raise
        return None

    def change_refs(self, change: RefChange) -> bool:
        """Write the next metadata version with the change."""
        return commit_refs(change, self.newest, self._put_next)

    def add_snapshot(self, base: Metadata, snapshot: Mapping[str, Any]) -> bool:
        """Write the next metadata version with the snapshot, unless that version exists."""
        return self._put_next(base, with_snapshot(base, snapshot))

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
            raise self._error("list", error) from None
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
            raise self._error(f"read {name} of", error) from None

    @property
    def _folder(self) -> str | None:
        return str(self._place.local / "metadata") if self._place.local else None

    def _put_next(self, base: Metadata, raw: Mapping[str, Any]) -> bool:
        """Write the next version, and delete the versions that it no longer names; return False if it exists."""
        if not self._put_version(base, raw):
            return False
        self._write_hint(base.version + 1)
        for old_file in dropped_metadata_files(base, raw):
            name = old_file.rpartition("/")[2]
            for file_name in (name, f".{name}.crc"):  # Hadoop's checksum, if Spark wrote the file
                with suppress(OSError):
                    os.unlink(f"{self._folder}/{file_name}")  # noqa: PTH108
        return True

    def _put_version(self, base: Metadata, raw: Mapping[str, Any]) -> bool:
        """Write the next version; return False if it exists.

        A hard link is created only once, whoever tries.

        Its name is the one that Spark's next version would have, so that only one of the two can exist.
        """
        is_packed = base.properties.get(_COMPRESSION, "none").lower() == "gzip"
        suffix = f"{'.gz' if is_packed else ''}.metadata.json"
        draft = f"{self._folder}/{uuid4()}{suffix}"
        target = f"{self._folder}/v{base.version + 1}{suffix}"
        data = json.dumps(raw).encode()
        try:
            with open(draft, "xb") as file:  # noqa: PTH123 - as above
                file.write(gzip.compress(data) if is_packed else data)
            os.link(draft, target)
        except FileExistsError:
            return False
        except OSError as error:
            raise self._error("write", error) from None
        finally:
            if os.path.exists(draft):  # noqa: PTH110
                os.unlink(draft)  # noqa: PTH108
        if not self._still_has(base):
            with suppress(OSError):
                os.unlink(target)  # noqa: PTH108
            raise TargetError(
                f"table {self._place}: expected version {base.version}, the base of the next one, found "
                "another version or none: others committed many times meanwhile, or the table was "
                "dropped. No data is lost: the next run reads the table again"
            )
        return True

    def _still_has(self, version: Metadata) -> bool:
        """Return whether the table still has a version as it was read.

        A missing version was deleted as an old one, or belonged to a dropped table. The next number is
        then free again, and a version written there would have no predecessor.
        """
        with suppress(FileNotFoundError):
            return self._read(version.version, version.location.rpartition("/")[2]).raw == version.raw
        return False

    def _write_hint(self, version: int) -> None:
        """Write version-hint.text for engines that read nothing else.

        Iceberg itself also looks for later versions if the hinted one exists. Other writers may have
        written a later hint meanwhile, and deleted this version.
        """
        draft = f"{self._folder}/{uuid4()}-version-hint.text"
        newest, hinted_version = version, 0
        with suppress(OSError, TargetError):
            while hinted_version < newest:
                with open(draft, "x") as file:  # noqa: PTH123 - as above
                    file.write(str(newest))
                with suppress(FileNotFoundError):  # Hadoop's checksum of the previous hint
                    os.unlink(f"{self._folder}/.version-hint.text.crc")  # noqa: PTH108
                os.replace(draft, f"{self._folder}/version-hint.text")  # noqa: PTH105
                newest_file = self._newest_file()
                hinted_version, newest = newest, newest_file[0] if newest_file else newest

    def _error(self, verb: str, error: Exception) -> TargetError:
        return TargetError(
            f"table {self._place}: cannot {verb} its Iceberg metadata: {type(error).__name__}: {shorten_to_line(str(error))}."
            " Check the table's path, owner and mode"
        )
