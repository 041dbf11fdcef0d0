"""Texts and names as Spark's SQL writes them."""

from __future__ import annotations


def literal(text: str) -> str:
    """A text as Spark's SQL writes it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def quoted(name: str) -> str:
    """A name as Spark's SQL writes it."""
    return "`" + name.replace("`", "``") + "`"
