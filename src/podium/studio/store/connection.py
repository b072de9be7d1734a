"""A connection to PostgreSQL that is given up when the server does not answer.

The server's own limits (``statement_timeout``) do not help when the server itself hangs, and
neither do those of TCP while its kernel acknowledges what arrives.
"""

from __future__ import annotations

import time
from typing import Any

import psycopg
from psycopg.abc import RV, PQGen
from psycopg.rows import TupleRow

_LOOK_EVERY = 0.1
_NOT_READY = 0
"""What psycopg sends a waiting operation when there is nothing to read or write yet."""


class DatabaseTimeoutError(psycopg.OperationalError):
    """The database did not answer in time; asking it again at once would only wait again."""


class TimedConnection(psycopg.Connection[TupleRow]):
    """A connection whose operations end in time.

    Attributes:
        timeout_seconds: How long an operation may take; None for as long as it needs.
    """

    timeout_seconds: float | None = None

    def wait(
        self,
        gen: PQGen[RV],
        interval: float = _LOOK_EVERY,
        *more: Any,  # noqa: ANN401 - psycopg 3.3 has more of them than 3.2
        **named: Any,  # noqa: ANN401
    ) -> RV:
        """Wait for an operation."""
        if self.timeout_seconds is None:
            return super().wait(gen, interval, *more, **named)
        try:
            limited = _with_deadline(gen, self.timeout_seconds)
            return super().wait(limited, interval, *more, **named)
        except DatabaseTimeoutError:
            self.close()  # whatever it was doing, nobody can tell what state it is in
            raise


def _with_deadline(gen: PQGen[RV], seconds: float) -> PQGen[RV]:
    end = time.monotonic() + seconds
    try:
        waiting_for = next(gen)
        while True:
            ready = yield waiting_for
            if ready == _NOT_READY and time.monotonic() > end:
                raise DatabaseTimeoutError(f"the database did not answer in {seconds:g} seconds")
            waiting_for = gen.send(ready)
    except StopIteration as ended:
        result: RV = ended.value
        return result
