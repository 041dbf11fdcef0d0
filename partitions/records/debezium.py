"""Change events as Debezium writes them: one envelope a line, each of which becomes one row.

See docs/reference/debezium.md.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from json.encoder import encode_basestring_ascii
from typing import Any, NamedTuple

from partitions.ddl import Column
from partitions.json_faults import explain_json_error
from partitions.records.connect_types import (
    MICROSECOND,
    MILLISECOND,
    ConnectType,
    Undecodable,
    moment,
    row_types,
    schema_of,
)
from partitions.records.event_positions import CONNECTORS, NoPosition, event_position
from partitions.records.events_without_schema import WithoutSchema
from partitions.records.json_decoding import BLANK, DECODER, Members, Number
from partitions.records.judge import Fault
from partitions.schema_merging import merge_schemas
from partitions.schema_types import Schema
from partitions.sources.event_columns import EVENT_COLUMNS, OPERATION, POSITION, SNAPSHOT, TIME, TRANSACTION
from partitions.sources.formats import DebeziumOptions

_WRAPPED = {"schema", "payload"}
_PAYLOAD = re.compile(r'\{\s*"schema"\s*:\s*')
_NEXT = re.compile(r'\s*,\s*"payload"\s*:\s*')
_OPERATIONS = {"c", "u", "d", "r"}
_UNWRAPPED = (
    "If a transform unwraps events (ExtractNewRecordState), remove it, or set format: ndjson with delete_when"
)
_SKIPPED = {
    "t": "a TRUNCATE of the table, which is no change of a row. Load the table again, or set the connector's skipped.operations to t",
    "m": "a message of the database, which is no change of a row. Keep messages out of the topic",
}
_LOST = (
    "the mark of a value that PostgreSQL has not logged, since the change left it as it was. Use load: merge_upsert "
    "without sql or transform, which keeps the table's value; or ALTER TABLE … REPLICA IDENTITY FULL in the database"
)


class _Refused(ValueError):
    """An event that cannot be loaded."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.reason)
        self.fault = fault


class _Kind(NamedTuple):
    """What the ``schema`` part of a message says of its rows; columns by name."""

    columns: Mapping[str, ConnectType]


