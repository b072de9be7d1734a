"""``sweep``: a grid of tasks, on this machine or on a cluster, that can be stopped at any time."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from multiprocessing import get_context
from typing import Any, TypeAlias

from podium.cluster.connection import ENGINE_THREADS, Cluster, prepare_worker, remote_task
from podium.cluster.results_table import ResultsTable, TaskResult, task_key
from podium.cluster.shard_tasks import run_tasks
from podium.errors import PodiumError

Work: TypeAlias = Callable[..., Mapping[str, Any]]
"""A task: takes its parameters by name, returns plain values by name."""

SAVE_SECONDS = 1.0
"""Results are written to the table at most this often while others run."""

_DIED = "its process died"
_MOST_DEATHS = 3
"""After so many, and no other result, processes cannot work at all."""
_AHEAD = 16
"""Tasks in flight for each worker, so that short tasks need not wait for the driver."""


@dataclass(frozen=True)
class SweepProgress:
    """How far a sweep is.

    Attributes:
        done: Tasks with a result, those of earlier runs included.
        failed: Tasks of this run that raised an error.
        total: All tasks.
        seconds_left: Until the expected end; None before the first result.
        last: The result that came last, if one did.
    """

    done: int
    failed: int
    total: int
    seconds_left: float | None
    last: TaskResult | None


def grid(**choices: Sequence[Any]) -> list[dict[str, Any]]:
    """Every combination of some choices.

    Example:
        >>> grid(k=[1, 2], fold=[0])
        [{'k': 1, 'fold': 0}, {'k': 2, 'fold': 0}]
    """
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


def sweep(
    work: Work,
    tasks: Iterable[Mapping[str, Any]],
    *,
    results: str | os.PathLike[str] | None = None,
    progress: Callable[[SweepProgress], None] | None = None,
    processes: int = 1,
    cluster: Cluster | None = None,
) -> list[TaskResult]:
    """Run a function once for each set of parameters that has no result yet.

    Results are kept in one Parquet table: Ctrl-C writes what came before it, and a crash costs the
    results of the last second, or of ten times as long as the table takes to write. The same call
    goes on with the tasks that the table lacks. A task that raises an error, or ends its process,
    does not stop the others; it is tried again by the next run.

    Args:
        work: The function; it gives a dictionary of plain values. For other processes it must be
            one that they can import.
        tasks: The parameters of each task, plain values by name; see ``grid``.
        results: The table's path or URL; None keeps nothing.
        progress: Called after every result, with the expected time left.
        processes: Without a cluster: how many processes of this machine work. One is this process.
        cluster: Where to work.

    Returns:
        The result of every task, in the order of tasks. If tasks failed, PodiumError is raised
        when all others are done.

    Example:
        >>> def square(x):
        ...     return {"y": x * x}
        >>> [one.values["y"] for one in sweep(square, grid(x=[1, 2, 3]))]
        [1, 4, 9]
    """
    keys_and_tasks = [(task_key(task), dict(task)) for task in tasks]
    by_key = dict(keys_and_tasks)
    table = ResultsTable(results)
    waiting = [key for key in by_key if not table.done(key)]
    report = _Reporter(len(by_key), len(by_key) - len(waiting), progress)
    if cluster is not None:
        stream = _on_cluster(work, [by_key[key] for key in waiting], cluster)
    elif processes > 1:
        stream = _in_processes(work, [by_key[key] for key in waiting], processes)
    else:
        stream = ((index, run_task(work, by_key[key])) for index, key in enumerate(waiting))
    saved = time.monotonic()
    unsaved = 0
    try:
        for update in stream:
            if update is not None:
                index, result = update
                table.add(waiting[index], result)
                unsaved += 1
                report(result)
            # The longer a table takes to write, the less often it is written.
            if unsaved and time.monotonic() - saved >= SAVE_SECONDS:
                start = time.monotonic()
                table.save()
                unsaved = 0
                saved = time.monotonic() + 10 * (time.monotonic() - start)
    finally:
        if unsaved:
            table.save()
    task_results = [table.results[key] for key, _ in keys_and_tasks]
    failed = [outcome for outcome in task_results if outcome.error is not None]
    if failed:
        raise PodiumError(
            f"{len(failed)} of {len(task_results)} tasks failed, the first with {failed[0].error}",
            hint="The others are done; fix the cause, then run the sweep again.",
        )
    return task_results


def run_task(
    work: Work, parameters: dict[str, Any], threads: int = 0, modules: Sequence[str] = ()
) -> TaskResult:
    """Run one task; an exception it raises is recorded in its result."""
    start = time.perf_counter()
    try:
        if threads:
            prepare_worker(threads, modules)
        # Plain values only, as they will be in the table.
        values = json.loads(task_key(dict(work(**parameters))))
        return TaskResult(parameters, values, time.perf_counter() - start)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        return TaskResult(parameters, {}, time.perf_counter() - start, text)


class _Reporter:
    """Counts results and estimates the time left."""

    def __init__(
        self, total: int, done: int, progress: Callable[[SweepProgress], None] | None
    ) -> None:
        self._total, self._before, self._progress = total, done, progress
        self._came = self._failed = 0
        self._start = time.monotonic()
        if progress is not None:
            progress(SweepProgress(done, 0, total, None if done < total else 0.0, None))

    def __call__(self, result: TaskResult) -> None:
        self._came += 1
        self._failed += result.error is not None
        if self._progress is not None:
            each = (time.monotonic() - self._start) / self._came
            left = each * (self._total - self._before - self._came)
            done = self._before + self._came - self._failed
            self._progress(SweepProgress(done, self._failed, self._total, left, result))


def _on_cluster(
    work: Work, tasks: Sequence[dict[str, Any]], cluster: Cluster
) -> Iterator[tuple[int, TaskResult] | None]:
    ray = cluster.connect()
    remote = remote_task(run_task).options(**cluster.task_options())
    shared = ray.put(work)
    arguments = (cluster.cpus_per_worker, cluster.modules)

    def launch(index: int) -> Any:
        return remote.remote(shared, tasks[index], *arguments)

    # Tasks may write files: none runs twice unless its machine is lost.
    yield from run_tasks(
        ray,
        launch,
        range(len(tasks)),
        at_once=_AHEAD * cluster.workers,
        again=False,
        wake=SAVE_SECONDS,
        dead=lambda index: TaskResult(tasks[index], {}, 0.0, "its process died repeatedly"),
    )


def _in_processes(
    work: Work, tasks: Sequence[dict[str, Any]], processes: int
) -> Iterator[tuple[int, TaskResult] | None]:
    """Run tasks in processes with one thread each, which suits many small fits."""
    start = partial(ProcessPoolExecutor, mp_context=get_context("spawn"))
    pool = start(processes)
    waiting = deque(range(len(tasks)))
    flights: dict[Future[TaskResult], int] = {}
    came_back = died = 0
    try:
        with _one_thread():
            while waiting or flights:
                is_broken = False
                try:
                    while waiting and len(flights) < 4 * processes:
                        future = pool.submit(run_task, work, tasks[waiting[0]])
                        flights[future] = waiting.popleft()
                except BrokenProcessPool:
                    is_broken = True
                ready, _ = wait(flights, timeout=SAVE_SECONDS, return_when=FIRST_COMPLETED)
                if not ready:
                    yield None
                for future in ready:
                    if isinstance(future.exception(), BrokenProcessPool):
                        is_broken = True
                    else:
                        came_back += 1
                        yield flights.pop(future), future.result()
                if is_broken:
                    pool.shutdown()
                    for index in sorted(flights.values()):
                        result = _alone(partial(start, 1), work, tasks[index])
                        died += result.error == _DIED
                        came_back += result.error != _DIED
                        if died >= _MOST_DEATHS and not came_back:
                            raise PodiumError(
                                "every process of the sweep dies before it has a result",
                                hint="Define the function in a module that other processes can "
                                "import, and guard scripts by if __name__ == '__main__'.",
                            )
                        yield index, result
                    flights.clear()
                    pool = start(processes)
    finally:
        pool.shutdown(cancel_futures=True)


def _alone(
    start: Callable[[], ProcessPoolExecutor], work: Work, task: dict[str, Any]
) -> TaskResult:
    """Run a task again in a process of its own: nobody knows which of several ended theirs."""
    with start() as pool:
        try:
            return pool.submit(run_task, work, task).result()
        except BrokenProcessPool:
            return TaskResult(task, {}, 0.0, _DIED)


@contextmanager
def _one_thread() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in ENGINE_THREADS}
    os.environ.update(dict.fromkeys(ENGINE_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
