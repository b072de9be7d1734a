"""What a query comes to so far: its documents in order, and how certain that order is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from math import sqrt

import numpy as np
from scipy.special import ndtr
from sqlalchemy import Connection, select

from podium.judging import Verdict
from podium.judging.bradley_terry import Duels, fit_bradley_terry
from podium.judging.entries import active_entries
from podium.judging.grading import side_by_side_totals
from podium.studio.errors import RefusedError
from podium.studio.judging.judged import JudgedQuery, load_judged_query
from podium.studio.judging.modes import GradesMode, PairsMode, QueryLogEntry
from podium.studio.store.enums import Kind, Mode, Purpose
from podium.studio.store.rows import ProjectQueryRow, ProjectRow, fetch_one
from podium.studio.store.tables import ProjectQuery

_MOST_DOCUMENTS = 500
"""Above this the model of certainty takes too long for a page."""
_DRAWS = 400


@dataclass(frozen=True)
class DocumentResult:
    """A document and what is known of it.

    Attributes:
        position: Where it is in the query's list.
        document_id: Its id.
        title: Its title, or its id.
        url: Its address.
        reference: Names its page.
        rank: Its rank in the top k, or by mean grade; None outside of it.
        label: Its label, as exports have it; None if it has none.
        judgments: How many judgments that stand are about it.
        in_top: The probability that it belongs to the top k; None where that is not estimated.
        ahead: The probability that it is better than the document ranked next.
        grades: The grades that it got.
        bad: Whether it was marked as bad.
        withdrawn: Whether it was withdrawn.
    """

    position: int
    document_id: str
    title: str
    url: str
    reference: int
    rank: int | None = None
    label: float | None = None
    judgments: int = 0
    in_top: float | None = None
    ahead: float | None = None
    grades: list[int] = field(default_factory=list)
    bad: bool = False
    withdrawn: bool = False


@dataclass(frozen=True)
class QueryResults:
    """A query's results so far.

    Attributes:
        query: The query's row.
        complete: Whether no judgment is missing.
        documents: Its documents, best first; those without a rank after them.
        contradictions: Loops of documents, each judged better than the next, by position.
        totals: For every two rankings, how often each of five answers was given.
    """

    query: ProjectQueryRow
    complete: bool
    documents: list[DocumentResult]
    contradictions: list[list[int]]
    totals: dict[tuple[str, str], list[int]]


def query_row(connection: Connection, project_id: int, query_id: int) -> ProjectQueryRow:
    """The row of a query of a project."""
    statement = select(ProjectQuery.__table__).where(
        ProjectQuery.id == query_id, ProjectQuery.project_id == project_id
    )
    query = fetch_one(connection, statement, ProjectQueryRow)
    if query is None:
        raise RefusedError(404, "The query does not exist.")
    return query


def query_results(connection: Connection, project: ProjectRow, query_id: int) -> QueryResults:
    """The results of a query of a project."""
    query = query_row(connection, project.id, query_id)
    judged = load_judged_query(connection, project, query)
    mode = judged.state.mode
    loops: list[list[int]] = []
    if isinstance(mode, PairsMode):
        at = {item: position for position, item in enumerate(judged.items)}
        loops = [[at[item] for item in each.loop] for each in mode.session.contradictions()]
    totals = side_by_side_totals(mode.log) if project.mode == Mode.RANKINGS else {}
    return QueryResults(query, judged.state.done, _documents(judged), loops, totals)


def _documents(judged: JudgedQuery) -> list[DocumentResult]:
    mode, state = judged.state.mode, judged.state
    ranked = _ranked(judged)
    rank_of = {position: rank for rank, position in enumerate(ranked, start=1)}
    label_of: dict[str, float] = {}
    if judged.is_judged and isinstance(mode, PairsMode | GradesMode):
        label_of = judged.labels(ties=False)
    graded = mode.session.grades() if isinstance(mode, GradesMode) else {}
    in_top, ahead = _certainty(judged, ranked)
    about = Counter(
        position
        for entry in _main_judgments(judged)
        if entry.kind is not Kind.SIDE_BY_SIDE  # those are about rankings
        for position in {entry.left, entry.right}
        if position is not None
    )
    bad = {entry.left for entry in judged.standing if entry.kind is Kind.BAD and entry.counts}
    documents = [
        DocumentResult(
            position=position,
            document_id=document.item,
            title=document.title or document.item,
            url=document.url,
            reference=document.reference,
            rank=rank_of.get(position),
            label=label_of.get(document.item),
            judgments=about[position],
            in_top=in_top.get(position),
            ahead=ahead.get(position),
            grades=sorted(graded.get(document.item, {}).values()),
            bad=position in bad,
            withdrawn=position in state.withdrawn_documents,
        )
        for position, document in enumerate(state.documents)
    ]
    last = len(documents) + 1
    return sorted(documents, key=lambda each: (each.rank or last, each.withdrawn, each.position))


def _ranked(judged: JudgedQuery) -> list[int]:
    """The positions of the ranked documents, best first; none before the first judgment."""
    mode = judged.state.mode
    if not judged.is_judged:
        return []
    at = {item: position for position, item in enumerate(judged.items)}
    if isinstance(mode, PairsMode):
        return [at[item] for item in mode.session.result().top]
    if isinstance(mode, GradesMode):
        labels = judged.labels(ties=False)
        return [at[item] for item in sorted(labels, key=lambda item: -labels[item])]
    return []


def _main_judgments(judged: JudgedQuery) -> list[QueryLogEntry]:
    return [
        entry for entry in judged.standing if entry.is_judgment and entry.purpose is Purpose.MAIN
    ]


def _certainty(judged: JudgedQuery, ranked: list[int]) -> tuple[dict[int, float], dict[int, float]]:
    """How probable it is that documents belong to the top k, and are ahead of the next one.

    Every verdict may be wrong: strengths are estimated by Bradley and Terry's model from verdicts
    alone, without a prior ranking.
    """
    mode = judged.state.mode
    if not isinstance(mode, PairsMode) or len(judged.items) > _MOST_DOCUMENTS:
        return {}, {}
    log = mode.log  # with an adjudicator's decisions instead of what people said
    entries = [log[index] for index in active_entries(log)]
    verdicts = [entry for entry in entries if isinstance(entry, Verdict)]
    if not verdicts:
        return {}, {}
    at = {item: position for position, item in enumerate(judged.items)}
    people = dict.fromkeys(entry.assessor for entry in verdicts)
    raters = {person: number for number, person in enumerate(people)}
    duels = Duels.of(
        [
            (at[entry.left], at[entry.right], int(entry.outcome), raters[entry.assessor])
            for entry in verdicts
        ]
    )
    posterior = fit_bradley_terry(len(judged.items), duels)
    excluded = [
        position
        for position, item in enumerate(judged.items)
        if position in judged.state.withdrawn_documents or item in mode.session.bad
    ]
    drawn = posterior.draws(_DRAWS, 0)
    drawn[excluded] = -np.inf
    order = np.argsort(np.argsort(-drawn, axis=0), axis=0)
    in_top = (order < mode.session.k).mean(axis=1)
    ahead = {}
    for one, other in pairwise(ranked):
        covariance = posterior.covariance(np.array([one, other]))
        variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
        difference = posterior.means[one] - posterior.means[other]
        ahead[one] = float(ndtr(difference / sqrt(variance)))
    return {position: float(in_top[position]) for position in ranked}, ahead