class EventDecoder:
    """A decoder of the lines of one file.

    Attributes:
        schema: columns of the rows so far, in Spark's JSON form; None: a line did not tell its schema.
    """

    def __init__(
        self, options: DebeziumOptions, declared: Mapping[str, Column], *, keeps_lost: bool = False
    ) -> None:
        """Store how lines are read.

        Args:
            options: the options of the format.
            declared: the columns that the user declares, by name.
            keeps_lost: whether a row may lack a value that the database has not logged.
        """
        self._plain = WithoutSchema(options, declared)
        self._placeholder = options.unavailable_value_placeholder
        self._keeps_lost = keeps_lost
        self._prefix, self._kind = "", _Kind({})
        self._codes = [str(ord(letter)) for letter in self._placeholder]
        self._packed = base64.b64encode(self._placeholder.encode()).decode()
        self.schema: Schema | None = {"type": "struct", "fields": []}

    def decode(self, line: str) -> str | Fault | None:
        """Return the row of a line as JSON; why it has none; or None for a blank line and a tombstone."""
        if not line.strip("\ufeff" + BLANK):
            return None
        try:
            value, kind = self._parts(line)
            if value is None:
                return None
            row = self._row(value, kind)
        except _Refused as refused:
            return refused.fault
        except json.JSONDecodeError as error:
            return Fault(
                f"expected an envelope of Debezium, found text that is not JSON ({explain_json_error(error)})"
            )
        except RecursionError:
            return Fault("expected an envelope of Debezium, found one that is nested too deeply")
        if kind is None:
            self.schema = None
        return _as_text(row)

    def _parts(self, line: str) -> tuple[Any, _Kind | None]:
        """Return the payload of a line, and what its schema says; None if it has none.

        Messages of a topic repeat their schema letter by letter, so only a new one is read.
        """
        if self._prefix and line.startswith(self._prefix):
            value, end = DECODER.raw_decode(line, len(self._prefix))
            if line[end:].strip(BLANK) == "}":
                return value, self._kind
        value = DECODER.decode(line.removeprefix("\ufeff"))
        if (
            not isinstance(value, Members)
            or {name for name, _ in value} != _WRAPPED
            or len(value) != len(_WRAPPED)
        ):
            return value, None
        names = dict(value)
        if names["schema"] is None or names["payload"] is None:
            return names["payload"], None
        self._kind = _kind(names["schema"])
        if self.schema is not None:
            self.schema = merge_schemas(self.schema, schema_of(self._kind.columns))
        self._prefix = _prefix(line)
        return names["payload"], self._kind

    def _row(self, value: Any, kind: _Kind | None) -> Members:
        event = _envelope(value)
        operation = event["op"]
        if operation not in _OPERATIONS:
            skipped = _SKIPPED.get(str(operation), "")
            raise _Refused(
                Fault(
                    f"field op: expected c, u, d or r, found {skipped or 'another operation'}",
                    None if skipped else str(operation),
                )
            )
        source = event.get("source")
        if not isinstance(source, Members):
            raise _Refused(
                Fault(f"field source: expected an object, found {_kind_of(source)}", hint=_UNWRAPPED)
            )
        facts = dict(source)
        image = "before" if operation == "d" else "after"
        fields = self._image(event, image, facts)
        row = Members(
            (name, decoded)
            for name, item in fields
            if (decoded := self._value(name, item, kind, event, operation)) is not _ABSENT
        )
        row.extend(_event_columns(operation, event, facts))
        return row

    def _image(self, event: Mapping[str, Any], image: str, source: Mapping[str, Any]) -> Members:
        fields = event.get(image)
        if isinstance(fields, Members):
            added = next((name for name, _ in fields if name.lower() in EVENT_COLUMNS), None)
            if added is not None:
                raise _Refused(
                    Fault(
                        f"field {image}.{added}: expected another name, since events add such a column. Rename it in the connector"
                    )
                )
            return fields
        if source.get("connector") == "mongodb":
            raise _Refused(Fault(f"expected an event of {', '.join(CONNECTORS)}, found one of mongodb"))
        hint = (
            "Set REPLICA IDENTITY of the table, so that deletes tell their key" if image == "before" else ""
        )
        raise _Refused(Fault(f"field {image}: expected the row, found {_kind_of(fields)}", hint=hint))

    def _value(
        self, name: str, value: Any, kind: _Kind | None, event: Mapping[str, Any], operation: str
    ) -> Any:
        """Return a value as it is loaded; ``_ABSENT`` if the event does not tell it."""
        if self._is_lost(value):
            value = _before(event, name) if operation != "d" else _ABSENT
            if value is _ABSENT or self._is_lost(value):
                if self._keeps_lost or operation == "d":
                    return _ABSENT
                raise _Refused(Fault(f"field {name}: expected a value, found {_LOST}"))
        if value is None:
            return None
        try:
            if kind is None:
                return self._plain.value(name, value)
            decode = kind.columns[name].decode if name in kind.columns else None
            return value if decode is None else decode(value)
        except Undecodable as error:
            data_type = self._plain.type_of(name) if kind is None else str(kind.columns[name].spark)
            text = value if isinstance(value, str) else None
            raise _Refused(Fault(f"field {name}: expected {data_type}, found {error}", text)) from error

    def _is_lost(self, value: Any) -> bool:
        """Return whether a value is the mark of one that the database has not logged, in any of its forms."""
        if isinstance(value, Members):
            return [name for name, _ in value] == [self._placeholder]
        return value in (self._placeholder, self._packed, [self._placeholder], self._codes)


_ABSENT = object()
_CONSTANTS = {None: "null", True: "true", False: "false"}


