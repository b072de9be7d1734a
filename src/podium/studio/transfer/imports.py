"""Imports: uploads are stored, read by a worker, and added in one transaction."""

from __future__ import annotations

import io
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Literal

from sqlalchemy import Connection, Engine, func, select, text
from sqlalchemy.exc import SQLAlchemyError

from podium.errors import DataError
from podium.studio.accounts.identity import record
from podium.studio.errors import RefusedError
from podium.studio.jobs.queue import (
    JobContext,
    JobLostError,
    State,
    files_folder,
    new_file,
    written_at,
)
from podium.studio.judging.gold import add_gold, read_gold
from podium.studio.messages import Message
from podium.studio.projects.service import MAX_QUERIES, add_query, check_unchanged, project_row
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Mode
from podium.studio.store.rows import ProjectRow
from podium.studio.store.tables import Job, ProjectQuery
from podium.studio.store.tokens import digest, new_secret
from podium.studio.transfer.project_copies import copied_gold, copied_queries
from podium.studio.transfer.readers import (
    ImportedQuery,
    Upload,
    has_text,
    limit_size,
    open_upload,
    queries_of,
    read_candidates,
    read_runs,
    without_empty,
)
from podium.studio.transfer.search_engines import EngineSearch, fetch
from podium.studio.transfer.tables import TableColumns, read_table

KIND = "import"
MOST_PREVIEWS = 20
"""How many tables of a project wait for their import at most."""
ANALYZE_FROM = 500
"""From how many new queries on the database's statistics are renewed."""
COUNTS = (
    "added",
    "documents",
    "skipped",
    "left_out",
    "documents_left_out",
    "documents_without_text",
    "queries_without_words",
)
"""What an import counts: queries added, with how many documents; queries that were there; queries
left out for fewer than two documents with text; documents left out; and, of what was added,
documents without text and queries of which people see only the id."""
_EXPIRED = Message("The file has expired: upload it again.")
Source = Literal["candidates", "table", "runs", "engine", "gold", "project"]


def store_upload(settings: Settings, stream: IO[bytes], name: str) -> list[str]:
    """Store an upload; returns the stored name and the original name."""
    path = new_file(settings, ".upload")
    _write(stream, path)
    return [path.name, name[:200] or "upload"]


def _write(stream: IO[bytes], path: Path) -> None:
    try:
        with path.open("wb") as file:
            shutil.copyfileobj(stream, file)
    except OSError:  # a disk that is full is not to stay so
        path.unlink(missing_ok=True)
        raise


def store_preview(
    settings: Settings, project_id: int, stream: IO[bytes], name: str
) -> tuple[str, Upload]:
    """Store a table for a preview; returns the token that imports it, and the file.

    The oldest ones of the project make space.
    """
    token = new_secret()
    path = _preview_path(settings, project_id, token)
    _write(stream, path)
    others = files_folder(settings).glob(f"{_preview_prefix(project_id)}*.upload")
    for old in sorted(others, key=written_at, reverse=True)[MOST_PREVIEWS:]:
        old.unlink(missing_ok=True)
    return token, Upload(path, name[:200] or "table")


def stored_preview(settings: Settings, project_id: int, token: str, name: str) -> Upload:
    """A table that was stored for a preview in this project."""
    path = _preview_path(settings, project_id, token)
    if not path.is_file():
        raise RefusedError(404, _EXPIRED)
    return Upload(path, name)


@contextmanager
def taken_preview(settings: Settings, project_id: int, token: str) -> Iterator[Path]:
    """Take a table that was stored for a preview in this project, for one import.

    A second import of it is refused, even one at the same time. If what is done with the file
    fails, it is there again.
    """
    path, taken = _preview_path(settings, project_id, token), new_file(settings, ".upload")
    try:
        path.rename(taken)
    except FileNotFoundError as error:
        raise RefusedError(404, _EXPIRED) from error
    try:
        yield taken
    except BaseException:
        taken.rename(path)
        raise


def _preview_path(settings: Settings, project_id: int, token: str) -> Path:
    # The project is part of the name: with the token, nobody imports the file into another one.
    prefix, name = _preview_prefix(project_id), digest(f"{project_id}/{token}")
    return files_folder(settings) / f"{prefix}{name[: 43 - len(prefix)]}.upload"


def _preview_prefix(project_id: int) -> str:
    return digest(f"previews of {project_id}")[:10]


def run_import(work: JobContext) -> None:
    """Run an import job."""
    try:
        # A search engine may take its time: no transaction waits for it.
        fetched = _fetch_from_engine(work) if work.job.parameters["source"] == "engine" else None
        added = in_transaction(work.engine, lambda c: _import_all(c, work, fetched))
    except JobLostError:
        if _was_cancelled(work):
            delete_uploads(work.settings, work.job.parameters.get("files", {}))
        raise
    except SQLAlchemyError:
        raise  # another worker will need the files
    except Exception:
        delete_uploads(work.settings, work.job.parameters.get("files", {}))
        raise
    delete_uploads(work.settings, work.job.parameters.get("files", {}))
    if added >= ANALYZE_FROM:
        _analyze(work.engine)


