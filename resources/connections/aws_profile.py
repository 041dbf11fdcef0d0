"""Credentials of a profile of the AWS configuration: keys, a role or single sign-on."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from partitions.errors import ConfigurationError, shorten_to_line

_REMEMBERED = 24
"""The most secrets of profiles that are remembered, to keep rotated ones out of messages, too."""

_secrets: list[str] = []


@dataclass(frozen=True)
class ProfileCredentials:
    """The credentials of a profile as they are now.

    Attributes:
        region: of the profile; None if it names none.
    """

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(repr=False)
    region: str | None


def profile_credentials(profile: str) -> ProfileCredentials:
    """Return the credentials of a profile; temporary ones are renewed before they end.

    Raises:
        ConfigurationError: there is no such profile, or it has no credentials.
    """
    from botocore.exceptions import BotoCoreError

    try:
        session = _session(profile)
        credentials = session.get_credentials()
        keys = credentials.get_frozen_credentials() if credentials is not None else None
    except BotoCoreError as error:
        raise ConfigurationError(
            f"expected the AWS profile {profile} with credentials, found: {shorten_to_line(str(error)).rstrip('.')}."
            f" `aws configure --profile {profile}` or `aws sso login --profile {profile}` makes them"
        ) from None
    if keys is None or not keys.access_key or not keys.secret_key:
        raise ConfigurationError(
            f"expected the AWS profile {profile} with credentials, found none:"
            f" `aws configure --profile {profile}` writes them"
        )
    _remember(keys.secret_key, keys.token)
    return ProfileCredentials(keys.access_key, keys.secret_key, keys.token, session.region_name)


def secrets_of_profiles() -> list[str]:
    """Return the secrets that profiles have given to this process, to keep them out of messages."""
    return list(_secrets)


@lru_cache(maxsize=8)
def _session(profile: str) -> Any:
    """Return the session of a profile, which renews its credentials."""
    import boto3

    return boto3.session.Session(profile_name=profile)


def _remember(*secrets: str | None) -> None:
    _secrets.extend(secret for secret in secrets if secret and secret not in _secrets)
    del _secrets[:-_REMEMBERED]
