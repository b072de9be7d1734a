"""Keeping a task while a program works on it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from podium.studio.client.values import StudioError


class LeaseRenewer:
    """A thread that renews a task every few seconds, in a ``with`` block.

    Args:
        renew: Renews the task with a token.
        seconds: How often.

    Attributes:
        token: The task at hand; None if there is none.
    """

    def __init__(self, renew: Callable[[str], object], seconds: float) -> None:
        self.token: str | None = None
        self._renew = renew
        self._seconds = seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="podium-renewing", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._seconds):
            token = self.token
            if token is not None:
                try:
                    self._renew(token)
                except StudioError:
                    continue  # an answer that comes late is kept, and counts if nobody has the task
