"""Exports: a worker writes a file, which managers of the project can fetch for some days."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from sqlalchemy import Connection

from podium.errors import DataError
from podium.studio.accounts.audit import record
from podium.studio.errors import RefusedError
from podium.studio.jobs.queue import Work, make_room, new_file
from podium.studio.judging.judged import Judged, judged_queries
from podium.studio.projects.progress import standing_of
from podium.studio.projects.service import project_row
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Mode
from podium.studio.transfer.writers import FITS, WAYS, parts_of

KIND = "export"


class ExportOrder(BaseModel):
    """What to export, and how.

    Example:
        >>> ExportOrder(content="labels", format="qrels").check(Mode.PAIRS)
    """

    model_config = ConfigDict(extra="forbid")

    content: Literal["labels", "grades", "preferences", "totals", "log"] = "labels"
    """Top-k labels, mean grades, verdicts on pairs, side-by-side totals, or the whole log."""
    format: Literal[
        "qrels", "qrels-parquet", "prefs", "prefs-parquet", "pairs", "pairs-parquet", "jsonl"
    ] = "qrels"
    only_done: bool = False
    """Whether to leave out queries that are not done yet."""
    ties: bool = False
    """Whether documents that were judged equal get equal labels."""

    def check(self, mode: Mode) -> None:
        """Refuse what a project of some mode has not, and formats that do not fit."""
        if self.content not in FITS[mode]:
            raise RefusedError(
                422, f"A project of {mode.value} has {', '.join(FITS[mode])}, no {self.content}."
            )
        if self.format not in WAYS[self.content]:
            formats = ", ".join(WAYS[self.content])
            raise RefusedError(422, f"{self.content} can be written as {formats}.")


def run_export(work: Work) -> None:
    """Do an export job."""
    order = ExportOrder(**work.job.parameters)
    project = reading(work.engine, lambda c: project_row(c, work.job.project_id))
    total = reading(work.engine, lambda c: standing_of(c, project.id)).queries
    way = WAYS[order.content][order.format]
    path = new_file(work.settings, way.ending)
    exported: list[str] = []
    queries = _watched(
        work, judged_queries(work.engine, project, only_done=order.only_done), total, exported
    )
    try:
        with path.open("wb") as stream:
            rows = way.write(
                stream,
                parts_of(work.engine, queries, order.content, order.format, ties=order.ties),
            )
        if not rows:
            raise DataError("nothing has been judged yet", hint="Judge something first.")
        result = {"queries": len(exported), "rows": rows, "bytes": path.stat().st_size}

        def finish(connection: Connection) -> list[str]:
            record(connection, work.job.user_id, project.id, "exported", job=work.job.id, **result)
            old = make_room(connection, project.id)
            work.finish(connection, result, path.name)
            return old

        for old in in_transaction(work.engine, finish):
            (path.parent / old).unlink(missing_ok=True)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def download_name(project: Any, job: Any) -> str:
    """What a browser calls an exported file."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", project.name).strip("-").lower() or "project"
    ending = job.file[job.file.rindex(".") :]
    return f"{words[:60]}-{job.parameters['content']}-{job.id}{ending}"


def _watched(
    work: Work, queries: Iterable[Judged], total: int, exported: list[str]
) -> Iterator[Judged]:
    """Tell how far an export is, and note the queries that have something to export."""
    for count, each in enumerate(queries, start=1):
        yield each
        if each.is_judged or work.job.parameters.get("content") == "log":
            exported.append(each.query.name)
        work.progress(count / max(total, 1))