def _kind(schema: Any) -> _Kind:
    """Return what the schema of an envelope says of its rows.

    Raises:
        _Refused: it is no schema of an envelope.
    """
    try:
        fields = dict(schema).get("fields") if isinstance(schema, Members) else None
        parts = {dict(field).get("field"): field for field in fields or ()}
        columns = dict[str, ConnectType]()
        for image in ("before", "after"):
            if image in parts:
                columns |= row_types(parts[image])
    except (Undecodable, TypeError, ValueError) as error:
        raise _Refused(Fault(f"field schema: expected the schema of an envelope, found {error}")) from error
    if not columns:
        raise _Refused(
            Fault(
                "field schema: expected the schema of an envelope, found one without before and after",
                hint=_UNWRAPPED,
            )
        )
    return _Kind(columns)


def _prefix(line: str) -> str:
    """Return the letters of a message before its payload; "" if the schema is not its first part."""
    begin = _PAYLOAD.match(line)
    if begin is None:
        return ""
    _, end = DECODER.raw_decode(line, begin.end())
    following = _NEXT.match(line, end)
    return line[: following.end()] if following else ""


def _envelope(value: Any) -> Mapping[str, Any]:
    """Return the parts of an envelope by name.

    Raises:
        _Refused: it is none.
    """
    if not isinstance(value, Members):
        raise _Refused(Fault(f"expected an envelope of Debezium, found {_kind_of(value)}"))
    names = [name for name, _ in value]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise _Refused(Fault(f"expected an envelope of Debezium, found {repeated} twice"))
    if "op" not in names or not {"before", "after"} & {*names}:
        raise _Refused(
            Fault(
                "expected an envelope of Debezium (op, before, after, source), found an object without them",
                hint=_UNWRAPPED,
            )
        )
    return dict(value)


def _before(event: Mapping[str, Any], name: str) -> Any:
    before = event.get("before")
    return dict(before).get(name, _ABSENT) if isinstance(before, Members) else _ABSENT


def _event_columns(operation: str, event: Mapping[str, Any], source: Mapping[str, Any]) -> Members:
    try:
        position = event_position(source, operation)
    except NoPosition as error:
        expected = f"field source: expected a position of {', '.join(CONNECTORS)}"
        raise _Refused(Fault(f"{expected}, found {error}")) from error
    return Members(
        [
            (OPERATION, operation),
            (POSITION, position),
            (TIME, _time(source)),
            (SNAPSHOT, source.get("snapshot") not in (None, False, "false")),
            (TRANSACTION, _transaction(event, source)),
        ]
    )


def _time(source: Mapping[str, Any]) -> str | None:
    """Return when the database made the change; None if it is not told, as by old snapshots of MySQL."""
    for name, unit in (("ts_us", MICROSECOND), ("ts_ms", MILLISECOND)):
        value = source.get(name)
        if isinstance(value, Number) and value != "0":
            try:
                return str(moment(unit, "Z")(value))
            except Undecodable as error:
                raise _Refused(
                    Fault(f"field source.{name}: expected a time, found {error}", value)
                ) from error
    return None


def _transaction(event: Mapping[str, Any], source: Mapping[str, Any]) -> str | None:
    own = event.get("transaction")
    values = (
        dict(own).get("id") if isinstance(own, Members) else None,
        source.get("txId"),
        source.get("gtid"),
    )
    return next((str(value) for value in values if value is not None), None)


def _kind_of(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, Members):
        return "an object"
    return "a number" if isinstance(value, Number) else "text" if isinstance(value, str) else "another value"


def _as_text(value: Any) -> str:
    """Return a decoded value as JSON, with the spelling of its numbers."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if isinstance(value, Members):
        return f"{{{','.join(f'{encode_basestring_ascii(name)}:{_as_text(item)}' for name, item in value)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_as_text, value))}]"
    return _CONSTANTS[value]
