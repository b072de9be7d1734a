"""Tokens: time-ordered UUIDs for leases, and secrets for sessions and links."""

from __future__ import annotations

import hashlib
import secrets
import sys
from uuid import UUID

if sys.version_info >= (3, 14):
    from uuid import uuid7
else:
    from uuid_utils.compat import uuid7


def new_token() -> UUID:
    """A UUID that sorts by creation time (version 7, RFC 9562).

    An index of such UUIDs grows at its end; random ones would touch all its pages. They identify
    things and are not secrets.

    Example:
        >>> one, other = new_token(), new_token()
        >>> one.version, one != other
        (7, True)
    """
    return uuid7()


def new_secret() -> str:
    """A random secret that nobody can guess.

    Example:
        >>> len(new_secret()) >= 43
        True
    """
    return secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """The digest of a secret, for the database: it cannot be used to sign in.

    Example:
        >>> len(digest("open sesame"))
        64
    """
    return hashlib.sha256(secret.encode()).hexdigest()
