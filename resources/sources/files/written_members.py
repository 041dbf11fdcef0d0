"""Split a JSON object into its members as written, with Spark expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

_PIECE = r'"(?:[^"\\]|\\.)*+"|[{}\[\],:]|[^\s"{}\[\],:]++'
"""A token of JSON: a string, a bracket, colon or comma, or a number or word."""


def written_members(record: Column) -> Column:
    """Return the members of an object in the spelling and order of its text.

    Each is a struct of its name, its quoted name, and its value's text without blanks around tokens.
    """
    from pyspark.sql import functions as F

    member = "struct<quoted:string,text:string>"
    begin = F.struct(
        F.lit(0).alias("depth"),
        F.lit("").alias("quoted"),
        F.lit("").alias("text"),
        F.array().cast(f"array<{member}>").alias("members"),
    )

    def with_piece(state: Column, piece: Column) -> Column:
        is_inside = state["depth"] == 1
        step = F.when(piece.isin("{", "["), 1).when(piece.isin("}", "]"), -1).otherwise(0)
        ends = is_inside & piece.isin(",", "}")
        is_name = is_inside & (state["quoted"] == "") & piece.startswith('"')
        is_colon = is_inside & (state["text"] == "") & (piece == ":")
        own = F.struct(state["quoted"].alias("quoted"), state["text"].alias("text"))
        is_part = (state["depth"] > 0) & ~is_name & ~is_colon
        return F.struct(
            (state["depth"] + step).alias("depth"),
            F.when(ends, "").when(is_name, piece).otherwise(state["quoted"]).alias("quoted"),
            F.when(ends, "")
            .when(is_part, F.concat(state["text"], piece))
            .otherwise(state["text"])
            .alias("text"),
            F.when(ends & (state["quoted"] != ""), F.array_append(state["members"], own))
            .otherwise(state["members"])
            .alias("members"),
        )

    members = F.aggregate(F.regexp_extract_all(record, F.lit(_PIECE), 0), begin, with_piece)["members"]

    def with_name(member: Column) -> Column:
        name = F.from_json(F.concat(F.lit("["), member["quoted"], F.lit("]")), "array<string>")
        return F.struct(F.try_element_at(name, F.lit(1)).alias("name"), member["quoted"], member["text"])

    return F.transform(members, with_name)
