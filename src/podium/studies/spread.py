"""Many independent calls over processes, one a core."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, TypeAlias

from podium.threads import thread_count

Call: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function of a module, and its arguments."""

_ONE_THREAD = {"PODIUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def spread(calls: Sequence[Call]) -> Iterator[tuple[int, Any]]:
    """The number and the result of each call, as they are done.

    Example:
        >>> sorted(spread([(abs, (-2,)), (abs, (3,))]))
        [(0, 2), (1, 3)]
    """
    workers = min(thread_count(), len(calls))
    if workers <= 1:
        for number, (function, arguments) in enumerate(calls):
            yield number, function(*arguments)
        return
    with _one_thread_each():
        pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
        try:
            futures = {
                pool.submit(function, *arguments): number
                for number, (function, arguments) in enumerate(calls)
            }
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """A process a core, each with one thread: many small fits need no threads of their own."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(_ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
