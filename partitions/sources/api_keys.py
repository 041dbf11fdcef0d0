"""Which keys of an API as a source go together (docs/source-api.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partitions.api.paging import names_of

if TYPE_CHECKING:
    from partitions.sources.api import ApiSource


def check_keys_together(source: ApiSource) -> None:
    """Look at keys that need or exclude each other.

    Raises:
        ValueError: a parameter has two values, a body is not sent, a total stands in two places, or a range has no end.
    """
    _check_one_value_each(source)
    _check_one_total(source)
    _check_body_is_sent(source)
    _check_ranges_end(source)


def _check_one_value_each(source: ApiSource) -> None:
    in_params, in_body = list(source.params), list(source.body or {})
    bounds = in_params if source.watermark_param_location == "params" else in_body
    bounds += [*source.watermark_param_mapping.values(), *filter(None, [source.watermark_to_param])]
    if source.paging is not None:
        (in_params if source.paging.location == "params" else in_body).extend(names_of(source.paging))
    for where, names in (("params", in_params), ("body", in_body)):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise ValueError(f"expected each parameter once in {where}, found {twice} twice")


def _check_one_total(source: ApiSource) -> None:
    if source.total is not None and source.total_header is not None:
        raise ValueError("total_header: expected it, or total, found both")


def _check_body_is_sent(source: ApiSource) -> None:
    uses = {
        "body": source.body is not None,
        "watermark_param_location": source.watermark_param_location == "body",
        "paging": source.paging is not None and source.paging.location == "body",
    }
    used = next((key for key, is_used in uses.items() if is_used), None)
    if used and source.method == "GET":
        raise ValueError(f"{used}: expected method: POST beside what stands in a body, found GET")


def _check_ranges_end(source: ApiSource) -> None:
    if source.watermark_param_range is None:
        return
    if source.watermark_to_param is None or not source.watermark_param_mapping:
        raise ValueError(
            "watermark_param_range: expected watermark_param_mapping and watermark_to_param beside it"
            " (else each range would be read to its end), found one of them at most"
        )
    if source.watermark_param_range.unit == "hour" and source.bounds().step.days:
        raise ValueError("watermark_param_range: expected days or more, found hours, which dates cannot say")
