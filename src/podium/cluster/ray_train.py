"""Trees and neural scorers: Ray Train starts the workers, the engines' own learners unite them.

Each worker runs the loop of one process on whole queries of its own. A lost worker ends the
attempt; Ray Train starts another with the workers there are, from the latest checkpoint.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from podium.cluster.allreduce import STATE, Exchange, UnderRayTrain, report
from podium.cluster.assignment import by_bytes
from podium.cluster.checkpoints import claim, facts_of
from podium.cluster.connection import Cluster, prepare_worker
from podium.cluster.sources import ShardSource
from podium.data import Dataset, concat_datasets
from podium.data.columns import are_numbers
from podium.errors import ArgumentError, PodiumError
from podium.rankers import NeuralRanker, TreeRanker
from podium.rankers.base import Progress
from podium.rankers.storage import Archive, read_archive

_WAIT_SECONDS = 0.3

_LOSSES = 20
"""Workers lost in one fit; more are taken for a fit that ends its workers itself."""


@dataclass(frozen=True)
class _Job:
    """All that a worker must know."""

    ranker: TreeRanker | NeuralRanker
    train: ShardSource
    validation: ShardSource | None
    exchange: Any
    seconds: float
    threads: int
    modules: tuple[str, ...]

    @property
    def engine(self) -> str:
        return self.ranker.engine if isinstance(self.ranker, TreeRanker) else "torch"


def fit_under_ray_train(
    ranker: TreeRanker | NeuralRanker,
    train: ShardSource,
    validation: ShardSource | None,
    progress: Progress | None,
    checkpoints: str | None,
    checkpoint_seconds: float,
    cluster: Cluster,
) -> None:
    """Fit trees or a neural scorer whose features are known already."""
    ray = cluster.connect()
    from ray.train import CheckpointConfig, FailureConfig, RunConfig, ScalingConfig

    here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=False
    )
    if checkpoints is None and cluster.machines > 1:
        raise ArgumentError(
            "trees and networks need checkpoints where there are several machines",
            hint="Give checkpoints= a folder or URL that all of them reach.",
        )
    if checkpoints is not None:
        claim(checkpoints, facts_of(ranker, train, validation))
    queries = [each.manifest.queries for each in (train, validation) if each is not None]
    workers = min(cluster.workers, *queries)
    options = {"num_cpus": 0, "scheduling_strategy": here, "max_concurrency": 1000 + 4 * workers}
    exchange = ray.remote(Exchange).options(**options).remote()
    job = _Job(
        ranker,
        train,
        validation,
        exchange,
        checkpoint_seconds,
        cluster.cpus_per_worker,
        cluster.modules,
    )
    elastic: Any = (1, workers) if workers > 1 else 1
    with (
        _ended(ray, exchange),
        _storage(checkpoints) as folder,
        _following(ray, exchange, progress),
        _interrupts_given_back(),
    ):
        trainer = _trainer(job.engine)(
            _work,
            train_loop_config={"job": job},
            scaling_config=ScalingConfig(
                num_workers=elastic,
                resources_per_worker={"CPU": cluster.cpus_per_worker},
                placement_strategy="SPREAD",
            ),
            run_config=RunConfig(
                name="podium",
                storage_path=folder,
                failure_config=FailureConfig(max_failures=_LOSSES),
                checkpoint_config=CheckpointConfig(num_to_keep=2),
            ),
        )
        try:
            result = trainer.fit()
        finally:
            refused = ray.get(exchange.refused.remote())
            if refused is not None:
                raise refused
        with result.checkpoint.as_directory() as found:
            archive = read_archive(BytesIO((Path(found) / STATE).read_bytes()))
    if archive.kind != "fitted":
        raise PodiumError("a fit ended before its last step", hint="Fit again.")
    ranker._restore(archive)


def _work(config: dict[str, Any]) -> None:
    """What every worker runs.

    Ray Train makes another attempt after any error, and cannot tell a lost machine from labels
    that are no numbers. So errors go to the exchange; where one would come again, the next attempt
    ends at once, and the driver raises it.
    """
    import ray
    from ray.train.collective import broadcast_from_rank_zero

    job: _Job = config["job"]
    attempt = str(broadcast_from_rank_zero(os.urandom(8).hex()))
    if ray.get(job.exchange.begin.remote(attempt)) is not None:
        return
    try:
        _fit_share(job, attempt)
    except Exception as error:
        text = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        final = error if isinstance(error, PodiumError) else None
        ray.get(job.exchange.failed.remote(attempt, text, final))
        raise


def _fit_share(job: _Job, attempt: str) -> None:
    import ray
    from ray import train
    from sklearn.base import clone

    prepare_worker(job.threads, job.modules)
    context = train.get_context()
    rank, size = context.get_world_rank(), context.get_world_size()
    own = _share(job.train, rank, size)
    held_out = None if job.validation is None else _share(job.validation, rank, size)
    ranker = clone(job.ranker)
    ranker.feature_names_ = job.train.manifest.feature_names
    ranker.n_features_in_ = len(ranker.feature_names_)
    ranker._named = not are_numbers(ranker.feature_names_)
    together = UnderRayTrain(
        attempt,
        job.exchange,
        by_torch=job.engine == "torch",
        parameters=_parameters(job.engine),
        seconds=job.seconds,
    )

    def tell(step: int, loss: float, value: float | None) -> None:
        if rank == 0:
            ray.get(job.exchange.tell.remote(step, loss, value))

    before = together.saved()
    if before is None or before.kind != "fitted":  # else all was done but the driver was lost
        ranker._fit(own, held_out, tell, together)
        report(rank, lambda: _fitted(ranker), -1)


def _fitted(ranker: TreeRanker | NeuralRanker) -> Archive:
    archive = ranker._archive()
    return Archive("fitted", archive.facts, archive.arrays, archive.blobs)


def _share(source: ShardSource, rank: int, size: int) -> Dataset:
    """The queries of one worker: whole shards, or single queries where shards are too few."""
    if len(source.shards) < size:
        return concat_datasets(list(_every(source, rank, size)))
    shares = by_bytes([shard.bytes for shard in source.shards], size)
    return concat_datasets(
        [block for place in sorted(shares[rank]) for block in source.blocks(place)]
    )


def _every(source: ShardSource, first: int, step: int) -> Iterator[Dataset]:
    """One of so many queries, of each block as it comes: nobody holds the whole set."""
    before = 0
    for place in range(len(source.shards)):
        for block in source.blocks(place):
            own = np.arange((first - before) % step, len(block), step)
            before += len(block)
            if len(own):
                yield block.select(own)


def _parameters(engine: str) -> dict[str, Any]:
    """What an engine is told of the other workers; XGBoost and PyTorch know from Ray Train."""
    if engine != "lightgbm":
        return {}
    from ray.train.lightgbm import get_network_params

    return {**get_network_params(), "tree_learner": "data", "pre_partition": True}


def _trainer(engine: str) -> Any:
    module, name = {
        "lightgbm": ("ray.train.lightgbm", "LightGBMTrainer"),
        "xgboost": ("ray.train.xgboost", "XGBoostTrainer"),
        "torch": ("ray.train.torch", "TorchTrainer"),
    }[engine]
    return getattr(import_module(module), name)


@contextmanager
def _storage(checkpoints: str | None) -> Iterator[str]:
    if checkpoints is not None:
        yield checkpoints
        return
    with tempfile.TemporaryDirectory(prefix="podium-fit-") as folder:
        yield folder


@contextmanager
def _following(ray: Any, exchange: Any, progress: Progress | None) -> Iterator[None]:
    """Pass the steps that workers report on, while the fit goes on elsewhere."""
    if progress is None:
        yield
        return
    over = threading.Event()

    def follow() -> None:
        last = False
        while not last:
            last = over.wait(_WAIT_SECONDS)
            for step in ray.get(exchange.told.remote()):
                progress(*step)

    thread = threading.Thread(target=follow, name="podium-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def _ended(ray: Any, actor: Any) -> Iterator[None]:
    try:
        yield
    finally:
        ray.kill(actor)


@contextmanager
def _interrupts_given_back() -> Iterator[None]:
    """Ray Train takes Ctrl-C for itself and keeps it: it is Python's again afterwards."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SystemExit as ended:
        raise KeyboardInterrupt from ended
    finally:
        signal.signal(signal.SIGINT, before)
