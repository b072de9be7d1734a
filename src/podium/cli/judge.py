"""``podium judge``."""

from __future__ import annotations

import getpass
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.data import CandidateList, read_jsonl, write_qrels
from podium.errors import DataError

if TYPE_CHECKING:
    from podium.judging import Session


def judge_command(
    session: Annotated[str, typer.Argument(help="Session file; created if it does not exist.")],
    source: Annotated[
        str | None,
        typer.Option("--from", help="JSONL file with queries and candidates, for a new session."),
    ] = None,
    query: Annotated[
        str | None, typer.Option(help="Id of the query to judge, if the file has several.")
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
        int, typer.Option(min=0, help="Random seed for the order of documents and their sides.")
    ] = 0,
    assessor: Annotated[
        str | None, typer.Option(help="Who is judging; by default your user name.")
    ] = None,
    export: Annotated[
        str | None, typer.Option(help="Write the labels to this qrels file at the end.")
    ] = None,
    ties: Annotated[
        bool, typer.Option("--ties", help="Give documents judged equal the same label.")
    ] = False,
) -> None:
    """Judge one query's documents pair by pair with the keyboard, until its top k is in order.

    Every verdict is on disk at once: quit when you like, and run the same command to go on. If
    all candidates have scores they are taken as a prior ranking, which saves judgments.
    """
    from podium.cli.judge_screen import judge, print_result
    from podium.judging import SessionFile, session_judgments

    if Path(session).exists():
        journal = SessionFile.open(session)
    else:
        chosen = _chosen(session, source, query)
        new_session = _new_session(chosen, k or 10, algorithm or "adaptive", budget, seed)
        journal = SessionFile.create(session, new_session, _about(chosen))
    with journal:
        _refuse_changes(session, journal.session, k, algorithm)
        judge(journal, assessor or getpass.getuser())
        print_result(journal)
        if export is not None:
            sessions = {str(journal.about.get("query_id", "q")): journal.session}
            write_qrels(session_judgments(sessions, ties=ties), export)


def _refuse_changes(path: str, session: Session, k: int | None, algorithm: str | None) -> None:
    """Refuse another k or algorithm: the verdicts so far were collected for the first ones."""
    for name, requested, current in (
        ("k", k, session.k),
        ("algorithm", algorithm, session.algorithm),
    ):
        if requested is not None and requested != current:
            raise DataError(
                f"was started with {name} {current}, not {requested}",
                path=path,
                hint=f"Leave --{name} out, or name a new session file.",
            )


def _chosen(session: str, source: str | None, query: str | None) -> CandidateList:
    if source is None:
        raise DataError(
            "there is no such session", path=session, hint="Start one with --from candidates.jsonl."
        )
    lists = list(read_jsonl(source))
    if query is not None:
        lists = [entry for entry in lists if entry.query_id == query]
    if len(lists) != 1:
        problem = f"has {len(lists)} queries" if query is None else f"has no query {query!r}"
        raise DataError(problem, path=source, hint="Name one with --query.")
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
    return Session(items, k, algorithm=algorithm, seed=seed, ordered=ordered, budget=budget)


def _about(chosen: CandidateList) -> dict[str, Any]:
    texts = {
        candidate.document_id: {
            "title": candidate.title,
            "text": candidate.text or _plain(candidate.html),
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


def _plain(html: str) -> str:
    """Extract the text of an HTML page, one line per block."""
    parser = _Words()
    parser.feed(html)
    parser.close()
    lines = (" ".join(line.split()) for line in "".join(parser.words).splitlines())
    return "\n".join(line for line in lines if line)


class _Words(HTMLParser):
    """Collects the text that a browser would display."""

    _HIDDEN = frozenset({"script", "style", "template", "title"})
    _INLINE = frozenset({"a", "b", "code", "em", "i", "mark", "small", "span", "strong", "u"})

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, _attributes: object) -> None:
        self._hidden += tag in self._HIDDEN
        if tag not in self._INLINE:
            self.words.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._hidden = max(self._hidden - (tag in self._HIDDEN), 0)
        if tag not in self._INLINE:
            self.words.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.words.append(data)
