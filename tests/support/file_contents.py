"""Files of each format, made from rows."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.workbooks import xlsx


def avro(*rows: dict[str, Any], codec: str = "null", **fields: Any) -> bytes:
    """Return an Avro file of these rows; fields are Avro types by name, by default ``id`` as a long."""
    types = {"id": "long", **fields}
    schema = {"type": "record", "name": "r", "fields": [{"name": name, "type": kind} for name, kind in types.items()]}  # fmt: skip
    buffer = io.BytesIO()
    fastavro.writer(buffer, fastavro.parse_schema(schema), rows, codec=codec)
    return buffer.getvalue()


def xml(*rows: str) -> str:
    """Return a document of these records, each on a line from the second on."""
    return "<rows>\n" + "\n".join(f"<row>{row}</row>" for row in rows) + "\n</rows>\n"


def parquet_bytes(table: pa.Table, **options: Any) -> bytes:
    """Return a Parquet file of these rows, with options of its writer."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


def packed(path: str, text: str) -> dict[str, str]:
    """Return the same file plain and under each compression, 3 files in all."""
    return {f"{path}{ending}": text for ending in ("", ".bz2", ".gz")}


def records_in(form: str, path: str, *records: dict[str, Any]) -> dict[str, str | bytes]:
    """Return a file of records with whole numbers and texts, by its path with the format's ending."""
    names = list(dict.fromkeys(name for record in records for name in record))
    rows = [[record.get(name) for name in names] for record in records]
    match form:
        case "parquet":
            return {f"{path}.parquet": parquet_bytes(pa.Table.from_pylist(list(records)))}
        case "avro":
            texts = {name for record in records for name, value in record.items() if isinstance(value, str)}
            fields: dict[str, Any] = {name: ["null", "string" if name in texts else "long"] for name in names}
            return {f"{path}.avro": avro(*records, **fields)}
        case "excel":
            return {f"{path}.xlsx": xlsx([names, *rows])}
        case "csv":
            lines = [names, *[["" if value is None else str(value) for value in row] for row in rows]]
            return {f"{path}.csv": "".join(",".join(line) + "\n" for line in lines)}
        case "xml":
            elements = ("".join(f"<{name}>{value}</{name}>" for name, value in record.items() if value is not None) for record in records)  # fmt: skip
            return {f"{path}.xml": xml(*elements)}
    lines_of_json = [json.dumps(record) for record in records]
    return {
        f"{path}.{form}": "\n".join(lines_of_json) if form == "ndjson" else f"[{','.join(lines_of_json)}]"
    }
