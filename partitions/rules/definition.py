"""A rule of rows as a user declares it (docs/how-to/rules-for-rows.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from partitions.model import Model
from partitions.refusal import Refusal
from partitions.rules.limits import Limit
from partitions.sql_condition import changing_part

OnFail = Literal["reject", "fail", "warn"]

ColumnName = Annotated[str, Field(min_length=1)]
AcceptedValue = bool | int | float | date | str

FORMS = ("expect", "not_null", "unique", "accepted", "references")
"""The keys of which a rule has exactly one: what it demands."""

LONGEST_NAME = 60
"""The most letters of a rule's name; its check in Dagster is named after it."""

RULES, NUMBER, RUN, TIME = "_rejected_by", "_rejected_number", "_rejected_run", "_rejected_at"
"""Columns of rejected rows: the rules that the row failed, joined by ``, ``; the entry's number; the run; the time."""

COLUMNS = (RULES, NUMBER, RUN, TIME)

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_OTHER_LETTERS = re.compile(r"[^a-z0-9]+")
_REFERENCE = re.compile(r"(?P<table>[a-z][a-z0-9_]*/[^/.]+)\.(?P<column>[^/]+)")


def _rule_name(text: str) -> str:
    if not _NAME.fullmatch(text) or len(text) > LONGEST_NAME:
        raise ValueError(
            f"expected a name of at most {LONGEST_NAME} small letters, digits and _, which begins with a letter"
        )
    return text


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class ReferencedColumn(NamedTuple):
    """A column of a table of the lake whose values another column may have.

    Attributes:
        table: ``<layer>/<name>``.
        column: the column.
    """

    table: str
    column: str

    @classmethod
    def parse(cls, text: str) -> ReferencedColumn:
        """Return the reference of a text such as ``bronze/customers.id``.

        Raises:
            ValueError: the text is no such reference.
        """
        match = _REFERENCE.fullmatch(text)
        if match is None:
            raise ValueError("expected <layer>/<table>.<column>, such as bronze/customers.id")
        return cls(match["table"], match["column"])


def _reference(text: str) -> str:
    ReferencedColumn.parse(text)
    return text


class Rule(Model):
    """A rule that each row of a slice must meet.

    Attributes:
        name: names the rule in counts, in the table of rejected rows, and its check; None: made of what it
        demands.
        expect: condition in Spark's SQL over the row. A row passes unless it is false, so NULL passes.
        not_null: columns that have a value.
        unique: columns whose values together occur once, in the slice and in the table. Values with a NULL
        pass.
        accepted: by column, the values that it may have; NULL passes.
        references: by column, the column of a table that has its values; NULL passes.
        on_fail: ``reject`` writes a row that fails into the table of rejected rows, instead of the
        dataflow's; ``warn`` loads it; ``fail`` loads nothing of its slice.
        max: up to how many rows of a slice, or which share of them, may fail; above it nothing of the slice
        is loaded. None: any number.
    """

    name: Annotated[str, AfterValidator(_rule_name)] | None = None
    expect: Annotated[str, Field(min_length=1)] | None = None
    not_null: Annotated[tuple[ColumnName, ...], BeforeValidator(_as_tuple), Field(min_length=1)] | None = None
    unique: Annotated[tuple[ColumnName, ...], BeforeValidator(_as_tuple), Field(min_length=1)] | None = None
    accepted: (
        Annotated[
            dict[ColumnName, Annotated[tuple[AcceptedValue, ...], Field(min_length=1)]], Field(min_length=1)
        ]
        | None
    ) = None
    references: (
        Annotated[dict[ColumnName, Annotated[str, AfterValidator(_reference)]], Field(min_length=1)] | None
    ) = None
    on_fail: OnFail = "reject"
    max: Limit | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Rule:
        forms = [form for form in FORMS if getattr(self, form) is not None]
        if len(forms) != 1:
            raise ValueError(
                f"expected one of {', '.join(FORMS)}, found {' and '.join(forms) if forms else 'none of them'}"
            )
        if self.on_fail == "fail" and self.max is not None:
            raise ValueError("expected no max beside on_fail: fail, which tolerates no row; or on_fail: warn")
        if self.expect is not None and self.name is None:
            raise ValueError("expected a name beside expect: counts and the rejected rows name the rule")
        return self

    @property
    def form(self) -> str:
        """The key that says what it demands."""
        return next(form for form in FORMS if getattr(self, form) is not None)

    @property
    def label(self) -> str:
        """The rule's name: as declared, or made of its form and columns."""
        if self.name is not None:
            return self.name
        parts = "_".join((self.form, *self.columns)).casefold()
        return _OTHER_LETTERS.sub("_", parts).strip("_")[:LONGEST_NAME]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it names; none of a condition, whose columns only its text names."""
        for columns in (self.not_null, self.unique):
            if columns is not None:
                return columns
        return tuple(self.accepted or self.references or ())

    @property
    def referenced(self) -> Mapping[str, ReferencedColumn]:
        """By column, the column of another table that has its values."""
        return {column: ReferencedColumn.parse(text) for column, text in (self.references or {}).items()}

    @property
    def check(self) -> str:
        """The name of the rule's check in Dagster."""
        return f"rule_{self.label}"

    @property
    def demand(self) -> str:
        """What it demands, in a line for people."""
        if self.expect is not None:
            return self.expect
        if self.accepted is not None:
            return " and ".join(
                f"{column} in ({', '.join(map(str, values))})" for column, values in self.accepted.items()
            )
        if self.references is not None:
            return " and ".join(f"{column} in {text}" for column, text in self.references.items())
        return f"{', '.join(self.columns)} {'not NULL' if self.not_null else 'unique'}"

    @property
    def must_count_first(self) -> bool:
        """Whether a slice's failing rows must be known before the slice is committed."""
        return self.on_fail != "warn" or self.max is not None


def rule_refusals(rules: Sequence[Rule]) -> Iterator[Refusal]:
    """Yield the rules of a dataflow that cannot be applied."""
    labels: dict[str, int] = {}
    for place, rule in enumerate(rules):
        if (first := labels.setdefault(rule.label, place)) != place:
            yield Refusal(
                ("rules", place, "name"),
                f"{rule.label}, as rule {first + 1} is called",
                "a name of its own for each rule",
            )
        if rule.expect is not None and (changing := changing_part(rule.expect, ())):
            yield Refusal(
                ("rules", place, "expect"),
                f"{changing} in {rule.expect!r}",
                "a condition that means the same at any time (a slice may be loaded again). Compare columns "
                "with each other, or with values",
            )


def rejects(rules: Sequence[Rule]) -> bool:
    """Return whether rows that fail one of the rules are rejected."""
    return any(rule.on_fail == "reject" for rule in rules)


def referenced_tables(rules: Sequence[Rule]) -> list[str]:
    """Return the tables that rules refer to, sorted."""
    return sorted({reference.table for rule in rules for reference in rule.referenced.values()})