def _analyze(engine: Engine) -> None:
    """Update PostgreSQL's statistics of its tables.

    Until autovacuum comes by, it would plan queries for the few rows that there were before.
    """
    if engine.dialect.name != "postgresql":
        return
    # The import is done, whatever becomes of this.
    with suppress(SQLAlchemyError), engine.begin() as connection:
        connection.execute(text("ANALYZE queries, candidates, rankings"))


def _was_cancelled(work: JobContext) -> bool:
    state = reading(work.engine, lambda c: c.scalar(select(Job.state).where(Job.id == work.job.id)))
    return state == State.CANCELLED


def delete_uploads(settings: Settings, files: Mapping[str, list[list[str]]]) -> None:
    """Delete the uploads of an import, by their roles as in its parameters."""
    for uploads in files.values():
        for upload in _uploads(settings, uploads):
            with suppress(OSError):
                upload.path.unlink()


def _import_all(
    connection: Connection, work: JobContext, fetched: list[ImportedQuery] | None
) -> int:
    """Import everything; returns how many queries were added."""
    job = work.job
    project = project_row(connection, job.project_id)
    if job.parameters["source"] == "gold":
        with open_upload(_uploads(work.settings, job.parameters["files"]["gold"])[0]) as stream:
            result = add_gold(connection, project, read_gold(stream))
    else:
        result = _add_all(connection, project, work, fetched)
    if job.parameters["source"] == "project" and project.mode == Mode.PAIRS:
        pairs = copied_gold(connection, int(job.parameters["project"]), project.id)
        result |= add_gold(connection, project, pairs)
    check_unchanged(connection, project)
    record(connection, job.user_id, job.project_id, "imported", **result)
    work.finish(connection, result)
    return result.get("added", 0)


def _add_all(
    connection: Connection,
    project: ProjectRow,
    work: JobContext,
    fetched: list[ImportedQuery] | None,
) -> dict[str, int]:
    known = set(
        connection.scalars(select(ProjectQuery.name).where(ProjectQuery.project_id == project.id))
    )
    skip_empty = bool(work.job.parameters.get("skip_empty"))
    counts: Counter[str] = Counter(dict.fromkeys(COUNTS, 0))
    for done, read in enumerate(_entries(work) if fetched is None else fetched, start=1):
        documents = read.entry.candidates
        if read.entry.query_id in known:
            counts["skipped"] += 1
            continue
        counts["documents_left_out"] += read.left_out
        if skip_empty and len(documents) < 2:
            counts["left_out"] += 1
            counts["documents_left_out"] += len(documents)
            continue
        known.add(read.entry.query_id)
        rankings = read.rankings if project.mode == Mode.RANKINGS else None
        if len(known) > MAX_QUERIES:
            raise DataError(
                f"the project would have more than {MAX_QUERIES} queries",
                hint="Create another project.",
            )
        add_query(connection, project, read.entry, rankings, work.go_on)
        counts["added"] += 1
        counts["documents"] += len(documents)
        counts["documents_without_text"] += sum(not has_text(each) for each in documents)
        counts["queries_without_words"] += not read.in_words
        if fetched is None:
            # How many there will be is not known: the bar nears its end without reaching it.
            work.progress(0.95 * done / (done + 50))
    if not counts["added"] and not counts["skipped"]:
        raise DataError(
            f"no query can be added: {counts['left_out']} have fewer than two documents with text"
            if counts["left_out"]
            else "the file contains no queries",
            hint="Are they the right files?",
        )
    total = connection.scalar(select(func.count()).where(ProjectQuery.project_id == project.id))
    return {**counts, "queries": int(total or 0)}


def _fetch_from_engine(work: JobContext) -> list[ImportedQuery]:
    search = EngineSearch(**work.job.parameters["search"])
    query_texts = list(queries_of(io.BytesIO(search.queries.encode())))
    fetched_queries = []
    for read in limit_size(fetch(search, query_texts, work.settings.engines)):
        fetched_queries.append(read)
        work.progress(0.95 * len(fetched_queries) / len(query_texts))
    return fetched_queries


def _entries(work: JobContext) -> Iterator[ImportedQuery]:
    parameters = work.job.parameters
    if parameters["source"] == "project":
        return copied_queries(work.engine, int(parameters["project"]))
    files = {
        role: _uploads(work.settings, uploads) for role, uploads in parameters["files"].items()
    }
    skip_empty = bool(parameters.get("skip_empty"))
    queries = files.get("queries", [])
    if parameters["source"] == "candidates":
        entries = read_candidates(files["candidates"][0])
    elif parameters["source"] == "table":
        columns = TableColumns(**parameters["columns"]) if parameters.get("columns") else None
        entries = read_table(files["table"][0], columns)
    else:
        entries = read_runs(
            files["runs"],
            files["documents"][0],
            queries[0] if queries else None,
            int(parameters["depth"]),
            skip_missing=skip_empty,
        )
    return limit_size(without_empty(entries) if skip_empty else entries)


def _uploads(settings: Settings, kept: list[list[str]]) -> list[Upload]:
    folder = files_folder(settings)
    return [Upload(folder / stored, name) for stored, name in kept]
