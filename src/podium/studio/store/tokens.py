"""Random names: of leases, in the order they were made, and of sessions, which nobody can guess."""

from __future__ import annotations

import hashlib
import secrets
import time
from uuid import UUID


def new_token() -> UUID:
    """A random UUID that sorts by the time it was made (version 7, RFC 9562).

    An index of them grows at its end; wholly random ones would touch all its pages.

    Example:
        >>> one, other = new_token(), new_token()
        >>> one.version, one != other
        (7, True)
    """
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds << 80) | secrets.randbits(80)
    value = value & ~(0xF000 << 64) & ~(0xC000 << 48)
    return UUID(int=value | (0x7000 << 64) | (0x8000 << 48))


def new_secret() -> str:
    """Text that nobody can guess.

    Example:
        >>> len(new_secret()) >= 43
        True
    """
    return secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """What is kept of a secret: who reads the database cannot use it.

    Example:
        >>> len(digest("open sesame"))
        64
    """
    return hashlib.sha256(secret.encode()).hexdigest()
