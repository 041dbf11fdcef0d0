"""Remove Spark's advice that would silently change values: to switch checks off, or to take NULL."""

from __future__ import annotations

import re

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'`\d])|(?<=\.)(?=If necessary set)")
_CLASS = re.compile(r"^pyspark\.errors\.[\w.]+: ")
_IS_ADVICE = re.compile(r"(?:\d\) )?(?:If|Use|Please|You|To|Set|Enable|Consider)\b")
_CHANGES_VALUES = re.compile(r"\btry_\w+|\bspark\.(?:sql\.(?!catalog)|databricks\.)\w")


def without_advice(text: str) -> str:
    """Return Spark's message without pyspark's class, and without advice that would change values.

    Such advice names a SQL setting or ``try_cast``. With ``spark.sql.ansi.enabled: false`` a value that
    does not fit becomes another one, or NULL. The caller's error says what to do instead.
    """
    sentences = _SENTENCE_END.split(_CLASS.sub("", text))
    facts = [part for part in sentences if not (_IS_ADVICE.match(part) and _CHANGES_VALUES.search(part))]
    return " ".join(facts or sentences[:1])
