"""The timer of the judging tools, which an assessor can stop for a break."""

from __future__ import annotations

import time
from collections.abc import Callable


class Stopwatch:
    """Counts the seconds of one judgment, pauses left out.

    Args:
        clock: Tells the time in seconds.

    Example:
        >>> times = iter([0.0, 4.0, 64.0, 65.5])
        >>> watch = Stopwatch(lambda: next(times))  # starts at 0
        >>> watch.pause()  # at 4, for a minute
        >>> watch.resume()  # at 64
        >>> watch.lap()  # at 65.5
        5.5
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counted = 0.0
        self._since: float | None = clock()

    @property
    def running(self) -> bool:
        """Whether time counts at the moment."""
        return self._since is not None

    def pause(self) -> None:
        """Stop counting; does nothing if it is stopped."""
        if self._since is not None:
            self._counted += self._clock() - self._since
            self._since = None

    def resume(self) -> None:
        """Count again; does nothing if it counts."""
        if self._since is None:
            self._since = self._clock()

    def lap(self) -> float:
        """The seconds counted since the last lap; the next lap starts now."""
        now = self._clock()
        seconds = self._counted + (0.0 if self._since is None else now - self._since)
        self._counted, self._since = 0.0, now
        return seconds
