"""PostgreSQL's SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from typing_extensions import override

from partitions import sql_text
from partitions.errors import ConfigurationError
from partitions.sources.database_types import MAX_SHOWN_LETTERS, ColumnType
from partitions.unit_values import TIMES, ValueType
from resources.dialects.dialect import Dialect, clock

OTHER_ARRAY = "="
"""The first character of the text of an array with other dimensions than its type. JSON never starts with it."""

_TYPES: Mapping[ValueType, str] = {
    "instant": "timestamptz",
    "local": "timestamp",
    "day": "date",
    "whole": "bigint",
}
"""The types in which the bounds of a histogram are read."""


_DATABASE = "(SELECT oid FROM pg_database WHERE datname = current_database())"


class PostgreSQL(Dialect):
    """Names in double quotes, taken literally; texts without a type, so that they fit uuid and enum, too."""

    lexical_rules = sql_text.POSTGRESQL
    clock = "SELECT clock_timestamp()"
    text_type = "text"

    def name(self, column: str) -> str:
        """Return the name in double quotes, with each quote in it doubled."""
        return '"' + column.replace('"', '""') + '"'

    def text(self, value: str) -> str:
        """Return the text in quotes, with ``E`` if it contains a backslash.

        Without ``E`` the meaning of a backslash depends on standard_conforming_strings.

        Raises:
            ConfigurationError: the text contains a NUL, which would end the query.
        """
        if "\x00" in value:
            raise ConfigurationError(
                f"expected text that PostgreSQL can hold, found a NUL in {value[:80]!r}; set the watermark to another value"
            )
        quoted = value.replace("'", "''")
        return "E'" + quoted.replace("\\", "\\\\") + "'" if "\\" in value else f"'{quoted}'"

    def ordered(self, column: str) -> str:
        """Return the column in the collation of bytes."""
        return f'{self.name(column)} COLLATE "C"'

    def among(self, column: str, values: Sequence[Any]) -> str:
        """Return the condition that a column has one of these values; texts must be equal by bytes, too.

        A nondeterministic collation and ``citext`` take ``a`` for ``A``. The plain comparison can use an
        index.
        """
        plain = super().among(column, values)
        if not any(isinstance(value, str) for value in values):
            return plain
        name, exact = self.name(column), ", ".join(map(self.literal, values))
        is_other = f"pg_typeof({name})::text NOT IN ('text', 'character varying', 'citext')"
        return f'{plain} AND ({is_other} OR {name}::text COLLATE "C" IN ({exact}))'

    def instant(self, value: datetime) -> str:
        """Return the instant with its offset, so that the session's zone does not matter."""
        return f"TIMESTAMPTZ '{clock(value)}+00'"

    def known_columns(self, parts: Sequence[str]) -> str:
        """Return a query of the catalog for a table's columns; only a B-tree over all rows is an index."""
        return f"""
            SELECT a.attname, bool_or(i.indexrelid IS NOT NULL), a.attnotnull
            FROM pg_attribute a
            JOIN pg_class t ON t.oid = a.attrelid AND t.relkind IN ('r', 'p', 'm')
            LEFT JOIN (pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam AND m.amname = 'btree')
              ON i.indrelid = a.attrelid AND i.indkey[0] = a.attnum AND i.indisvalid AND i.indpred IS NULL
            WHERE a.attrelid = to_regclass({self.text(self.relation(parts))}) AND a.attnum > 0 AND NOT a.attisdropped
            GROUP BY a.attname, a.attnotnull"""  # noqa: S608 - the name is a literal

    def histogram(self, parts: Sequence[str], column: str, kind: ValueType) -> str | None:
        """Return a query of ANALYZE's histogram; None for a type without one. Stale statistics give no row.

        Less than a tenth of the rows may have changed since, and less than a tenth may hold frequent
        values, which are not in the histogram. Infinity is left out.
        """
        type_ = _TYPES.get(kind)
        if type_ is None:
            return None
        finite = " AND ".join(self.finite("bound", kind) or ()) or "true"
        frequent = "coalesce((SELECT sum(f) FROM unnest(s.most_common_freqs) AS f), 0)"
        return f"""
            SELECT known.count / (array_length(known.bounds, 1) - 1), bound
            FROM (
              SELECT t.reltuples::float8 * (1 - s.null_frac - {frequent}) AS count, s.histogram_bounds::text::{type_}[] AS bounds
              FROM pg_class t
              JOIN pg_namespace n ON n.oid = t.relnamespace
              JOIN pg_stats s ON s.schemaname = n.nspname AND s.tablename = t.relname AND s.attname = {self.text(column)} AND NOT s.inherited
              WHERE t.oid = to_regclass({self.text(self.relation(parts))}) AND t.relkind IN ('r', 'm') AND t.reltuples > 0
                AND pg_stat_get_mod_since_analyze(t.oid) < t.reltuples / 10 AND {frequent} < 0.1
            ) AS known, unnest(known.bounds) AS bound
            WHERE known.count > 0 AND array_length(known.bounds, 1) > 1 AND {finite}
            ORDER BY bound"""  # noqa: S608 - names are literals

    def locked_tables(self) -> str:
        """Return a query of the tables that a SELECT has locked, also those below a query or view."""
        return f"""
            WITH RECURSIVE mine AS (
              SELECT c.oid, c.relkind FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
              WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.database = {_DATABASE} AND c.relkind IN ('r', 'p', 'm', 'f')
                AND c.relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
              UNION SELECT c.oid, c.relkind FROM mine JOIN pg_inherits i ON i.inhparent = mine.oid JOIN pg_class c ON c.oid = i.inhrelid
            )
            SELECT oid::bigint, oid::regclass::text, CASE
              WHEN pg_is_in_recovery() THEN 'the server is a standby, which does not see the transactions of its primary'
              WHEN relkind = 'f' THEN 'it is a foreign table, whose transactions are another server''s'
              WHEN relkind = 'm' THEN 'it is a materialized view, whose rows come when it is refreshed'
              WHEN EXISTS (SELECT FROM pg_subscription_rel s WHERE s.srrelid = oid)
                THEN 'logical replication fills it, in the order in which another server commits'
            END FROM mine"""  # noqa: S608 - no value

    @override
    def identity(self, parts: Sequence[str]) -> str:
        """Return a query of the identity of the server and of the tables that a SELECT has locked.

        The oid survives TRUNCATE and VACUUM FULL but not DROP; a standby has its primary's.
        """
        return f"""
            SELECT s.system_identifier::text, c.oid::regclass::text, l.database || '/' || c.oid
            FROM pg_control_system() s, (SELECT DISTINCT relation, database FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation') l
            JOIN pg_class c ON c.oid = l.relation AND c.relkind IN ('r', 'p', 'm', 'f') AND NOT c.relispartition
            WHERE l.database = {_DATABASE} AND c.relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)"""  # noqa: S608 - no value

    def sequences(self, tables: Sequence[int], columns: Sequence[str]) -> str:
        """Return a query of the sequences that columns own, and of those in the columns' defaults."""
        names = ", ".join(map(self.text, columns))
        oids = ", ".join(map(str, tables))
        return f"""
            SELECT DISTINCT s.seqrelid::bigint, s.seqrelid::regclass::text, s.seqcache
            FROM pg_attribute a
            LEFT JOIN pg_attrdef e ON e.adrelid = a.attrelid AND e.adnum = a.attnum
            JOIN pg_depend d
              ON (d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum)
              OR (d.classid = 'pg_attrdef'::regclass AND d.objid = e.oid AND d.refclassid = 'pg_class'::regclass)
            JOIN pg_sequence s ON s.seqrelid = CASE WHEN d.classid = 'pg_class'::regclass THEN d.objid ELSE d.refobjid END
            WHERE a.attrelid IN ({oids}) AND a.attname IN ({names}) AND NOT a.attisdropped"""  # noqa: S608 - numbers, and names as literals

    def open_transactions(self, tables: Sequence[int], sequences: Sequence[int]) -> Sequence[str]:
        """Return queries of pg_locks and pg_stat_activity; the last lists the other open transactions.

        The former is current and complete for every user. The latter shows the start of other users'
        transactions to some users only. A sequence stays locked until the end of the transaction that took
        a number of it. The product's own reads write nothing.
        """
        named = ", ".join(map(str, (*tables, *sequences)))
        any_sequence = "" if sequences else " OR relation IN (SELECT oid FROM pg_class WHERE relkind = 'S')"
        query = f"""
            WITH
              locked AS (SELECT * FROM pg_locks WHERE granted AND pid IS DISTINCT FROM pg_backend_pid()),
              numbers AS (SELECT virtualtransaction, min(transactionid::text) AS number FROM locked WHERE locktype = 'transactionid' GROUP BY 1),
              writing AS (
                SELECT DISTINCT virtualtransaction, pid FROM locked
                WHERE locktype = 'relation' AND mode = 'RowExclusiveLock' AND database = {_DATABASE} AND (relation IN ({named}){any_sequence})
              ),
              others AS (
                SELECT a.*, (SELECT min(l.virtualtransaction) FROM locked l WHERE l.pid = a.pid AND l.locktype = 'virtualxid') AS id
                FROM pg_stat_activity a
                WHERE a.datname = current_database() AND a.usesysid IS NOT NULL AND a.pid <> pg_backend_pid()
                  AND coalesce(a.application_name, '') <> 'strandline' AND coalesce(a.backend_type, '') NOT IN ('walsender', 'parallel worker')
              )
            SELECT true, w.virtualtransaction, n.number, w.pid, coalesce(p.gid, a.application_name), coalesce(p.prepared, a.xact_start),
              pg_postmaster_start_time()
            FROM writing w LEFT JOIN numbers n USING (virtualtransaction) LEFT JOIN pg_stat_activity a ON a.pid = w.pid
              LEFT JOIN pg_prepared_xacts p ON w.pid IS NULL AND p.transaction::text = n.number
            UNION ALL
            SELECT false, o.id, n.number, o.pid, o.application_name, o.xact_start, pg_postmaster_start_time()
            FROM others o LEFT JOIN numbers n ON n.virtualtransaction = o.id
            WHERE o.xact_start IS NOT NULL OR o.id IS NOT NULL
            UNION ALL
            SELECT NULL, '', NULL, NULL, NULL, NULL, pg_postmaster_start_time()"""  # noqa: S608 - numbers
        return (
            "SELECT pg_stat_clear_snapshot()",
            query,
        )  # else it stays what it was at the first look of this transaction

    def for_driver(self, query: str) -> str:
        """Return the query with the operator ``?`` doubled: to the driver a single one is a parameter."""
        return sql_text.replace_in_code(query, "?", "??", self.lexical_rules)

    def finite(self, column: str, kind: ValueType) -> Sequence[str]:
        """Return conditions that exclude infinity, NaN and years outside of 1 to 9999; () for other types."""
        name = self.name(column)
        if kind in TIMES:
            return (f"{name} < '10000-01-01'", f"{name} >= '0001-01-01'")
        return (f"{name} < 'Infinity'", f"{name} > '-Infinity'") if kind == "number" else ()

    def moment(self, value: datetime) -> str:
        """Return an untyped text: an instant uses its offset, a local time or a date ignores it."""
        return self.text(value.isoformat(timespec="milliseconds"))

    @override
    def array_replacements(self, column: str, value: str) -> Sequence[str]:
        """Return an expression for the array as JSON text, which holds any dimensions."""
        return (f"to_json({self.name(column)}) AS {self.name(column)} (JSON text)",)

    def transfer_expression(self, column: str, type_: ColumnType, keys: Sequence[str] = ()) -> str:
        """Return most types unchanged, an instant in microseconds, and a fitting array as JSON of texts.

        For NaN, infinity and times that Spark lacks, the cast of a note fails in the database: such
        columns are common, and Spark has nothing to check then.
        """
        name = self.name(column)
        if type_.dimensions:
            # A cast of texts to text takes blanks from a char, and puts a mask behind an inet.
            as_written = type_.data_type == "string" and type_.form == "plain"
            texts = f"CAST(CAST({name} AS text) AS text[])" if as_written else f"CAST({name} AS text[])"
            nested = f"to_json({texts})::text"
            fits = f"coalesce(array_ndims({name}), {type_.dimensions}) = {type_.dimensions}"
            return (
                f"CASE WHEN {fits} THEN {nested} ELSE '{OTHER_ARRAY}' || CAST({name} AS text) END AS {name}"
            )
        match type_.form:
            case "text":
                return f"CAST({name} AS text) AS {name}"
            case "number":
                number = type_.data_type.replace("decimal", "numeric")  # with which CASE keeps its scale
                refused = f"CAST(CAST({self._note(column, type_, keys)} AS numeric) AS {number})"
                return f"CASE WHEN {name} = 'NaN' THEN {refused} ELSE {name} END AS {name}"
            case "microseconds":
                return f"{_microseconds(name, self._note(column, type_, keys))} AS {name}"
            case "flag":
                return f"{name} = B'1' AS {name}"
        return name

    def _note(self, column: str, type_: ColumnType, keys: Sequence[str]) -> str:
        """Return an expression for the note about a column's value."""

        def hexadecimal(text: str) -> str:
            return f"encode(convert_to({text}, 'UTF8'), 'hex')"

        cells = ", ".join(
            f"{self.text(f'{key} = ')} || left(CAST({self.name(key)} AS text), {MAX_SHOWN_LETTERS})"
            for key in keys
        )
        row = hexadecimal(f"concat_ws(', ', {cells})") if cells else "''"
        value = hexadecimal(f"left(CAST({self.name(column)} AS text), {MAX_SHOWN_LETTERS})")
        return f"{self.text(type_.note(column))} || {value} || ':' || {row} || ':'"


def _microseconds(name: str, note: str) -> str:
    """Return an expression for the microseconds since the epoch.

    Before PostgreSQL 14 the seconds are a double, whose microseconds are exact in some centuries only.
    """
    near = f"{name} >= '1800-01-01' AND {name} < '2200-01-01'"
    in_range = f"{name} >= '0001-01-01' AND {name} < '10000-01-01'"
    far = f"extract(epoch FROM date_trunc('second', {name}))::bigint * 1000000 + extract(microseconds FROM {name})::bigint % 1000000"
    return (
        f"CASE WHEN {near} THEN (extract(epoch FROM {name}) * 1000000)::bigint WHEN {in_range} THEN {far}"
        f" WHEN {name} IS NOT NULL THEN CAST({note} AS bigint) END"
    )


POSTGRESQL = PostgreSQL()
