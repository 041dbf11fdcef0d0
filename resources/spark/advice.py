"""Spark's advice in its errors that would change values without a word: to switch checks off, or to take NULL for what does not fit."""

from __future__ import annotations

import re

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'`\d])|(?<=\.)(?=If necessary set)")
_CLASS = re.compile(r"^pyspark\.errors\.[\w.]+: ")
_IS_ADVICE = re.compile(r"(?:\d\) )?(?:If|Use|Please|You|To|Set|Enable|Consider)\b")
_CHANGES_VALUES = re.compile(r"\btry_\w+|\bspark\.(?:sql\.(?!catalog)|databricks\.)\w")


def without_advice(text: str) -> str:
    """Return what Spark says has happened, without a class of pyspark, and without its sentences that advise a setting of SQL or a function such as ``try_cast``.

    With ``spark.sql.ansi.enabled: false`` a value that does not fit is another one, or NULL. What to do instead is said by who makes the error.
    """
    sentences = _SENTENCE_END.split(_CLASS.sub("", text))
    facts = [part for part in sentences if not (_IS_ADVICE.match(part) and _CHANGES_VALUES.search(part))]
    return " ".join(facts or sentences[:1])
