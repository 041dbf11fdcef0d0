"""What every dialect writes of canonical texts and hashes, and what they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from partitions.reconcile.families import NULL, SEPARATOR, TEXT, Family, family_of
from partitions.sources.database_types import ColumnType

CHECKSUM_DIGITS = 15
"""Hexadecimal digits of a hash that a checksum adds up: 60 bits."""


class CanonicalSql(ABC):
    """Expressions over expressions; each is SQL of the dialect.

    Attributes:
        number_type: whole number that holds a range's number.
    """

    number_type: ClassVar[str] = "int"

    def row_text(self, columns: Sequence[tuple[str, ColumnType]]) -> str:
        """Return the canonical text of some columns of a row, which is never NULL.

        Args:
            columns: each column as an expression, with its type.
        """
        texts = [self.value_text(expression, type_) for expression, type_ in columns]
        return self.joined([part for text in texts for part in (text, f"'{SEPARATOR}'")][:-1])

    def value_text(self, expression: str, type_: ColumnType) -> str:
        """Return the canonical text of a column, or of NULL."""
        text = self.array(expression, type_) if type_.dimensions else self.scalar(expression, type_)
        return self.or_null_text(expression, text)

    def or_null_text(self, expression: str, text: str) -> str:
        """Return a text, or the one for NULL where the expression is NULL."""
        return f"CASE WHEN {expression} IS NULL THEN '{NULL}' ELSE {text} END"

    def scalar(self, expression: str, type_: ColumnType) -> str:
        """Return the canonical text of a value that is not NULL."""
        family = family_of(type_)
        assert family is not None, type_
        written = self.written(expression, type_, family)
        match family:
            case "number" if type_.data_type.startswith("decimal"):
                return self._plain_decimal(written, type_)
            case "text":
                return self.joined([f"'{TEXT}'", f"replace({written}, ',', ',,')"])
            case "time" | "local" | "instant" if self.writes_whole_fractions:
                return self.short_fraction(written)
        return written

    writes_whole_fractions: ClassVar[bool] = False
    """Whether a time's text keeps zeros at the end of its fraction."""

    @abstractmethod
    def written(self, expression: str, type_: ColumnType, family: Family) -> str:
        """Return the text of a value that is not NULL, before it is shortened."""

    @abstractmethod
    def array(self, expression: str, type_: ColumnType) -> str:
        """Return the canonical text of an array that is not NULL."""

    @abstractmethod
    def joined(self, texts: Sequence[str]) -> str:
        """Return texts that are not NULL in a row."""

    @abstractmethod
    def hashed(self, text: str, *, is_ascii: bool) -> str:
        """Return the MD5 of a text's bytes in UTF-8, hexadecimal in small letters.

        Args:
            text: expression of a text.
            is_ascii: whether it holds nothing but ASCII.
        """

    @abstractmethod
    def checksum(self, hash_: str) -> str:
        """Return the first digits of a hash as a whole number, such as :meth:`summed` adds up."""

    def short_fraction(self, text: str) -> str:
        """Return a text without zeros at the end of its fraction, if it has one."""
        return f"CASE WHEN position('.' IN {text}) > 0 THEN {self.stripped(text)} ELSE {text} END"

    def stripped(self, text: str) -> str:
        """Return a text that has a fraction without the zeros at its end, and without a point at its end."""
        return f"trim(TRAILING '.' FROM trim(TRAILING '0' FROM {text}))"

    def _plain_decimal(self, text: str, type_: ColumnType) -> str:
        if not type_.fixed_scale:
            return self.short_fraction(text)
        return text if type_.data_type.endswith(",0)") else self.stripped(text)


def is_ascii(columns: Sequence[tuple[str, ColumnType]]) -> bool:
    """Return whether the canonical texts of columns hold nothing but ASCII."""
    return all(family_of(type_) != "text" for _, type_ in columns)
