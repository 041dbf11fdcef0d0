"""The ``Link`` header of an answer (RFC 8288)."""

from __future__ import annotations

import re

_PARAMETER = r"""\s*;\s*(?P<name>[^\s=;,"']+)(?:\s*=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|'(?P<single>[^']*)'|(?P<plain>[^\s;,"]*)))?"""
_PARAMETER_REGEX = re.compile(_PARAMETER)
_LINK_REGEX = re.compile(
    rf"<(?P<target>[^>]*)>(?P<parameters>(?:{re.sub('[?]P<[a-z]+>', '?:', _PARAMETER)})*)"
)


def next_link(header: str) -> str | None:
    """Return the target of the link with the relation ``next``, in any case; None if there is none."""
    for link in _LINK_REGEX.finditer(header):
        relations = (
            next(filter(None, parameter.group("quoted", "single", "plain")), "")
            for parameter in _PARAMETER_REGEX.finditer(link["parameters"])
            if parameter["name"].lower() == "rel"
        )
        if "next" in next(relations, "").lower().split():
            return link["target"].strip()
    return None
