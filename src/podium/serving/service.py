"""What the routes of the service share: its models, its log and its figures."""

from __future__ import annotations

import asyncio
import math
import os
import secrets
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import structlog
from fastapi import Request

from podium.errors import PodiumError
from podium.kernels import Doubles
from podium.serving.experiment import Experiment
from podium.serving.metrics import ServingMetrics
from podium.serving.model import ServedModel
from podium.serving.ranking_log import LoggedRanking, RankingLog, SearchNames
from podium.serving.refusal import Refusal
from podium.serving.releases import Release
from podium.serving.repository import Repository
from podium.serving.rows import Rows
from podium.serving.scoring import Pair
from podium.serving.searcher import Searcher
from podium.serving.settings import ServingSettings
from podium.serving.workers import HAS_SIGNALS, WorkerFile, ask_to_apply, wait_for_generation

_INLINE_VALUES = 50_000
"""Requests with more values are scored in a thread: they would delay the others too long."""

_RELEASE_SECONDS = 60.0
"""How long a load waits until all processes serve the new release."""


class Service:
    """What the routes share."""

    def __init__(self, settings: ServingSettings) -> None:
        self.settings = settings
        # The only process of a service makes the folder itself, when it starts.
        own = Path(tempfile.gettempdir()) / f"podium-serving-{secrets.token_hex(8)}"
        self.folder = folder = own if settings.state_folder is None else Path(settings.state_folder)
        self.metrics = ServingMetrics()
        self.repository = Repository(settings, folder)
        self.log: RankingLog | None = None
        self.searcher: Searcher | None = None
        self.experiment: Experiment | None = None
        self._worker: WorkerFile | None = None
        self._releasing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._logger = structlog.get_logger("podium.serving")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Load the models and write the ranking log for as long as the service runs."""
        settings = self.settings
        async with AsyncExitStack() as stack:
            if settings.state_folder is None:
                self.folder.mkdir(mode=0o700)
                stack.callback(shutil.rmtree, self.folder)
            if HAS_SIGNALS:
                # Only then is it registered: a process without handlers would end at a signal.
                self._handle_signals()
                self._worker = WorkerFile(self.folder)
                stack.callback(self._worker.remove)
            await asyncio.to_thread(self._start)
            self._serves(self.repository.generation)
            if settings.ranking_log is not None:
                self.log = RankingLog(
                    Path(settings.ranking_log), self.metrics, sample=settings.log_sample,
                    most_bytes=int(settings.log_megabytes * (1 << 20)),
                    most_seconds=settings.log_seconds,
                    kept_bytes=(settings.log_gigabytes or math.inf) * (1 << 30),
                    kept_seconds=(settings.log_days or math.inf) * 86_400,
                )  # fmt: skip
                stack.callback(self.log.close)
            if settings.interleave is not None:
                self.experiment = Experiment(settings.interleave, self.folder)
                stack.callback(self.experiment.close)
            if settings.search is not None:
                definitions = self.repository.definitions
                assert definitions is not None
                self.searcher = Searcher(
                    settings.search, definitions, self.score, self.repository.get_for_search,
                    self.experiment,
                )  # fmt: skip
                stack.push_async_callback(self.searcher.close)
            self._logger.info("ready", process=os.getpid(), generation=self.repository.generation)
            yield
        self._logger.info("stopped")

    def _start(self) -> None:
        self.repository.apply()
        if not self.repository.generation:  # nobody has made a release: this is the only process
            self.repository.reload()

    def _serves(self, generation: int) -> None:
        if self._worker is not None:
            self._worker.set_generation(generation)

    def _handle_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, self._spawn, self._reload_for_signal)
        loop.add_signal_handler(signal.SIGUSR1, self._spawn, self._apply_for_signal)

    def _spawn(self, work: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.ensure_future(work())
        self._tasks.add(task)  # the loop itself holds no strong reference
        task.add_done_callback(self._tasks.discard)

    async def _reload_for_signal(self) -> None:
        with suppress(PodiumError, Refusal):  # logged; the models of before are served on
            await self.release(self.repository.reload)

    async def _apply_for_signal(self) -> None:
        async with self._releasing:
            try:
                await asyncio.to_thread(self.repository.apply)
            except (PodiumError, OSError) as error:
                self._logger.error("release not applied", error=str(error))
                return
            self._serves(self.repository.generation)

    async def release(self, make: Callable[[], Release]) -> Release:
        """Make a release in this process, then wait until all others serve it."""
        async with self._releasing:
            try:
                release = await asyncio.to_thread(make)
            except PodiumError as error:
                self.metrics.loaded("failed")
                self._logger.error("models not loaded", error=str(error))
                raise
            self.metrics.loaded("done")
            self._serves(release.generation)
        self._logger.info(
            "models loaded", generation=release.generation,
            models=[f"{each.name}@{each.version} {each.digest[:16]}" for each in release.models],
        )  # fmt: skip
        ask_to_apply(self.folder)
        everywhere = await asyncio.to_thread(
            wait_for_generation, self.folder, release.generation, _RELEASE_SECONDS
        )
        if not everywhere:
            raise Refusal(503, "not all processes serve the new models yet")
        return release

    async def score(self, model: ServedModel, rows: Rows, pairs: Sequence[Pair] = ()) -> Doubles:
        """Score documents: few at once, many, and those with texts, in a thread."""
        if rows.size <= _INLINE_VALUES and not model.reads_texts:
            return model.score(rows)
        try:
            async with asyncio.timeout(self.settings.most_seconds):
                return await asyncio.to_thread(model.score, rows, pairs)
        except TimeoutError:
            raise Refusal(503, "scoring took too long") from None

    def note(
        self,
        model: ServedModel,
        names: SearchNames,
        ids: list[str | int] | None,
        rows: Rows,
        scores: Doubles,
    ) -> None:
        """Count a ranking and log it."""
        self.metrics.ranked(model.name, model.version, len(scores))
        if self.log is not None:
            shadow = self.repository.shadow(model.name)
            self.log.append(LoggedRanking(time.time(), model, shadow, names, ids, rows, scores))

    def client_hash(self, client: str | None) -> str | None:
        """Return the hash of a client for the ranking log; None without an experiment."""
        if client is None or self.experiment is None:
            return None
        return self.experiment.hashed(f"log {client}")

    def require_admin(self, request: Request) -> None:
        """Raise a Refusal unless the request's token may change models."""
        if self.settings.fixed_models:
            raise Refusal(403, "models are changed by deploying the service again")
        token = request.scope.get("podium_token")
        if token is None or not token.admin:
            raise Refusal(403, "only a token of an administrator may change models")
