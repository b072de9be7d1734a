"""Who gets no task: those who have to be trained first, and crowd workers who have done theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from sqlalchemy import Connection, exists, select

from podium.studio.judging.crowd_work import crowd_work
from podium.studio.judging.open_work import OpenWork
from podium.studio.judging.training import must_train
from podium.studio.store.rows import ProjectRow
from podium.studio.store.tables import CrowdLink, TrainingExample

Stop = Literal["training", "yours-done"]
_KEPT_SECONDS = 5.0


class EntryGate:
    """Tells who gets no task. That a project stops nobody is remembered for some seconds.

    Args:
        clock: Tells the time in seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._open: dict[int, float] = {}

    def stop(self, connection: Connection, project: ProjectRow, user_id: int) -> Stop | None:
        """Why someone gets no task, or None."""
        now = self._clock()
        looked_at = self._open.get(project.id)
        if looked_at is not None and looked_at <= now < looked_at + _KEPT_SECONDS:
            return None
        trains, has_links = connection.execute(
            select(
                exists().where(TrainingExample.project_id == project.id),
                exists().where(CrowdLink.project_id == project.id),
            )
        ).one()
        if not (trains or has_links):
            self._open[project.id] = now
            return None
        if trains and must_train(connection, project.id, user_id):
            return "training"
        if has_links:
            work = crowd_work(connection, project, user_id)
            if work is not None and work.code is not None:
                is_done = OpenWork(connection, project, user_id).is_done
                return None if is_done else "yours-done"
        return None
