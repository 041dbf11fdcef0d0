"""Metadata files in a table's folder that its catalog does not list: the table was moved there."""

from __future__ import annotations

import re

from partitions.errors import SourceError, TargetError, shorten_to_line
from resources.connections.places import Place
from resources.tables.iceberg.catalog import at_own_place, names_other_folder
from resources.tables.iceberg.metadata import Metadata

_NUMBERED = re.compile(r"v?(\d+)(?:-[0-9a-f-]+)?(?:\.gz)?\.metadata\.json(?:\.gz)?")


def check_not_moved(place: Place) -> None:
    """Raise TableMoved if a table was moved to a place at which the catalog knows none."""
    metadata = _newest_metadata(place)
    if metadata is not None:
        at_own_place(metadata, place)


def find_moved_metadata(place: Place) -> Metadata | None:
    """Return the newest metadata file of a place if it names another folder."""
    metadata = _newest_metadata(place)
    return metadata if metadata is not None and names_other_folder(metadata, place) else None


def read_metadata(place: Place, name: str) -> Metadata | None:
    """Return a metadata file of a place by its name; None if it is not there.

    Raises:
        TargetError: it cannot be read.
    """
    from obstore.exceptions import BaseError, NotFoundError

    try:
        data = bytes(place.store.get(f"metadata/{name}").bytes())
        match = _NUMBERED.fullmatch(name)
        return Metadata.parse(
            data, f"{place.spark_url}/metadata/{name}", int(match[1]) if match else 0, place.pyiceberg_options
        )
    except (NotFoundError, FileNotFoundError, SourceError):
        return None
    except (BaseError, OSError, ValueError) as error:
        raise TargetError(
            f"table {place}: cannot read its metadata {name}: {type(error).__name__}: {shorten_to_line(str(error))}"
        ) from None


def _newest_metadata(place: Place) -> Metadata | None:
    """Return the metadata file with the highest number; of several the one that was changed last."""
    from obstore.exceptions import BaseError

    try:
        names = [meta["path"].rpartition("/")[2] for page in place.store.list("metadata") for meta in page]
    except SourceError:  # there is no folder
        return None
    except (BaseError, OSError) as error:
        raise TargetError(f"table {place}: cannot list its metadata: {shorten_to_line(str(error))}") from None
    numbers = {name: int(match[1]) for name in names if (match := _NUMBERED.fullmatch(name))}
    highest = max(numbers.values(), default=None)
    newest = [read_metadata(place, name) for name, number in numbers.items() if number == highest]
    return max(
        filter(None, newest), key=lambda metadata: int(metadata.raw.get("last-updated-ms", 0)), default=None
    )
