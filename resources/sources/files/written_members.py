"""The members of a JSON object in their own letters, by Spark's expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

_PIECE = r'"(?:[^"\\]|\\.)*+"|[{}\[\],:]|[^\s"{}\[\],:]++'
"""A name or text, a sign, or a number or word of JSON."""


def written_members(record: Column) -> Column:
    """Return the members of an object as it is written, in its order: each with its name, the name in its quotes, and the letters of its value without blanks around tokens."""
    from pyspark.sql import functions as F

    member = "struct<quoted:string,text:string>"
    begin = F.struct(
        F.lit(0).alias("depth"),
        F.lit("").alias("quoted"),
        F.lit("").alias("text"),
        F.array().cast(f"array<{member}>").alias("members"),
    )

    def with_piece(seen: Column, piece: Column) -> Column:
        is_inside = seen["depth"] == 1
        step = F.when(piece.isin("{", "["), 1).when(piece.isin("}", "]"), -1).otherwise(0)
        ends = is_inside & piece.isin(",", "}")
        is_name = is_inside & (seen["quoted"] == "") & piece.startswith('"')
        is_colon = is_inside & (seen["text"] == "") & (piece == ":")
        own = F.struct(seen["quoted"].alias("quoted"), seen["text"].alias("text"))
        is_part = (seen["depth"] > 0) & ~is_name & ~is_colon
        return F.struct(
            (seen["depth"] + step).alias("depth"),
            F.when(ends, "").when(is_name, piece).otherwise(seen["quoted"]).alias("quoted"),
            F.when(ends, "")
            .when(is_part, F.concat(seen["text"], piece))
            .otherwise(seen["text"])
            .alias("text"),
            F.when(ends & (seen["quoted"] != ""), F.array_append(seen["members"], own))
            .otherwise(seen["members"])
            .alias("members"),
        )

    members = F.aggregate(F.regexp_extract_all(record, F.lit(_PIECE), 0), begin, with_piece)["members"]

    def with_name(member: Column) -> Column:
        name = F.from_json(F.concat(F.lit("["), member["quoted"], F.lit("]")), "array<string>")
        return F.struct(F.try_element_at(name, F.lit(1)).alias("name"), member["quoted"], member["text"])

    return F.transform(members, with_name)
