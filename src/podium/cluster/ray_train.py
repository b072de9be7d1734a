"""Distributed fits of trees and neural scorers: Ray Train starts the workers.

Each worker runs the training loop on its own whole queries, and the engine's distributed
learner connects them. A lost worker ends the attempt; Ray Train starts another one with the
remaining workers, from the latest checkpoint.
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

from podium.cluster.allreduce import STATE, FitCoordinator, RayTrainCommunicator, report
from podium.cluster.assignment import balance_by_bytes
from podium.cluster.checkpoints import claim, fit_identity
from podium.cluster.connection import Cluster, prepare_worker
from podium.cluster.sources import ShardSource
from podium.data import Dataset, concat_datasets
from podium.errors import ArgumentError, PodiumError
from podium.rankers.base import DistributedRanker
from podium.rankers.fit_progress import Progress
from podium.rankers.storage import Archive, read_archive

_WAIT_SECONDS = 0.3

_LOSSES = 20
"""The maximum number of lost workers; more are taken for a fit that kills its workers."""


@dataclass(frozen=True)
class _Job:
    """The arguments of a worker."""

    ranker: DistributedRanker
    train: ShardSource
    validation: ShardSource | None
    coordinator: Any
    seconds: float
    threads: int
    modules: tuple[str, ...]


def fit_under_ray_train(
    ranker: DistributedRanker,
    train: ShardSource,
    validation: ShardSource | None,
    progress: Progress | None,
    checkpoints: str | None,
    checkpoint_seconds: float,
    cluster: Cluster,
) -> None:
    """Fit trees or a neural scorer on the workers of a cluster."""
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
        claim(checkpoints, fit_identity(ranker, train, validation))
    queries = [each.manifest.queries for each in (train, validation) if each is not None]
    workers = min(cluster.workers, *queries)
    options = {"num_cpus": 0, "scheduling_strategy": here, "max_concurrency": 1000 + 4 * workers}
    coordinator = ray.remote(FitCoordinator).options(**options).remote()
    job = _Job(
        ranker,
        train,
        validation,
        coordinator,
        checkpoint_seconds,
        cluster.cpus_per_worker,
        cluster.modules,
    )
    elastic: Any = (1, workers) if workers > 1 else 1
    with (
        _actor_killed(ray, coordinator),
        _storage(checkpoints) as folder,
        _progress_reported(ray, coordinator, progress),
        _interrupt_handler_restored(),
    ):
        trainer = _trainer(job.ranker.backend)(
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
            error = ray.get(coordinator.fatal_error.remote())
            if error is not None:
                raise error
        with result.checkpoint.as_directory() as checkpoint:
            archive = read_archive(BytesIO((Path(checkpoint) / STATE).read_bytes()))
    if not _is_fitted(archive, ranker):
        raise PodiumError("the fit ended before its last step", hint="Fit again.")
    ranker.restore(archive)


def _work(config: dict[str, Any]) -> None:
    """Run one worker of a fit.

    Ray Train makes another attempt after any error, and cannot tell a lost machine from invalid
    labels. So workers report errors to the coordinator; if an error would occur again, the next
    attempt ends immediately and the driver raises the error.
    """
    import ray
    from ray.train.collective import broadcast_from_rank_zero

    job: _Job = config["job"]
    attempt = str(broadcast_from_rank_zero(os.urandom(8).hex()))
    if ray.get(job.coordinator.begin_attempt.remote(attempt)) is not None:
        return
    try:
        _fit_share(job, attempt)
    except Exception as error:
        text = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        final = error if isinstance(error, PodiumError) else None
        ray.get(job.coordinator.report_failure.remote(attempt, text, final))
        raise


def _fit_share(job: _Job, attempt: str) -> None:
    import ray
    from ray import train
    from sklearn.base import clone

    prepare_worker(job.threads, job.modules)
    context = train.get_context()
    rank, size = context.get_world_rank(), context.get_world_size()
    data = _share(job.train, rank, size)
    eval_set = None if job.validation is None else _share(job.validation, rank, size)
    ranker = clone(job.ranker)
    communicator = RayTrainCommunicator(
        attempt,
        job.coordinator,
        by_torch=job.ranker.backend == "torch",
        parameters=_parameters(job.ranker.backend),
        seconds=job.seconds,
    )

    def report_step(step: int, loss: float, value: float | None) -> None:
        if rank == 0:
            ray.get(job.coordinator.report_step.remote(step, loss, value))

    checkpoint = communicator.load_checkpoint()
    # If the checkpoint is fitted, the driver was lost after the last step.
    if checkpoint is None or not _is_fitted(checkpoint, ranker):
        ranker.fit_partition(data, communicator, eval_set=eval_set, progress=report_step)
        report(rank, ranker.archive, -1)


def _is_fitted(archive: Archive, ranker: DistributedRanker) -> bool:
    """Return whether a checkpoint is the fitted ranker, and not a step of its fit."""
    return archive.kind == type(ranker).__name__


def _share(source: ShardSource, rank: int, size: int) -> Dataset:
    """Read the queries of one worker: whole shards, or single queries if there are too few."""
    if len(source.shards) < size:
        return concat_datasets(list(_every(source, rank, size)))
    shares = balance_by_bytes([shard.bytes for shard in source.shards], size)
    return concat_datasets(
        [block for shard in sorted(shares[rank]) for block in source.blocks(shard)]
    )


def _every(source: ShardSource, first: int, step: int) -> Iterator[Dataset]:
    """Yield every ``step``-th query block by block, so that the whole set is never in memory."""
    before = 0
    for shard in range(len(source.shards)):
        for block in source.blocks(shard):
            selected = np.arange((first - before) % step, len(block), step)
            before += len(block)
            if len(selected):
                yield block.select(selected)


def _parameters(engine: str) -> dict[str, Any]:
    """Return the engine's network parameters; Ray Train sets up XGBoost and PyTorch itself."""
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
def _progress_reported(ray: Any, coordinator: Any, progress: Progress | None) -> Iterator[None]:
    """Report the steps of the workers while they run."""
    if progress is None:
        yield
        return
    over = threading.Event()

    def follow() -> None:
        last = False
        while not last:
            last = over.wait(_WAIT_SECONDS)
            for step in ray.get(coordinator.take_steps.remote()):
                progress(*step)

    thread = threading.Thread(target=follow, name="podium-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def _actor_killed(ray: Any, actor: Any) -> Iterator[None]:
    try:
        yield
    finally:
        ray.kill(actor)


@contextmanager
def _interrupt_handler_restored() -> Iterator[None]:
    """Restore the handler of Ctrl-C, which Ray Train replaces."""
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
