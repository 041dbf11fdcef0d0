"""Decide whether a text holds a value of its column's type exactly.

``forms`` gives the texts that a type holds as patterns, which Spark and Python both understand. ``judge``
decides about one text, and says what is wrong with it. ``json_lines`` and ``csv_lines`` do both for whole
records. A pattern accepts nothing that the judge refuses; the judge decides about whatever a pattern does
not accept.
"""
