"""Bearer tokens: the service knows their SHA-256 only.

A token file has one line per token: its digest in hexadecimal, the name of who uses it and, if
it may load and unload models, the word ``admin``::

    # printf %s "$TOKEN" | sha256sum
    9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 search-frontend
    60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752 deployment admin
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from podium.data.files import read_bounded
from podium.errors import DataError

_LONGEST_TOKEN = 1024
_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class Token:
    """A token that is accepted: its digest, its user, and whether it may change models."""

    digest: bytes
    user: str
    admin: bool


class Tokens:
    """The tokens of a service."""

    def __init__(self, tokens: tuple[Token, ...]) -> None:
        self._tokens = tokens

    @classmethod
    def read(cls, path: str) -> Tokens:
        """Read a token file; a DataError that names the line if one is malformed."""
        try:
            content = read_bounded(path, _MOST_BYTES).decode()
        except UnicodeError as error:
            raise DataError(f"is not UTF-8 text ({error})", path=path, hint="Check it.") from error
        tokens = []
        for number, line in enumerate(content.splitlines(), 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            try:
                digest = bytes.fromhex(words[0])
            except ValueError:
                digest = b""
            if len(digest) != 32 or len(words) not in (2, 3) or words[2:] not in ([], ["admin"]):
                raise DataError(
                    "is not the SHA-256 of a token, a name and perhaps the word admin",
                    path=path, line=number, hint="Run: printf %s \"$TOKEN\" | sha256sum",
                )  # fmt: skip
            tokens.append(Token(digest, words[1], len(words) == 3))
        if not tokens:
            raise DataError("has no token", path=path, hint="Add a line per token.")
        return cls(tuple(tokens))

    def find(self, authorization: bytes | None) -> Token | None:
        """Return the token of an ``Authorization`` header, or None if it is not accepted."""
        scheme, _, secret = (authorization or b"").partition(b" ")
        if scheme.lower() != b"bearer" or not 0 < len(secret) <= _LONGEST_TOKEN:
            return None
        digest = hashlib.sha256(secret).digest()
        match = None
        for token in self._tokens:  # all of them: the time does not tell which one is near
            if hmac.compare_digest(token.digest, digest):
                match = token
        return match
