"""Map the format names of a definition to their readers."""

from __future__ import annotations

from collections.abc import Mapping

from partitions.dataflow import Dataflow
from partitions.sources import FilesSource
from resources.connections.places import Place
from resources.sources.files.formats.avro import AvroFiles
from resources.sources.files.formats.csv import CsvFiles
from resources.sources.files.formats.debezium import DebeziumFiles
from resources.sources.files.formats.excel import ExcelFiles
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.formats.json import JsonFiles, NdjsonFiles
from resources.sources.files.formats.parquet import ParquetFiles
from resources.sources.files.formats.xml import XmlFiles
from resources.staging import Staging

READERS: Mapping[str, type[FormatReader]] = {
    "ndjson": NdjsonFiles,
    "json": JsonFiles,
    "csv": CsvFiles,
    "parquet": ParquetFiles,
    "avro": AvroFiles,
    "xml": XmlFiles,
    "excel": ExcelFiles,
    "debezium": DebeziumFiles,
}
"""The readers, by the name of their format."""


def packages_of(dataflow: Dataflow) -> tuple[str, ...]:
    """Return the Maven coordinates of the reader for a dataflow's files; none if Spark has it."""
    if not isinstance(dataflow.source, FilesSource):
        return ()
    package = READERS[dataflow.source.format].PACKAGE
    return (package,) if package else ()


def open_format(place: Place, dataflow: Dataflow, staging: Staging) -> FormatReader:
    """Return the reader for the files of a dataflow; it opens nothing.

    ``staging`` takes rows that Spark cannot read where they lie.
    """
    return READERS[dataflow.files.format](place, dataflow, staging)
