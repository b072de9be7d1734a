"""Trees and neural scorers: Ray Train starts the workers, the engines' own learners unite them.

Each worker runs the loop of one process on whole queries of its own. A lost worker ends the
attempt; Ray Train starts another with the workers there are, from the latest checkpoint.
"""

from __future__ import annotations

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

from podium.cluster.assignment import by_bytes
from podium.cluster.connection import Cluster, prepare_worker
from podium.cluster.exchange import STATE, Exchange, UnderRayTrain, report
from podium.cluster.sources import ShardSource
from podium.data import Dataset, concat
from podium.errors import DataError, PodiumError
from podium.rankers import NeuralRanker, TreeRanker
from podium.rankers.base import Progress
from podium.rankers.storage import Archive, read_archive

_WAIT_SECONDS = 0.3


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
    exchange = ray.remote(Exchange).options(num_cpus=0, scheduling_strategy=here).remote()
    job = _Job(
        ranker,
        train,
        validation,
        exchange,
        checkpoint_seconds,
        cluster.cpus_per_worker,
        cluster.modules,
    )
    queries = [each.manifest.queries for each in (train, validation) if each is not None]
    workers = min(cluster.workers, *queries)
    elastic: Any = (1, workers) if workers > 1 else 1
    with _storage(checkpoints) as folder, _following(ray, exchange, progress):
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
                failure_config=FailureConfig(max_failures=100),
                checkpoint_config=CheckpointConfig(num_to_keep=2),
            ),
        )
        try:
            result = trainer.fit()
        except Exception as error:
            cause = _podium_error(error)
            if cause is not None:
                raise cause from error
            raise
        with result.checkpoint.as_directory() as found:
            archive = read_archive(BytesIO((Path(found) / STATE).read_bytes()))
    ray.kill(exchange)
    if archive.kind != "fitted":
        raise DataError("a fit ended before its last step", path=checkpoints, hint="Fit again.")
    ranker._restore(archive)


def _work(config: dict[str, Any]) -> None:
    """What every worker runs."""
    import ray
    from ray import train
    from sklearn.base import clone

    job: _Job = config["job"]
    prepare_worker(job.threads, job.modules)
    context = train.get_context()
    rank, size = context.get_world_rank(), context.get_world_size()
    own = _share(job.train, rank, size)
    held_out = None if job.validation is None else _share(job.validation, rank, size)
    ranker = clone(job.ranker)
    ranker.feature_names_ = job.train.manifest.feature_names
    ranker.n_features_in_ = len(ranker.feature_names_)
    together = UnderRayTrain(
        None if job.engine == "torch" else job.exchange,
        _parameters(job.engine),
        job.seconds,
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
        whole = _load(source, range(len(source.shards)))
        return whole.select(np.arange(rank, len(whole), size))
    shares = by_bytes([shard.bytes for shard in source.shards], size)
    return _load(source, sorted(shares[rank]))


def _load(source: ShardSource, places: Any) -> Dataset:
    return concat([block for place in places for block in source.blocks(place)])


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


def _podium_error(error: BaseException) -> PodiumError | None:
    """The error that Podium raised in a worker, if it was one."""
    failures = getattr(error, "worker_failures", None) or {}
    for failure in failures.values():
        cause = getattr(failure, "cause", failure)
        if isinstance(cause, PodiumError):
            return cause
    return None
