"""``podium judge``."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console

from podium.cli.judge_model import (
    AnswersFile,
    Connections,
    MaxMoney,
    MaxRequests,
    MaxTokens,
    ModelAddress,
    ModelJudge,
    ModelOptions,
    Prices,
    Repeats,
    RubricFile,
)
from podium.cli.outputs import require_other_file
from podium.cli.pool import CandidatePool
from podium.cli.printing import print_table
from podium.cli.reading import is_answer_log, read_grades
from podium.data import CandidateList, write_qrels
from podium.data.html_text import plain_text
from podium.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from podium.judging import Session, SessionFile


def judge_command(
    session: Annotated[
        str,
        typer.Argument(
            help="Session file, or a folder with one for each query; created if it does not exist."
        ),
    ],
    source: Annotated[
        str | None,
        typer.Option("--from", help="JSONL file with queries and candidates, for a new session."),
    ] = None,
    run: Annotated[
        str | None, typer.Option(help="Or a run whose first documents are judged, with")
    ] = None,
    topics: Annotated[
        str | None, typer.Option(help="the texts of its queries (.tsv: id, text; or .jsonl) and")
    ] = None,
    documents: Annotated[
        str | None,
        typer.Option(
            help="the texts of its documents (.tsv: id, text or id, title, text; .jsonl)."
        ),
    ] = None,
    depth: Annotated[
        int, typer.Option(min=2, help="With --run: how many documents of each query to judge.")
    ] = 20,
    query: Annotated[
        str | None, typer.Option(help="Id of the query to judge, if there are several.")
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            help="A log of a model's answers, or judgments by clicks or another machine, whose "
            "order new sessions start from: people are asked where it matters."
        ),
    ] = None,
    k: Annotated[
        int | None, typer.Option(min=1, help="How many documents to put in order; by default 10.")
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(
            help="How pairs are chosen: adaptive (the default), tournament, insertion, galloping, "
            "heap, or careful, for judges who err."
        ),
    ] = None,
    budget: Annotated[
        int | None, typer.Option(min=1, help="With careful: the judgments per query.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, help="Random seed for the order of documents and their sides; 0 by default."
        ),
    ] = None,
    assessor: Annotated[
        str | None, typer.Option(help="Who is judging; by default your user name.")
    ] = None,
    export: Annotated[
        str | None, typer.Option(help="Write the labels to this qrels file at the end.")
    ] = None,
    ties: Annotated[
        bool, typer.Option("--ties", help="Give documents judged equal the same label.")
    ] = False,
    model: ModelAddress = None,
    rubric: RubricFile = "pairs",
    answers: AnswersFile = None,
    connections: Connections = 4,
    repeats: Repeats = 1,
    max_requests: MaxRequests = None,
    max_tokens: MaxTokens = None,
    max_money: MaxMoney = None,
    prices: Prices = None,
) -> None:
    """Judge documents pair by pair with the keyboard, until each query's top k is in order.

    Every verdict is on disk at once: quit when you like, and run the same command to go on. If
    all candidates have scores they are taken as a prior ranking, which saves judgments. A session
    that is a folder (its name ends with / if it is new) goes through all queries.

    With --model a language model judges instead, pairs or, with a rubric for them, grades.
    """
    from podium.judging import SessionFile
    from podium.judging.auditing.sample import model_scores
    from podium.judging.models.answer_log import read_answers

    is_folder = Path(session).is_dir() or session.endswith("/")
    kept = Path(session) / "answers.jsonl" if is_folder else Path(f"{session}.answers.jsonl")
    inputs = (source, run, topics, documents, prior, answers or str(kept))
    require_other_file(export, *inputs, session)
    # A session that is yet to begin must not be replaced at its end.
    if is_folder and export is not None and realpath(export).endswith(_ENDING):
        raise ArgumentError(
            f"{export} has the ending of a session", hint="Name another file to export to."
        )
    pool = CandidatePool(source, run, topics, documents, depth, query)
    orders: dict[str, dict[str, float]] = {}
    if prior is not None and is_answer_log(prior):
        orders = model_scores(read_answers(prior))
    elif prior is not None:
        for (query_id, document_id), grade in read_grades(prior).items():
            orders.setdefault(query_id, {})[document_id] = grade

    def start(chosen: CandidateList, path: Path) -> SessionFile:
        if prior is not None:
            chosen = _in_order(chosen, orders.get(chosen.query_id, {}), prior)
        new = _new_session(chosen, k or 10, algorithm or "adaptive", budget, seed or 0)
        return SessionFile.create(path, new, _about(chosen))

    asked = {"k": k, "algorithm": algorithm, "budget": budget, "seed": seed}

    def judge_all(
        ask: Callable[[SessionFile], bool], *, grades: bool = False
    ) -> dict[str, Session]:
        if is_folder:
            return _judge_folder(Path(session), pool, start, ask, asked, grades)
        path = Path(session)
        journal = SessionFile.open(path) if path.exists() else start(_chosen(session, pool), path)
        about = journal.about.get("query_id")
        if query is not None and about is not None and about != query:
            journal.close()
            raise DataError(
                f"is the session of query {about!r}, not {query!r}",
                path=path, hint="Leave --query out, or name a new session file.",
            )  # fmt: skip
        return _judge_one(journal, session, ask, asked, grades)

    if model is None:
        from podium.cli.judge_screen import judge

        person = assessor or getpass.getuser()
        sessions = judge_all(lambda journal: judge(journal, person))
        if export is not None:
            _export(sessions, export, ties)
        return
    if is_folder:
        Path(session).mkdir(parents=True, exist_ok=True)
    options = ModelOptions(
        model,
        rubric,
        Path(answers) if answers else kept,
        connections,
        repeats,
        max_requests,
        max_tokens,
        max_money,
        prices,
    )
    with ModelJudge(options, assessor) as machine:
        grades = machine.rubric.task == "grade"
        sessions = judge_all(machine, grades=grades)
        try:
            if export is not None:
                _export(sessions, export, ties, machine.name if grades else None)
        finally:  # what stopped the model is why there may be nothing to export
            machine.finish()


def _export(sessions: dict[str, Session], path: str, ties: bool, grader: str | None = None) -> None:
    from podium.judging import session_judgments
    from podium.judging.grading import grade_judgments

    if grader is None:
        write_qrels(session_judgments(sessions, ties=ties), path)
    else:
        logs = {query: session.log for query, session in sessions.items()}
        write_qrels(grade_judgments(logs, assessor=grader), path)


def _judge_one(
    journal: SessionFile,
    path: str,
    ask: Callable[[SessionFile], bool],
    asked: Mapping[str, object],
    grades: bool,
) -> dict[str, Session]:
    from podium.cli.judge_screen import print_result

    with journal:
        _refuse_changes(path, journal.session, asked)
        ask(journal)
        if not grades:
            print_result(journal)
        return {str(journal.about.get("query_id", "q")): journal.session}


def _judge_folder(
    folder: Path,
    pool: CandidatePool,
    start: Callable[[CandidateList, Path], SessionFile],
    ask: Callable[[SessionFile], bool],
    asked: Mapping[str, object],
    grades: bool,
) -> dict[str, Session]:
    """Judge query after query until all are done or the assessor leaves."""
    from podium.judging import SessionFile

    lists = pool.lists()
    if lists is None and not folder.is_dir():
        raise _no_session(str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    files = {folder / _file_name(entry.query_id): entry for entry in lists or []}
    paths = list(dict.fromkeys([*files, *sorted(folder.glob(f"*{_ENDING}"))]))
    only = None if pool.query is None else folder / _file_name(pool.query)
    if only is not None and only not in paths:
        raise _no_session(str(only))
    sessions: dict[str, Session] = {}
    leaves = False
    for path in paths:
        if not path.exists() and leaves:
            continue
        opened = SessionFile.open(path) if path.exists() else start(files[path], path)
        with opened as journal:
            if only is None or path == only:  # the labels of others are exported, too
                _refuse_changes(str(path), journal.session, asked)
                leaves = leaves or not ask(journal)
            sessions[str(journal.about.get("query_id", "q"))] = journal.session
    if not sessions:
        raise _no_session(str(folder))
    if not grades:
        _print_progress(sessions, len(paths))
    return sessions


def _print_progress(sessions: dict[str, Session], queries: int) -> None:
    rows = []
    for query, session in sessions.items():
        result = session.result()
        left = "done" if result.complete else f"about {session.expected_left():.0f} to go"
        rows.append([query, result.top[0] if result.top else "", left])
    print_table(["query", "best document", "judgments"], rows, names=2)
    done = sum(session.done for session in sessions.values())
    Console(stderr=True).print(f"{done} of {queries} queries are done.", highlight=False)


_ENDING = ".session"
_LONGEST = 120


def _file_name(query_id: str) -> str:
    """Return a file name for a query: its id, or a hash where that does not make a name."""
    name = quote(query_id, safe=" ")
    if len(name) > _LONGEST or name.startswith("."):
        name = sha256(query_id.encode()).hexdigest()
    return name + _ENDING


def _no_session(path: str) -> DataError:
    return DataError(
        "there is no such session",
        path=path,
        hint="Start one with --from candidates.jsonl, or with --run, --topics and --documents.",
    )


def _refuse_changes(path: str, session: Session, asked: Mapping[str, object]) -> None:
    """Refuse other settings: the verdicts so far were collected for the first ones."""
    for name, requested in asked.items():
        current = session.random_state if name == "seed" else getattr(session, name)
        if requested is not None and requested != current:
            raise DataError(
                f"was started with {name} {current}, not {requested}",
                path=path,
                hint=f"Leave --{name} out, or name a new session file.",
            )


def _chosen(session: str, pool: CandidatePool) -> CandidateList:
    lists = pool.lists()
    if lists is None:
        raise _no_session(session)
    if len(lists) != 1:
        raise DataError(
            f"has {len(lists)} queries",
            path=pool.name,
            hint=f"Name one with --query, or judge all in a folder: {session}/",
        )
    return lists[0]


def _new_session(
    chosen: CandidateList, k: int, algorithm: str, budget: int | None, seed: int
) -> Session:
    from podium.judging import Session

    scores = [candidate.score for candidate in chosen.candidates]
    items = [candidate.document_id for candidate in chosen.candidates]
    ordered = all(score is not None for score in scores)
    if ordered:
        best_first = sorted(range(len(items)), key=lambda index: -(scores[index] or 0.0))
        items = [items[index] for index in best_first]
    return Session(items, k, algorithm=algorithm, random_state=seed, ordered=ordered, budget=budget)


def _in_order(chosen: CandidateList, scores: dict[str, float], prior: str) -> CandidateList:
    """Return the candidates with a model's scores; those that it did not judge come last."""
    if not scores:
        raise DataError(
            f"has no answer about query {chosen.query_id!r}",
            path=prior,
            hint="Let the model judge its documents first.",
        )
    last = min(scores.values()) - 1
    candidates = tuple(
        replace(candidate, score=scores.get(candidate.document_id, last))
        for candidate in chosen.candidates
    )
    return replace(chosen, candidates=candidates)


def _about(chosen: CandidateList) -> dict[str, Any]:
    texts = {
        candidate.document_id: {
            "title": candidate.title,
            "text": candidate.text or plain_text(candidate.html),
            "url": candidate.url,
        }
        for candidate in chosen.candidates
    }
    return {
        "query_id": chosen.query_id,
        "query": chosen.query,
        "description": chosen.description,
        "texts": texts,
    }
