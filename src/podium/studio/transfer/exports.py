"""Exports: a worker writes a file, which managers of the project can fetch for some days."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Literal

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, Engine

from podium.errors import DataError
from podium.studio.accounts.identity import record
from podium.studio.errors import RefusedError
from podium.studio.jobs.queue import JobContext, State, forget_old_files, new_file
from podium.studio.json_types import JsonObject
from podium.studio.judging.judged import JudgedQuery, judged_queries
from podium.studio.models.answers import model_view
from podium.studio.models.assessors import model_row
from podium.studio.projects.progress import project_progress
from podium.studio.projects.service import project_row
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Mode
from podium.studio.store.rows import JobRow, ProjectRow
from podium.studio.transfer.writers import EXPORT_CONTENTS, EXPORT_FORMATS, ExportFormat

KIND = "export"
_BY_ONE = ("labels", "grades", "preferences")
"""What is either people's or one model's."""


class ExportOptions(BaseModel):
    """What to export, and how.

    Example:
        >>> ExportOptions(content="labels", format="qrels").check(Mode.PAIRS)
    """

    model_config = ConfigDict(extra="forbid")

    content: Literal["labels", "grades", "preferences", "totals", "log", "answers"] = "labels"
    """Top-k labels, mean grades, verdicts on pairs, side-by-side totals, the whole log, or all
    answers of models."""
    format: Literal[
        "qrels", "qrels-parquet", "prefs", "prefs-parquet", "pairs", "pairs-parquet", "jsonl", "csv"
    ] = "qrels"
    only_done: bool = False
    """Whether to leave out queries that are not done yet."""
    ties: bool = False
    """Whether documents that were judged equal get equal labels."""
    underscores: bool = False
    """Whether white space in IDs is written as ``_`` where the format has none in IDs."""
    model: int | None = Field(default=None, ge=1, lt=2**62)
    """The model assessor whose judgments are exported; by default people's are."""

    def check(self, mode: Mode) -> None:
        """Refuse content and formats that do not fit the judging mode."""
        if self.content not in EXPORT_CONTENTS[mode]:
            raise RefusedError(
                422,
                "This project's mode is %(mode)s: it can export %(possible)s, not %(content)s.",
                mode=mode.value,
                possible=", ".join(EXPORT_CONTENTS[mode]),
                content=self.content,
            )
        if self.format not in EXPORT_FORMATS[self.content]:
            formats = ", ".join(EXPORT_FORMATS[self.content])
            raise RefusedError(
                422, "%(content)s can be written as %(formats)s.", content=self.content,
                formats=formats,
            )  # fmt: skip
        if self.model is not None and self.content not in _BY_ONE:
            raise RefusedError(
                422, "%(content)s has what everyone judged: name no model.", content=self.content
            )

    @property
    def writer(self) -> ExportFormat:
        """What writes it."""
        chosen = EXPORT_FORMATS[self.content][self.format]
        return chosen.underscored or chosen if self.underscores else chosen

    def queries(self, engine: Engine, project: ProjectRow) -> Iterator[JudgedQuery]:
        """The queries that are exported: the log alone includes withdrawn ones."""
        return judged_queries(
            engine, project, only_done=self.only_done, withdrawn=self.content == "log"
        )

    def write(self, stream: IO[bytes], engine: Engine, queries: Iterable[JudgedQuery]) -> int:
        """Write queries, and return the number of rows; refused if there would be none."""
        rows = self.writer.write(stream, engine, queries, self.ties)
        if not rows:
            raise DataError("nothing has been judged yet", hint="Judge something first.")
        return rows


def run_export(work: JobContext) -> None:
    """Run an export job."""
    options = ExportOptions(**work.job.parameters)
    project = reading(work.engine, lambda c: project_row(c, work.job.project_id))
    total = reading(work.engine, lambda c: project_progress(c, project.id)).queries
    model = None
    if options.model is not None:
        model_id = options.model
        model = reading(work.engine, lambda c: model_row(c, project.id, model_id))
    path = new_file(work.settings, options.writer.suffix)
    exported: list[str] = []
    queries = _with_progress(work, options.queries(work.engine, project), total, exported)
    if model is not None:
        user_id = model.user_id
        queries = (model_view(each, user_id) for each in queries)
    try:
        with path.open("wb") as stream:
            rows = options.write(stream, work.engine, queries)
        result: JsonObject = {"queries": len(exported), "rows": rows, "bytes": path.stat().st_size}
        if model is not None:
            result["judged by"] = model.model

        def finish(connection: Connection) -> list[str]:
            record(connection, work.job.user_id, project.id, "exported", job=work.job.id, **result)
            old = forget_old_files(connection, project.id)
            work.finish(connection, result, path.name)
            return old

        for old in in_transaction(work.engine, finish):
            (path.parent / old).unlink(missing_ok=True)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def download_name(project: ProjectRow, job: JobRow) -> str:
    """The file name of a downloaded export."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", project.name).strip("-").lower() or "project"
    file = job.file or ""
    suffix = file[file.rindex(".") :]
    content, model = job.parameters["content"], job.parameters.get("model")
    if suffix == ".parquet":  # of labels there are two
        content += f"-{job.parameters['format'].removesuffix('-parquet')}"
    by = f"-by-model-{model}" if model else ""
    return f"{words[:60]}-{content}{by}-{job.id}{suffix}"


def _with_progress(
    work: JobContext, queries: Iterable[JudgedQuery], total: int, exported: list[str]
) -> Iterator[JudgedQuery]:
    """Report progress, and collect the names of exported queries."""
    for count, each in enumerate(queries, start=1):
        yield each
        if each.is_judged or work.job.parameters.get("content") == "log":
            exported.append(each.query.name)
        work.progress(count / max(total, 1))


_READABLE = frozenset({"csv", "qrels", "qrels-parquet", "jsonl"})
"""Formats that `podium.data.as_judgments` reads as labels."""
_ENOUGH_FOR_TREES = 50
"""With fewer queries, a linear ranker: trees need many documents in each leaf."""


def newest_labels(exports: Sequence[JobRow]) -> JobRow | None:
    """The newest of some exports, newest first, that wrote a file of labels by ID; or None.

    Files whose IDs were changed do not fit to a file of features.
    """
    for job in exports:
        options = ExportOptions(**job.parameters)
        if (
            job.state == State.DONE
            and job.file is not None
            and options.content in ("labels", "grades")
            and options.format in _READABLE
            and not options.underscores
        ):
            return job
    return None


def training_lines(project: ProjectRow, export: JobRow) -> str:
    """Lines that train a ranker from a file of labels and one of features.

    Args:
        project: The project.
        export: The export that wrote the labels.
    """
    file = download_name(project, export)
    trees = export.result.get("queries", 0) >= _ENOUGH_FOR_TREES
    ranker, extra = ("TreeRanker", "trees") if trees else ("LinearRanker", "rankers")
    loss, measure = "", "nDCG@10"
    if project.mode == Mode.PAIRS:
        loss, measure = f'"ListMLE(k={project.k})"', f"kNDCG(k={project.k})@{project.k}"
    return f"""\
# %pip install "podium-rank[{extra}]"
from podium import {ranker}, evaluate
from podium.data import read_csv
from podium.data.sources import as_judgments

# features.csv is your own: query_id, document_id, and a column for each feature.
features = read_csv("features.csv", unlabeled=True)
data = features.relabel(as_judgments("{file}"))
train, validation = data.split(0.8, 0.2, random_state=1)
ranker = {ranker}({loss}).fit(train, eval_set=validation)
print(evaluate("{measure}", validation, ranker.predict(validation)))
ranker.save("ranker.podium")
"""
