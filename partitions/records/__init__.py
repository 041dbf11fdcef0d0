"""What a text may say, by the type of its column: exactly, or not at all (docs/reference/files.md, Exact values).

``forms`` gives the texts that a type holds as patterns, which Spark and Python both understand. ``judge`` decides about one text, and says
what is wrong with it. ``json_lines`` does both for whole JSON records. A pattern accepts nothing that the judge refuses; what it does not accept
is judged.
"""
