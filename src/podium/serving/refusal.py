"""Requests that are not answered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec


class Refusal(Exception):  # noqa: N818 - an answer of the service, not a failure of it
    """A request that is refused, with the status and the reason that the client gets."""

    def __init__(self, status: int, reason: str) -> None:
        self.status = status
        self.reason = reason
        super().__init__(reason)


@contextmanager
def decoding() -> Iterator[None]:
    """Turn the errors of msgspec's decoders into refusals."""
    try:
        yield
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refusal(400, str(error)) from None
    except RecursionError:
        raise Refusal(400, "the JSON is nested too deeply") from None
