"""Actors that keep shards in memory and compute sums over them.

Every answer is per shard, and the driver adds them in the order of shards: a sum does not depend
on the number of actors, on which actor has which shard, or on shards that were moved or lost.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from podium.cluster.assignment import balance_by_bytes, find_move, reassign
from podium.cluster.connection import Cluster, prepare_worker
from podium.cluster.sources import ShardSource
from podium.data import Dataset
from podium.errors import PodiumError
from podium.kernels import Doubles
from podium.losses import Loss
from podium.measures.registry import Measure
from podium.rankers.empirical_risk import block_risk, block_scores, require_complete
from podium.rankers.preconditioner import WithinQueryScatter, within_query_scatter
from podium.rankers.validation_monitor import value_sums

_Answer = TypeVar("_Answer")

_PATIENCE = 3
"""A worker must lag behind this many times in a row before a shard is taken from it."""


class ShardActor:
    """Keeps some shards of a set in memory and computes answers per shard; runs in a process."""

    def __init__(self, source: ShardSource, threads: int, modules: Sequence[str]) -> None:
        prepare_worker(threads, modules)
        self._source = source
        self._clock: Callable[[], float] = time.perf_counter
        self._loaded: dict[int, list[Dataset]] = {}

    def answer(self, shards: Sequence[int], what: str, *arguments: Any) -> tuple[Any, float]:
        """Compute an answer for each shard, loading missing ones; also return the seconds taken."""
        for shard in shards:
            if shard not in self._loaded:
                self._loaded[shard] = self._read(shard)
        start = self._clock()
        answers = {shard: getattr(self, f"_{what}")(shard, *arguments) for shard in shards}
        return answers, self._clock() - start

    def release(self, shards: Sequence[int]) -> None:
        """Drop shards that have been moved to another worker."""
        for shard in shards:
            self._loaded.pop(shard, None)

    def _read(self, shard: int) -> list[Dataset]:
        blocks = list(self._source.blocks(shard))
        for block in blocks:
            require_complete(block)
        return blocks

    def _risk(self, shard: int, loss: Loss, weights: Doubles) -> tuple[float, Doubles]:
        parts = [block_risk(loss, weights, block) for block in self._loaded[shard]]
        return sum(value for value, _ in parts), sum((slope for _, slope in parts[1:]), parts[0][1])

    def _scatter(self, shard: int, loss: Loss) -> WithinQueryScatter:
        first, *others = (within_query_scatter(loss, block) for block in self._loaded[shard])
        return sum(others, start=first)

    def _measured(self, shard: int, measure: str | Measure, weights: Doubles) -> Doubles:
        first, *others = (
            value_sums(measure, block, block_scores(weights, block))
            for block in self._loaded[shard]
        )
        return sum(others, start=first)


class ShardActors:
    """The actors of a shard set; the shards of a lost actor are reassigned to the others.

    Args:
        source: The set.
        cluster: Where the actors live.
        idle: Whether they work only while others wait, and need no processors.
    """

    def __init__(self, source: ShardSource, cluster: Cluster, *, idle: bool = False) -> None:
        self._ray = cluster.connect()
        self._cluster = cluster
        self._processors = 0 if idle else cluster.cpus_per_worker
        self._source = source
        self._sizes = [shard.bytes for shard in source.shards]
        self._actors: dict[int, Any] = {}
        self._shares: dict[int, list[int]] = {}
        self._lags = 0
        self.lost = 0
        """How many actors were lost so far."""
        self.moved = 0
        """How many shards were moved from slow actors to fast ones."""
        self._start()

    def _start(self) -> None:
        workers = min(self._cluster.workers, len(self._sizes))
        if self._processors:
            workers = min(workers, self._cluster.capacity)  # more would wait forever
        first = max(self._shares, default=-1) + 1
        options = {"num_cpus": self._processors, "scheduling_strategy": "SPREAD"}
        remote = self._ray.remote(ShardActor).options(**options)
        arguments = (self._source, self._cluster.cpus_per_worker, self._cluster.modules)
        self._shares = {}
        for number, share in enumerate(balance_by_bytes(self._sizes, workers), start=first):
            self._shares[number] = share
            self._actors[number] = remote.remote(*arguments)

    def gather(self, what: str, *arguments: Any, shards: Sequence[int] | None = None) -> list[Any]:
        """Return the answers for all shards, or for some, in the order of shards.

        An answer depends on nothing but its arguments, so asking again after a loss gives the
        answer of the lost worker.
        """
        requested = range(len(self._sizes)) if shards is None else shards
        missing = set(requested)
        answers: dict[int, Any] = {}
        seconds: dict[int, float] = {}
        in_vain = 0
        lost = (self._ray.exceptions.RayActorError, self._ray.exceptions.ObjectLostError)
        while missing:
            asked = {}
            for number, share in self._shares.items():
                pending = [shard for shard in share if shard in missing]
                if pending:
                    asked[number] = self._actors[number].answer.remote(pending, what, *arguments)
            for number, reference in asked.items():
                try:
                    shard_answers, seconds[number] = self._ray.get(reference)
                    answers |= shard_answers
                    missing -= shard_answers.keys()
                    in_vain = 0
                except lost as error:
                    in_vain += 1
                    _refuse_hopeless(error, in_vain, len(self._sizes))
                    self._lose(number)
                except self._ray.exceptions.RayTaskError as error:
                    if isinstance(error.cause, PodiumError):
                        raise error.cause from None
                    raise
        if len(requested) == len(self._sizes):
            self._rebalance(seconds)
        return [answers[shard] for shard in requested]

    def total(
        self,
        what: str,
        *arguments: Any,
        add: Callable[[Any, Any], _Answer],
        at_once: int | None = None,
    ) -> _Answer:
        """Add up the answers for all shards, in the order of shards.

        Args:
            what: The question.
            arguments: Its arguments.
            add: Adds two answers.
            at_once: Keep at most this many answers in memory, where one is large.
        """
        every = range(len(self._sizes))
        step = at_once or len(every)
        parts = (
            part
            for first in every[::step]
            for part in self.gather(what, *arguments, shards=every[first : first + step])
        )
        answer: _Answer = functools.reduce(add, parts)
        return answer

    def close(self) -> None:
        """End the actors."""
        for actor in self._actors.values():
            self._ray.kill(actor)
        self._actors, self._shares = {}, {}

    def _lose(self, number: int) -> None:
        orphans = self._shares.pop(number)
        del self._actors[number]
        self.lost += 1
        if not self._shares:
            self._shares = {number: orphans}  # so that new ones get new numbers
            self._start()
            return
        for other, shards in reassign(self._shares, orphans, self._sizes).items():
            self._shares[other] += shards

    def _rebalance(self, seconds: dict[int, float]) -> None:
        present = {number: value for number, value in seconds.items() if number in self._shares}
        move = find_move(self._shares, present, self._sizes)
        self._lags = self._lags + 1 if move else 0
        if move is None or self._lags < _PATIENCE:
            return
        shard, slow, quick = move
        self._shares[slow].remove(shard)
        self._shares[quick].append(shard)
        self._actors[slow].release.remote([shard])
        self._lags = 0
        self.moved += 1


def _refuse_hopeless(error: Exception, in_vain: int, shards: int) -> None:
    """Raise an error if workers cannot start or keep dying: other losses are recovered from."""
    if getattr(error, "actor_init_failed", False):
        raise PodiumError(
            f"a worker could not start ({str(error).strip().splitlines()[-1]})",
            hint="Are all modules passed to the cluster installed on every machine?",
        ) from error
    if in_vain > max(10, 2 * shards):
        raise PodiumError(
            f"workers died {in_vain} times without an answer",
            hint="Do they have enough memory for their shards? With more workers, each has fewer.",
        ) from error
