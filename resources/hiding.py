"""Keep secrets out of texts for people, in each form in which a library may quote them."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

SHORTEST = 4
"""Shorter values stay: they may be parts of any word."""


def without_secrets(text: str, secrets: Iterable[str], instead: str) -> str:
    """Return a text with secrets replaced, also where they are escaped or in Base64.

    Args:
        text: for people.
        secrets: values of fewer than four letters stay.
        instead: what stands there then.
    """
    forms = {form for secret in secrets if len(secret) >= SHORTEST for form in _forms(secret)}
    for form in sorted(forms, key=len, reverse=True):  # so that none is hidden only in part
        text = text.replace(form, instead)
    return text


def _forms(secret: str) -> Iterable[str]:
    escaped = (quote(secret, safe=""), quote(secret), quote_plus(secret))
    data = secret.encode(errors="surrogateescape")
    encoded = [base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()]
    return (
        secret,
        *escaped,
        *(form.replace("%", "%25") for form in escaped),  # an address within an address
        *(_lower_escapes(form) for form in escaped),
        json.dumps(secret)[1:-1],
        repr(secret)[1:-1],
        html.escape(secret),
        html.escape(secret, quote=False),
        *encoded,
        *(form.rstrip("=") for form in encoded),
    )


def _lower_escapes(form: str) -> str:
    """Return percent escapes in small letters, as some clients write them."""
    first, *rest = form.split("%")
    return "%".join([first, *(part[:2].lower() + part[2:] for part in rest)])
