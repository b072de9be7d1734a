"""How many threads Podium's own loops use, and the pool they run in."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from podium.errors import ArgumentError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def thread_count() -> int:
    """Number of threads: ``PODIUM_THREADS`` if set, else the cores available to this process."""
    value = os.environ.get("PODIUM_THREADS", "")
    if not value:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if not value.isdecimal() or len(value) > 6 or int(value) < 1:
        raise ArgumentError(
            f"PODIUM_THREADS is {value[:20]!r}. Set it to an integer from 1 to 999999."
        )
    return int(value)


_NAME = "podium"

_MOST_RANGES = 256
"""Enough for several ranges per thread on the largest machines."""

# Below some thousand rows the overhead of a thread costs more than the work.
_LEAST_ROWS = 4096
# A range costs some calls from Python: at this number of rows, a hundredth of the work.
_LONG_RANGE = 1 << 16
_RANGES_PER_THREAD = 4


@lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix=_NAME)


# A forked process inherits the pool but not its threads, and would wait for them forever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)


def ordered_map(
    function: Callable[[_Item], _Result], items: Iterable[_Item], *, ahead: int = 1
) -> Iterator[_Result]:
    """Map in threads and yield in order, with at most ``ahead`` results waiting per thread.

    Unlike ``Executor.map`` it takes an item only when there is space for it, so a stream of any
    length passes through in bounded memory. If taking an item fails, the error comes in its turn
    too: after the results, or the error, of the items before it.

    Example:
        >>> list(ordered_map(str.upper, iter(["a", "b", "c"])))
        ['A', 'B', 'C']
    """
    threads = thread_count()
    pool = _pool(threads)
    waiting: deque[Future[_Result]] = deque()
    rest = iter(items)
    failure: Exception | None = None
    try:
        while True:
            try:
                item = next(rest)
            except StopIteration:
                break
            except Exception as error:
                failure = error
                break
            waiting.append(pool.submit(function, item))
            if len(waiting) > threads * ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
        if failure is not None:
            raise failure
    finally:
        for future in waiting:
            future.cancel()


def over_queries(task: Callable[[int, int], _Result], offsets: NDArray[np.int64]) -> list[_Result]:
    """Run ``task(first, last)`` over ranges of queries with about the same number of rows.

    The ranges depend on the queries alone, so sums over them are the same to the last bit
    whatever the number of threads.

    Example:
        >>> over_queries(lambda first, last: last - first, np.array([0, 2, 4]))
        [2]
    """
    return _over_ranges(task, offsets, _LEAST_ROWS)


def for_each_query(task: Callable[[int, int], None], offsets: NDArray[np.int64]) -> None:
    """Run ``task(first, last)`` over ranges of queries, where each query has its own result.

    The ranges do not change such results, so they are long, unless that leaves threads without
    work. What is added up over ranges needs ``over_queries``.
    """
    even = int(offsets[-1]) // (_RANGES_PER_THREAD * thread_count())
    _over_ranges(task, offsets, min(max(even, _LEAST_ROWS), _LONG_RANGE))


def _over_ranges(
    task: Callable[[int, int], _Result], offsets: NDArray[np.int64], least_rows: int
) -> list[_Result]:
    queries, rows = len(offsets) - 1, int(offsets[-1])
    # Several ranges per thread even out queries of unequal cost.
    parts = max(1, min(_MOST_RANGES, rows // least_rows, queries))
    if parts == 1:
        return [task(0, queries)]
    bounds = np.searchsorted(offsets, np.linspace(0, rows, parts + 1)[1:-1])
    edges = np.unique(np.concatenate(([0], bounds, [queries]))).tolist()
    # A thread of the pool must not wait for others: all of them might be waiting.
    if threading.current_thread().name.startswith(_NAME):
        return list(map(task, edges[:-1], edges[1:]))
    return list(_pool(thread_count()).map(task, edges[:-1], edges[1:]))
